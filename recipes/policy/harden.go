package policy

import (
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// The bounds of one step of a built-in function, during which the interpreter cannot be
// interrupted.
const (
	maxText     = 2 << 20 // characters of a text
	maxElements = 1 << 17 // elements of an array that a built-in function reads
	maxSplit    = 1 << 20 // characters of a text that is split
	maxSlow     = 1 << 16 // characters of a text for functions that take long for each character
	maxDepth    = 256     // nested arrays and objects
	maxPattern  = 1 << 13 // steps of a regular expression, see weigh
	maxWeight   = 1 << 30 // the largest result of weigh
	maxMatch    = 1 << 25 // characters of a text times steps of the pattern
	freeMatch   = 1 << 10 // characters of a text for which any pattern is allowed
)

//go:embed prelude.js
var preludeSource string

// prelude is compiled once, before the first script runs, and shared: programs do not
// change.
var prelude = sync.OnceValue(func() *goja.Program {
	tree, err := parser.ParseFile(nil, "<prelude>", preludeSource, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil
	}
	program, err := goja.CompileAST(tree, true)
	if err != nil {
		return nil
	}
	return program
})

// harden removes features that cannot be bounded, bounds the others, gives scripts their
// functions and freezes everything that scripts share.
func (i *isolate) harden() error {
	vm := i.vm
	vm.SetParserOptions(parser.WithDisableSourceMaps)
	setup, err := vm.RunProgram(prelude())
	if err != nil {
		return err
	}
	run, ok := goja.AssertFunction(setup)
	if !ok {
		return errNoPrelude
	}
	host := vm.NewObject()
	for name, value := range map[string]any{
		"maxText": maxText, "maxElements": maxElements, "maxSplit": maxSplit, "maxSlow": maxSlow, "maxDepth": maxDepth,
		"maxPattern": maxPattern, "maxMatch": maxMatch, "freeMatch": freeMatch,
		"enter": func(goja.FunctionCall) goja.Value {
			if i.depth++; i.depth > maxDepth {
				i.throw("values nest too deeply")
			}
			return goja.Undefined()
		},
		"leave":  func(goja.FunctionCall) goja.Value { i.depth--; return goja.Undefined() },
		"decode": i.decodeJSON, "matching": i.makePattern,
		"weigh": func(call goja.FunctionCall) goja.Value { return vm.ToValue(weigh(call.Argument(0).String())) },
	} {
		if err := host.Set(name, value); err != nil {
			return err
		}
	}
	for _, a := range Answers {
		if err := vm.Set(string(a.kind), i.verdictFunction(a.kind)); err != nil {
			return err
		}
	}
	for name, f := range map[string]func(goja.FunctionCall) goja.Value{boundedText: i.boundText, boundedOwn: i.boundOwn} {
		if err := vm.Set(name, f); err != nil {
			return err
		}
	}
	made, err := run(goja.Undefined(), host)
	if err != nil {
		return err
	}
	tools := made.ToObject(vm)
	for name, f := range map[string]*goja.Callable{
		"sealFunction": &i.sealFunction, "freeze": &i.freeze, "write": &i.write,
	} {
		if *f, ok = goja.AssertFunction(tools.Get(name)); !ok {
			return errNoPrelude
		}
	}
	if i.encodePlain, ok = goja.AssertFunction(vm.ToValue(i.encodePlainData)); !ok {
		return errNoPrelude
	}
	return nil
}

// errTooLong stops a script that makes too long a text. The script cannot catch it,
// because it could then use the text.
var errTooLong = errors.New("a text is larger than a policy may make it")

// boundText returns its argument, the result of an addition or a template.
func (i *isolate) boundText(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	if s, ok := v.(goja.String); ok && s.Length() > maxText {
		i.vm.Interrupt(errTooLong)
	}
	return v
}

// boundOwn returns its argument, which will be spread into an object.
func (i *isolate) boundOwn(call goja.FunctionCall) goja.Value {
	v := call.Argument(0)
	length := 0
	switch v := v.(type) {
	case goja.String:
		length = v.Length()
	case *goja.Object:
		if class := v.ClassName(); class == "Array" || class == "String" {
			length = int(v.Get("length").ToInteger())
		}
	}
	if length > maxElements {
		panic(i.vm.NewTypeError("what is spread into an object has more than %d elements", maxElements))
	}
	return v
}

// decodeJSON is JSON.parse of one argument, a text. The other arguments are functions
// that report errors.
func (i *isolate) decodeJSON(call goja.FunctionCall) goja.Value {
	text := call.Argument(0).String()
	refuse := func(by goja.Value, why string) goja.Value {
		f, _ := goja.AssertFunction(by)
		_, err := f(goja.Undefined(), i.vm.ToValue(why))
		panic(err)
	}
	if !json.Valid([]byte(text)) {
		return refuse(call.Argument(1), "this is not JSON")
	}
	v, err := i.decode(text, false)
	switch {
	case errors.Is(err, errDeepJSON):
		return refuse(call.Argument(2), "the nesting of the JSON")
	case err != nil:
		return refuse(call.Argument(1), err.Error())
	}
	return v
}

// makePattern calls its argument, which makes a regular expression.
func (i *isolate) makePattern(call goja.FunctionCall) (made goja.Value) {
	f, _ := goja.AssertFunction(call.Argument(0))
	var err error
	matching(i.timeout, func() { made, err = f(goja.Undefined()) })
	if err != nil {
		panic(err)
	}
	return made
}

// globalNames are the names that every script can use.
var globalNames = sync.OnceValue(func() []string {
	i, err := newIsolate(0)
	if err != nil {
		return nil // then no script can run either
	}
	return slices.DeleteFunc(i.vm.GlobalObject().GetOwnPropertyNames(), func(name string) bool { return strings.HasPrefix(name, "%") })
})
