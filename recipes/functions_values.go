package recipes

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "numbers", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].IsWhollyKnown() {
			return cty.UnknownVal(cty.Number), nil
		}
		total := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, n := it.Element()
			if n.IsNull() {
				return cty.NilVal, function.NewArgErrorf(0, "null cannot be added")
			}
			if total = total.Add(n); hugeNumber(total) {
				return cty.NilVal, errHuge
			}
		}
		return total, nil
	},
})

// quantifier returns a function of a list of truth values, whose result is decisive as
// soon as one of them is.
func quantifier(decisive bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			known := true
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				switch {
				case !v.IsKnown():
					known = false
				case (!v.IsNull() && v.True()) == decisive: // null is not true
					return cty.BoolVal(decisive), nil
				}
			}
			if !known {
				return cty.UnknownVal(cty.Bool), nil
			}
			return cty.BoolVal(!decisive), nil
		},
	})
}

var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		switch ty := args[0].Type(); {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType() && ty.Length() == 1:
			return ty.TupleElementType(0), nil
		case ty.IsTupleType() && ty.Length() == 0:
			return cty.DynamicPseudoType, nil
		case ty.IsTupleType():
			return cty.NilType, function.NewArgErrorf(0, "it has %d elements; the function one takes at most one element", ty.Length())
		default:
			return cty.NilType, function.NewArgErrorf(0, "a list or set is required, and this is %s", article(ty.FriendlyName()))
		}
	},
	Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
		switch n := args[0].LengthInt(); n {
		case 0:
			return cty.NullVal(ty), nil
		case 1:
			it := args[0].ElementIterator()
			it.Next()
			_, v := it.Element()
			return v, nil
		default:
			return cty.NilVal, function.NewArgErrorf(0, "it has %d elements; the function one takes at most one element", n)
		}
	},
})

var containsTextFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Bool),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return cty.BoolVal(strings.Contains(args[0].AsString(), args[1].AsString())), nil
	},
})

var sha256Func = function.New(&function.Spec{
	Params: stringParam,
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		sum := sha256.Sum256([]byte(args[0].AsString()))
		return cty.StringVal(hex.EncodeToString(sum[:])), nil
	},
})

// textFunc returns a function of one text whose result is a text.
func textFunc(name string, of func(string) string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: name, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(of(args[0].AsString())), nil
		},
	})
}

// nonsensitiveFunc removes the marks of sensitive values: the author of the recipe
// decides that this value may be shown and stored.
var nonsensitiveFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowUnknown: true, AllowDynamicType: true, AllowMarked: true}},
	Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v, _ := args[0].UnmarkDeep()
		return v, nil
	},
})

var timeCmpFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "a", Type: cty.String}, {Name: "b", Type: cty.String}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		var times [2]time.Time
		for k, v := range args {
			t, err := time.Parse(time.RFC3339, v.AsString())
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(k, "a time such as 2006-01-02T15:04:05Z is required")
			}
			times[k] = t
		}
		return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
	},
})

// replaceFunc replaces a substring, or what a pattern between slashes matches.
var replaceFunc = function.New(&function.Spec{
	Params: stdlib.ReplaceFunc.Params(),
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if pattern, ok := patternIn(args[1].AsString()); ok {
			return stdlib.RegexReplace(args[0], cty.StringVal(pattern), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

// patternIn returns the pattern of a text such as /[0-9]+/.
func patternIn(text string) (string, bool) {
	if len(text) < 3 || text[0] != '/' || text[len(text)-1] != '/' {
		return "", false
	}
	return text[1 : len(text)-1], true
}
