package recipes

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Numbers in HCL are unbounded: formatting 1e10000000 takes hours, and adding 1 to it
// takes hundreds of megabytes. So numbers are bounded wherever they come from: literals,
// operators and functions.
const (
	maxDigits   = 512  // characters of a literal
	maxExponent = 1000 // of a literal, to the base of ten
	maxBits     = 4096 // of a number's exponent, to the base of two
)

// excessive reports whether a literal has too many digits or too large an exponent.
func excessive(number string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	exponent = strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	if len(number) > maxDigits || len(exponent) > len(strconv.Itoa(maxExponent)) {
		return true
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && n > maxExponent
}

func numberTooLarge(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "Number too large",
		Detail:   fmt.Sprintf("A number has at most %d characters, and an exponent of at most %d.", maxDigits, maxExponent),
		Subject:  at.Ptr(),
	}
}

// huge reports whether a value is or contains a number beyond the bounds.
func huge(v cty.Value) bool {
	v, _ = v.Unmark()
	switch {
	case v == cty.NilVal || !v.IsKnown() || v.IsNull():
	case v.Type() == cty.Number:
		return hugeNumber(v)
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			if _, element := it.Element(); huge(element) {
				return true
			}
		}
	}
	return false
}

func hugeNumber(v cty.Value) bool {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return false
	}
	number := v.AsBigFloat()
	exponent := number.MantExp(nil)
	return number.IsInf() || exponent > maxBits || exponent < -maxBits
}

func isZero(v cty.Value) bool {
	return v.Type() == cty.Number && v.IsKnown() && !v.IsNull() && v.AsBigFloat().Sign() == 0
}

var errZero = errors.New("the divisor is 0")

var errHuge = errors.New("the number is too large, or too close to zero")

// bounded returns a function that neither accepts nor returns a number beyond the bounds.
func bounded(f function.Function) function.Function {
	return function.New(&function.Spec{
		Description: f.Description(), Params: f.Params(), VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for i, v := range args {
				if v.Type() == cty.Number && huge(v) {
					return cty.NilType, function.NewArgError(i, errHuge)
				}
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err == nil && huge(v) {
				// Functions cannot be compared, but no other one has this description.
				if len(args) == 2 && f.Description() == stdlib.DivideFunc.Description() && isZero(args[1]) {
					return cty.NilVal, errZero
				}
				return cty.NilVal, errHuge
			}
			return v, err
		},
	})
}

func boundFunctions(fns map[string]function.Function) {
	for _, name := range []string{"abs", "ceil", "floor", "int", "jsondecode", "max", "min", "parseint", "pow", "range", "sum", "tonumber", "yamldecode"} {
		fns[name] = bounded(fns[name])
	}
	for _, name := range []string{"format", "formatlist"} {
		fns[name] = guarded(fns[name], checkNumericVerbs)
	}
}

var numericVerb = regexp.MustCompile(`%[^%a-zA-Z]*[bdoxXeEfFgG]`)

// checkNumericVerbs refuses texts that format would turn into huge numbers.
func checkNumericVerbs(args []cty.Value) error {
	verbs, _ := args[0].Unmark()
	if !verbs.IsKnown() || verbs.IsNull() || verbs.Type() != cty.String || !numericVerb.MatchString(verbs.AsString()) {
		return nil
	}
	for i, v := range args[1:] {
		v, _ = v.UnmarkDeep()
		if n, err := convert.Convert(v, cty.Number); err == nil && huge(n) {
			return function.NewArgError(i+1, errHuge)
		}
	}
	return nil
}

// boundedOperations replace the library's arithmetic operators in the expressions of
// recipes. The library's own stay as they are, because other code in this process uses
// them.
var boundedOperations = func() map[*hclsyntax.Operation]*hclsyntax.Operation {
	out := map[*hclsyntax.Operation]*hclsyntax.Operation{}
	for _, op := range []*hclsyntax.Operation{
		hclsyntax.OpAdd, hclsyntax.OpSubtract, hclsyntax.OpMultiply, hclsyntax.OpDivide, hclsyntax.OpModulo, hclsyntax.OpNegate,
	} {
		b := *op
		b.Impl = bounded(op.Impl)
		out[op] = &b
	}
	return out
}()

func boundedOperation(op *hclsyntax.Operation) *hclsyntax.Operation {
	if b := boundedOperations[op]; b != nil {
		return b
	}
	return op
}
