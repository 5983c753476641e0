package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/seeded"
)

// native lists the built-in functions that scripts use unchanged. Each takes a time that
// hardly depends on its arguments, copies a text or an object that exists already and is
// bounded, or calls the script for each step. All others are wrapped or replaced in
// prelude.js. Check the implementation of a function before you add it.
var native = map[string]string{
	"Object": `getPrototypeOf setPrototypeOf is hasOwn isExtensible preventExtensions getOwnPropertyDescriptor defineProperty fromEntries
		prototype.toLocaleString prototype.valueOf prototype.hasOwnProperty prototype.isPrototypeOf prototype.propertyIsEnumerable prototype.__proto__(get) prototype.__proto__(set)`,
	"Function.prototype": `bind call toString caller(get) Symbol(Symbol.hasInstance)`,
	"Array":              `isArray of prototype.Symbol(Symbol.iterator) Symbol(Symbol.species)(get)`,
	"String": `fromCharCode fromCodePoint prototype.at prototype.charAt prototype.charCodeAt prototype.codePointAt prototype.slice prototype.substring prototype.substr
		prototype.toString prototype.valueOf prototype.Symbol(Symbol.iterator)`,
	"Number": `isFinite isInteger isNaN isSafeInteger prototype.toExponential prototype.toFixed prototype.toLocaleString prototype.toPrecision prototype.toString prototype.valueOf`,
	"RegExp": `prototype.source(get) prototype.global(get) prototype.multiline(get) prototype.dotAll(get) prototype.ignoreCase(get) prototype.unicode(get) prototype.sticky(get)
		prototype.flags(get) Symbol(Symbol.species)(get)`,
	"Date": `UTC now prototype.valueOf prototype.getTime prototype.setTime prototype.toUTCString prototype.toISOString prototype.toJSON prototype.Symbol(Symbol.toPrimitive)
		prototype.getDay prototype.getFullYear prototype.getMonth prototype.getDate prototype.getHours prototype.getMinutes prototype.getSeconds prototype.getMilliseconds
		prototype.setFullYear prototype.setMonth prototype.setDate prototype.setHours prototype.setMinutes prototype.setSeconds prototype.setMilliseconds`,
	"Boolean": `prototype.toString prototype.valueOf`,
	"Error":   `isError`, "AggregateError": ``, "TypeError": ``, "ReferenceError": ``, "SyntaxError": ``, "RangeError": ``, "EvalError": ``, "URIError": ``,
	"Math": `abs acos acosh asin asinh atan atanh atan2 cbrt ceil clz32 cos cosh exp expm1 floor fround hypot imul log log1p log10 log2 max min pow random round sign sin sinh sqrt tan
		tanh trunc`,
	"JSON":    `isRawJSON`,
	"Symbol":  `for keyFor prototype.description(get) prototype.toString prototype.valueOf prototype.Symbol(Symbol.toPrimitive)`,
	"WeakSet": `prototype.add prototype.delete prototype.has`, "WeakMap": `prototype.set prototype.delete prototype.has prototype.get`,
	"Map": `prototype.clear prototype.set prototype.delete prototype.forEach prototype.has prototype.get prototype.size(get) prototype.keys prototype.values prototype.entries
		Symbol(Symbol.species)(get)`,
	"Set": `prototype.add prototype.clear prototype.delete prototype.forEach prototype.has prototype.size(get) prototype.difference prototype.intersection prototype.isDisjointFrom
		prototype.isSubsetOf prototype.isSupersetOf prototype.symmetricDifference prototype.union prototype.values prototype.entries Symbol(Symbol.species)(get)`,
	"allow": ``, "deny": ``, "ask": ``, "warn": ``, "patch": ``, "drop": ``, "restart": ``, "quarantine": ``, boundedText: ``, boundedOwn: ``,
	"generator": `next return throw`, "asyncFunction": ``, "iterator": `Symbol(Symbol.iterator)`,
}

