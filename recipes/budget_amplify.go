package recipes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Some functions produce large values from small arguments: a few characters of a recipe
// could fill the memory. Their results are bounded before they are computed.
const (
	maxProduct = 1 << 16 // combinations of setproduct
	maxIndent  = 1 << 10 // spaces of indent
	maxWeight  = 4 << 20 // of a local value: bytes of text, plus some for each element
	eachWeighs = 32
)

// guarded returns a function that refuses arguments that fail a check.
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
			return function.NewArgErrorf(0, "these make more than %d combinations", maxProduct)
		}
	}
	return nil
})

var indentFunc = guarded(stdlib.IndentFunc, func(args []cty.Value) error {
	n, _ := args[0].Unmark()
	if n.IsKnown() && !n.IsNull() && n.Type() == cty.Number && n.GreaterThan(cty.NumberIntVal(maxIndent)).True() {
		return function.NewArgErrorf(0, "a line can be indented by at most %d spaces", maxIndent)
	}
	return nil
})

// wideVerb matches a verb of format that pads to five digits of characters or more.
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

// enlarging estimates, for functions whose result can be much larger than their
// arguments, the largest size of the result.
var enlarging = map[string]func(args []cty.Value) int{
	"replace": replaced,
	"join": func(args []cty.Value) int {
		n := 0
		for _, v := range args[min(1, len(args)):] {
			n += elementsOf(v)
		}
		return n * len(textOf(args, 0))
	},
	"split": func(args []cty.Value) int { return (strings.Count(textOf(args, 1), textOf(args, 0)) + 1) * eachWeighs },
	"regex": searched,
	"regexall": func(args []cty.Value) int {
		return searched(args) + 4*len(textOf(args, 1))*(strings.Count(textOf(args, 0), "(")+1)
	},
	"format": formatted,
	"formatlist": func(args []cty.Value) int {
		n := 1
		for _, v := range args {
			n = max(n, elementsOf(v))
		}
		return n * (formatted(args) + eachWeighs)
	},
	"indent":     func(args []cty.Value) int { return strings.Count(textOf(args, 1), "\n") * maxIndent / 8 },
	"csvdecode":  func(args []cty.Value) int { return separators(textOf(args, 0)) * eachWeighs },
	"jsondecode": func(args []cty.Value) int { return separators(textOf(args, 0)) * eachWeighs },
	"yamldecode": yamlDecoded,
	"yamlencode": yamlEncoded,
	// The time that these take grows with the square of the size.
	"distinct": func(args []cty.Value) int { n := elementsOf(args[0]); return n * n },
	"parseint": func(args []cty.Value) int { n := len(textOf(args, 0)); return n * n },
}

// formatted bounds the length of a formatted text: every verb may stand for the longest
// argument.
func formatted(args []cty.Value) int {
	longest := 0
	for _, v := range args[min(1, len(args)):] {
		longest = max(longest, maxWeight-weigh(v, maxWeight))
	}
	return len(textOf(args, 0)) + strings.Count(textOf(args, 0), "%")*longest
}

// replaced bounds the length of a text with replacements. A pattern is searched for, which
// takes as long as the replacing.
func replaced(args []cty.Value) int {
	text, with := textOf(args, 0), textOf(args, 2)
	pattern, ok := patternIn(textOf(args, 1))
	if !ok {
		return len(text) + strings.Count(text, textOf(args, 1))*len(with)
	}
	if n := len(pattern) * len(text) / 64; n > maxWeight {
		return n
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return 0 // the function reports it
	}
	matches := 0
	re.ReplaceAllStringFunc(text, func(string) string { matches++; return "" })
	return len(text)*(1+strings.Count(with, "$")) + matches*len(with)
}

// searched estimates the cost of a search, which grows with the product of both lengths.
func searched(args []cty.Value) int { return len(textOf(args, 0)) * len(textOf(args, 1)) / 64 }

func separators(text string) int {
	return strings.Count(text, ",") + strings.Count(text, "\n") + strings.Count(text, "[") + strings.Count(text, "{")
}

// textOf returns an argument that is a text, or nothing if it is not one or not yet
// known.
func textOf(args []cty.Value, k int) string {
	if k >= len(args) {
		return ""
	}
	v, _ := args[k].Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func elementsOf(v cty.Value) int {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}

// boundAll makes functions refuse large arguments, and arguments that would produce too
// large a result. Functions that evaluate expressions themselves are left as they are.
func boundAll(functions map[string]function.Function) {
	for name, f := range functions {
		if name == "try" || name == "can" {
			continue
		}
		functions[name] = guarded(f, func(args []cty.Value) error {
			left := maxWeight
			for k, v := range args {
				if left = weigh(v, left); left <= 0 {
					return function.NewArgErrorf(k, "this is larger than %d MiB, or has a number with too many digits", maxWeight>>20)
				}
			}
			if estimate := enlarging[name]; estimate != nil && estimate(args) > maxWeight {
				return function.NewArgErrorf(0, "this would make more than %d MiB", maxWeight>>20)
			}
			return nil
		})
	}
}

// light returns v, unless it is so large that repeated doubling could fill the memory.
func (ev *evaluator) light(d *declaration, v cty.Value, ok bool) (cty.Value, bool) {
	if !ok || weigh(v, maxWeight) > 0 {
		return v, ok
	}
	ev.report(scope{title: d.title}, d.at, Diagnostic{Summary: "Value too large",
		Detail: fmt.Sprintf("The value is larger than %d MiB.", maxWeight>>20), Remedy: "Keep large data in a file that a creature reads."})
	return cty.DynamicVal, false
}

// weigh returns the remaining budget after a value; zero or less if the value is too
// large. It stops there, because a small recipe can describe an enormous value.
func weigh(v cty.Value, left int) int {
	left -= eachWeighs
	v, _ = v.Unmark()
	switch {
	case left <= 0 || v.IsNull() || !v.IsKnown():
	case v.Type() == cty.String:
		left -= len(v.AsString())
	case v.Type() == cty.Number:
		if hugeNumber(v) {
			return 0
		}
		exponent := v.AsBigFloat().MantExp(nil)
		left -= max(exponent, -exponent) / 3
	case v.CanIterateElements():
		for it := v.ElementIterator(); left > 0 && it.Next(); {
			_, element := it.Element()
			left = weigh(element, left)
		}
	}
	return left
}
