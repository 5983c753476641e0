package policy

import (
	_ "embed"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

// The bounds of what a built-in function may do in one step, during which the
// interpreter cannot be interrupted.
const (
	maxText     = 4 << 20 // characters of a text that a built-in makes
	maxElements = 1 << 17 // elements of an array that a built-in goes through
	maxSplit    = 1 << 20 // characters of a text that is split
	maxDepth    = 256     // of arrays and objects inside each other
)

//go:embed prelude.js
var preludeSource string

// prelude is compiled once and shared: programs do not change.
var prelude = func() *goja.Program {
	tree, err := parser.ParseFile(nil, "<prelude>", preludeSource, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil
	}
	program, err := goja.CompileAST(tree, true)
	if err != nil {
		return nil
	}
	return program
}()

// harden takes away what cannot be bounded, bounds what can, gives scripts
// their functions and freezes everything that they share.
func (i *isolate) harden() error {
	vm := i.vm
	vm.SetParserOptions(parser.WithDisableSourceMaps)
	setup, err := vm.RunProgram(prelude)
	if err != nil {
		return err
	}
	run, ok := goja.AssertFunction(setup)
	if !ok {
		return errNoPrelude
	}
	host := vm.NewObject()
	for name, value := range map[string]any{
		"maxText": maxText, "maxElements": maxElements, "maxSplit": maxSplit, "maxDepth": maxDepth,
		"enter": func(goja.FunctionCall) goja.Value {
			if i.depth++; i.depth > maxDepth {
				i.throw("values nest too deeply")
			}
			return goja.Undefined()
		},
		"leave":    func(goja.FunctionCall) goja.Value { i.depth--; return goja.Undefined() },
		"jsonFits": i.jsonFits,
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

// jsonFits reports whether a text nests little enough for JSON.parse, which
// recurses.
func (i *isolate) jsonFits(call goja.FunctionCall) goja.Value {
	text, ok := call.Argument(0).Export().(string)
	if !ok {
		return i.vm.ToValue(false)
	}
	depth, quoted := 0, false
	for k := 0; k < len(text); k++ {
		switch c := text[k]; {
		case quoted && c == '\\':
			k++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > maxDepth {
				return i.vm.ToValue(false)
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return i.vm.ToValue(true)
}