// everyFunction lists the functions that scripts can reach: the path of each, and whether
// it is the interpreter's own.
const everyFunction = `(() => {
	const out = [], seen = new Set();
	const walk = (o, path) => {
		if ((typeof o !== "object" && typeof o !== "function") || o === null || seen.has(o)) return;
		seen.add(o);
		if (typeof o === "function") out.push(path + (/native code/.test((() => {}).toString.call(o)) ? " native" : ""));
		for (const key of [...Object.getOwnPropertyNames(o), ...Object.getOwnPropertySymbols(o)]) {
			const d = Object.getOwnPropertyDescriptor(o, key), at = path + "." + String(key);
			walk(d.value, at);
			walk(d.get, at + "(get)");
			walk(d.set, at + "(set)");
		}
	};
	walk(Object.getPrototypeOf(() => {}), "Function.prototype");
	for (const name of Object.getOwnPropertyNames(globalThis).sort()) walk(globalThis[name], name === "globalThis" ? "" : name);
	const iterators = [[][Symbol.iterator](), ""[Symbol.iterator](), new Map().entries(), new Set().values(), "".matchAll(/x/g)];
	for (const it of iterators) walk(Object.getPrototypeOf(it), "iterator");
	walk(Object.getPrototypeOf(Object.getPrototypeOf(iterators[0])), "iterator");
	walk(Object.getPrototypeOf((function* () {}).prototype), "generator");
	walk(Object.getPrototypeOf(async () => {}), "asyncFunction");
	return out.join("\n");
})()`

func reachable(t *testing.T) (functions []string) {
	i, err := newIsolate(0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := i.vm.RunString(everyFunction)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(v.String(), "\n")
}

// Every built-in function is bounded, or known to need no bound. A function that a later
// version of the interpreter adds fails this test until it is checked.
func TestEveryBuiltInIsClassified(t *testing.T) {
	known := map[string]bool{}
	for owner, names := range native {
		known[owner] = true
		for _, name := range strings.Fields(names) {
			known[owner+"."+name] = true
		}
	}
	found := 0
	for _, f := range reachable(t) {
		path, isNative := strings.CutSuffix(f, " native")
		path = strings.TrimPrefix(path, ".")
		if isNative && !known[path] {
			t.Errorf("%s is the interpreter's own: bound it in prelude.js, or say in this test why it needs no bound", path)
		}
		found++
	}
	if found < 250 {
		t.Errorf("only %d functions were found", found)
	}
}

// Built-in functions return for all arguments. make test checks one function in four.
func TestEveryBuiltInComesBack(t *testing.T) {
	const abuse = `() => {
		const twice = []; twice.push(twice, twice);
		let n = 0;
		const long = 'x'.repeat(1e3).repeat(2e3), shifty = {get length() { return n++ % 2 ? 2 ** 50 : 0; }, [Symbol.isConcatSpreadable]: true};
		const sparse = []; sparse.length = 2 ** 32 - 1;
		const texts = Array(1e4).fill(long);
		const endless = {size: 2 ** 50, has: () => true, keys() { return this; }, [Symbol.iterator]() { return this; }, next: () => ({done: false, value: [long, 1]})};
		const f = FUNCTION;
		for (const v of [shifty, {length: 2 ** 53 - 1}, sparse, twice, texts, long, /(?:x?){500}y/g, new Set([1]), endless, 2 ** 53]) {
			for (const args of [[v], [v, v], [v, () => long], [2 ** 31, v], [endless]]) {
				for (const self of [undefined, v]) {
					try { f.call(self, ...args); } catch (e) {}
					try { new f(...args); } catch (e) {}
				}
			}
		}
		return deny("it came back");
	}`
	for i, f := range reachable(t) {
		if !seeded.Part(i, 4) {
			continue
		}
		path := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(f, "."), " native"), ")")
		if strings.HasPrefix(path, "iterator") || strings.HasPrefix(path, "generator") || strings.HasPrefix(path, "async") || strings.HasPrefix(path, "%") {
			continue
		}
		owner, accessor, isAccessor := strings.Cut(path, "(")
		if strings.HasPrefix(accessor, "Symbol.") {
			isAccessor = false
		}
		if isAccessor || strings.Contains(path, "(get") || strings.Contains(path, "(set") {
			continue // they take no arguments
		}
		owner = strings.Replace(owner, "Function.prototype", "(() => {})", 1)
		expression := owner
		if strings.HasPrefix(accessor, "Symbol.") {
			expression = fmt.Sprintf("%s[%s]", strings.TrimSuffix(owner, ".Symbol"), accessor)
		}
		s := set(t, Policy{Source: strings.Replace(abuse, "FUNCTION", expression, 1), Timeout: 5 * time.Millisecond})
		d := s.Send(t.Context(), event("x"))
		if len(d.Denials) != 1 || !slices.ContainsFunc([]string{"it came back", "ran for longer", "text is larger", "nest"}, func(s string) bool {
			return strings.Contains(d.Denials[0].Reason, s)
		}) {
			t.Errorf("%s: %s", expression, describeSend(d))
		}
	}
}
