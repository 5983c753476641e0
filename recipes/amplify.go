package recipes

import (
	"fmt"
	"regexp"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Some functions make much of little: a few characters of a recipe would fill the
// memory. What they make is bounded before they make it.
const (
	maxProduct = 1 << 16 // combinations of setproduct
	maxIndent  = 1 << 10 // spaces of indent
	maxWeight  = 4 << 20 // of a local value: bytes of text, and some for each element
)

// guarded is a function that refuses arguments of which it would make too much.
func guarded(f function.Function, check func(args []cty.Value) error) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(), Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := check(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	})
}

var setProductFunc = guarded(stdlib.SetProductFunc, func(args []cty.Value) error {
	n := 1
	for _, v := range args {
		v, _ = v.Unmark()
		if v.IsKnown() && !v.IsNull() && v.CanIterateElements() {
			n *= max(v.LengthInt(), 1)
		}
		if n > maxProduct {
			return function.NewArgErrorf(0, "these have more than %d combinations", maxProduct)
		}
	}
	return nil
})

var indentFunc = guarded(stdlib.IndentFunc, func(args []cty.Value) error {
	n, _ := args[0].Unmark()
	if n.IsKnown() && !n.IsNull() && n.Type() == cty.Number && n.GreaterThan(cty.NumberIntVal(maxIndent)).True() {
		return function.NewArgErrorf(0, "at most %d spaces can be put in front of a line", maxIndent)
	}
	return nil
})

// wideVerb is a verb of format that pads to five digits of characters.
var wideVerb = regexp.MustCompile(`%[-+ #0]*(\[\d+\])?(\d{5,}|\d*\.\d{5,})`)

func checkFormat(args []cty.Value) error {
	f, _ := args[0].Unmark()
	if f.IsKnown() && !f.IsNull() && f.Type() == cty.String {
		if verb := wideVerb.FindString(f.AsString()); verb != "" {
			return function.NewArgErrorf(0, "the width in %q is too large", verb)
		}
	}
	return nil
}

var (
	formatFunc     = guarded(stdlib.FormatFunc, checkFormat)
	formatListFunc = guarded(stdlib.FormatListFunc, checkFormat)
)

// light evaluates to v, unless it is so large that doubling it again and again could
// fill the memory.
func (l *loader) light(d *declaration, v cty.Value, ok bool) (cty.Value, bool) {
	if !ok || weigh(v, maxWeight) > 0 {
		return v, ok
	}
	l.add(l.at(scope{title: d.title}, d.at, Diagnostic{Summary: "Value too large",
		Detail: fmt.Sprintf("This comes to more than %d MiB.", maxWeight>>20), Remedy: "Keep what is large in a file that a creature reads."}))
	return cty.DynamicVal, false
}

// weigh returns what is left of a budget behind a value; nothing or less if it is too
// heavy. It stops there: a small recipe can mean a value without end.
func weigh(v cty.Value, left int) int {
	const each = 16
	left -= each
	v, _ = v.Unmark()
	switch {
	case left <= 0 || v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		left -= len(v.AsString())
	case v.CanIterateElements():
		for it := v.ElementIterator(); left > 0 && it.Next(); {
			_, element := it.Element()
			left = weigh(element, left)
		}
	}
	return left
}
