package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"pgregory.net/rapid"
)

// values draws JSON with many special cases.
func values() *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	word := rapid.SampledFrom([]string{`"a"`, `""`, `"__proto__"`, `"length"`, `"toString"`, `"7"`, `"1"`, `"-1"`, `"é🙂"`, `"\u00e9\n\"\\\/"`,
		`"\u0000\u001f\u007f"`, `"\ud83d\ude42"`, `"\ud800"`, `"\u2028<&>"`})
	leaf := rapid.OneOf(word, rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1", "-1", "1.0", "1e3", "0.1", "1e21", "1e-7", "123456789012345",
		"1234567890123456", "9007199254740993", "12345678901234567890", "1.7976931348623157e308", "5e-324"}))
	return rapid.Custom(func(t *rapid.T) string {
		var draw func(depth int) string
		draw = func(depth int) string {
			kind := rapid.SampledFrom([]string{"leaf", "object", "array"}).Draw(t, "kind")
			if kind == "leaf" || depth == 4 {
				return space.Draw(t, "space") + leaf.Draw(t, "leaf") + space.Draw(t, "space")
			}
			var parts []string
			for range rapid.IntRange(0, 4).Draw(t, "size") {
				part := draw(depth + 1)
				if kind == "object" {
					part = word.Draw(t, "key") + space.Draw(t, "space") + ":" + part
				}
				parts = append(parts, part)
			}
			text := strings.Join(parts, ","+space.Draw(t, "space"))
			if text = "[" + text + "]"; kind == "object" {
				text = "{" + text[1:len(text)-1] + "}"
			}
			return space.Draw(t, "space") + text + space.Draw(t, "space")
		}
		return draw(0)
	})
}

// Decoding and encoding for ctx equal JSON.parse and JSON.stringify.
func TestJSONIsAsTheScriptsHaveIt(t *testing.T) {
	i, err := newIsolate(0)
	if err != nil {
		t.Fatal(err)
	}
	function := func(source string) goja.Callable {
		v, err := i.vm.RunString(source)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := goja.AssertFunction(v)
		return f
	}
	parse, frozen := function(`(text) => JSON.parse(text)`), function(`(v) => {
		const all = (v) => typeof v !== "object" || v === null || Object.isFrozen(v) && Object.keys(v).every((k) => all(v[k]));
		return all(v);
	}`)
	rapid.Check(t, func(t *rapid.T) {
		text := values().Draw(t, "text")
		theirs, err := parse(goja.Undefined(), i.vm.ToValue(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := i.write(goja.Undefined(), theirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			ours, err := i.decode(text, readOnly)
			if err != nil {
				t.Fatal(err)
			}
			again, err := i.write(goja.Undefined(), ours)
			if err != nil || again.String() != want.String() {
				t.Fatalf("%s became %v, %v, want %s", text, again, err, want)
			}
			if is, err := frozen(goja.Undefined(), ours); err != nil || readOnly && !is.ToBoolean() {
				t.Fatalf("%s can be modified, %v", text, err)
			}
			if got, ok, err := i.encode(ours); err != nil || !ok || string(got) != want.String() {
				t.Fatalf("%s was written as %s, %v, want %s", text, got, err, want)
			}
		}
	})
}

// Values other than plain data are also encoded as JSON.stringify does.
func TestOddValuesAreEncoded(t *testing.T) {
	i, err := newIsolate(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		`[undefined, () => 1, Symbol("x"), NaN, -Infinity, -0]`, `({a: undefined, b() {}, [Symbol("x")]: 1, c: new Number(1), d: new String("x"), e: Object(true)})`,
		`new Map([[1, 2]])`, `[new Set([1]), new Error("x"), /x/, new Date(0)]`, `Object.assign([1, 2], {a: 3})`, `[, 1, , 2]`,
		`Object.create({a: 1}, {b: {value: 2, enumerable: true}, c: {value: 3}})`, `({get a() { return [1]; }, toString() { return "x"; }})`,
		`({a: {toJSON(key) { return key + "!"; }}})`, `Object.create(null)`, `({2: "b", 1: "a", x: 1, "-1": 2})`, `"\ud800" + "é"`, `JSON.rawJSON("1e1000")`,
		`(function () { return arguments; })(1, 2)`, `Array(20000).fill(0)`, `"x".repeat(40000)`, `deny("x")`, `undefined`, `() => 1`,
	} {
		v, err := i.vm.RunString("'use strict'; (" + script + ")")
		if err != nil {
			t.Fatal(script, err)
		}
		want, err := i.write(goja.Undefined(), v)
		if err != nil {
			t.Fatal(script, err)
		}
		got, ok, err := i.encode(v)
		if err != nil || ok == goja.IsUndefined(want) || ok && string(got) != want.String() {
			t.Errorf("%s: got %.60s, %v, %v, want %.60s", script, got, ok, err, want)
		}
	}
}

func TestBadJSONIsRefused(t *testing.T) {
	i, err := newIsolate(0)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, text := range []string{"", " ", "{", "[", "[1", "[1,", "[1,]", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{a:1}`, `"`, `"a`, `"\`, `"\x"`, "1 2", "-", "1e400", "nul", "]", deep} {
		if v, err := i.decode(text, false); err == nil {
			t.Errorf("%q became %v", text, v)
		}
	}
	if v, err := i.decode(deep[1:len(deep)-1], false); err != nil {
		t.Errorf("%d deep became %v, %v", maxDepth, fmt.Sprint(v), err)
	}
}
