package recipes

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/seed47132306/terrarium/internal/plainly"
)

// functions returns the functions for expressions. All are pure except those of files,
// which read within the recipe's folder.
func (f *folder) functions() map[string]function.Function {
	fns := map[string]function.Function{"file": f.fileFunc(), "fileexists": f.fileExistsFunc(), "fileset": f.fileSetFunc()}
	for _, b := range builtinFunctions {
		fns[b.name] = b.fn
	}
	boundFunctions(fns)
	boundAll(fns)
	fns["templatefile"] = f.templateFunc(fns)
	return fns
}

// lengthFunc also counts the characters of a string.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsCollectionType() || ty.IsTupleType() || ty.IsObjectType() {
			return cty.Number, nil
		}
		return cty.Number, function.NewArgErrorf(0, "a %s has no length", ty.FriendlyName())
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		switch {
		case !v.IsKnown():
			return cty.UnknownVal(cty.Number), nil
		case v.Type() == cty.String:
			return stdlib.Strlen(v)
		case v.Type().IsObjectType():
			return cty.NumberIntVal(int64(len(v.Type().AttributeTypes()))), nil
		default:
			return stdlib.Length(v)
		}
	},
})

// conversion returns a function that converts a value to a type. The element type of a
// collection may be left open.
func conversion(to cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true, AllowMarked: true, AllowDynamicType: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if ty, alike := alikeIn(args[0], to); alike {
				return ty, nil
			}
			v, err := convert.Convert(args[0], to)
			if err != nil {
				return cty.NilType, function.NewArgErrorf(0, "cannot make a %s of this: %s", to.FriendlyNameForConstraint(), err)
			}
			return v.Type(), nil
		},
		Impl: func(args []cty.Value, ty cty.Type) (cty.Value, error) {
			if _, alike := alikeIn(args[0], to); !alike {
				return convert.Convert(args[0], to)
			}
			v, marks := args[0].Unmark()
			if ty.IsListType() {
				return cty.ListVal(v.AsValueSlice()).WithMarks(marks), nil
			}
			return cty.SetVal(v.AsValueSlice()).WithMarks(marks), nil
		},
	})
}

// alikeIn is the type of a tuple whose elements have one type, as a list or set of any
// elements. [convert.Convert] compares the types of all elements with each other, which takes
// seconds for ten thousand of them.
func alikeIn(v cty.Value, to cty.Type) (cty.Type, bool) {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.Type().IsTupleType() || !to.IsListType() && !to.IsSetType() || to.ElementType() != cty.DynamicPseudoType {
		return cty.NilType, false
	}
	types := v.Type().TupleElementTypes()
	if len(types) == 0 || types[0].HasDynamicTypes() || slices.ContainsFunc(types[1:], func(ty cty.Type) bool { return !ty.Equals(types[0]) }) {
		return cty.NilType, false
	}
	if to.IsListType() {
		return cty.List(types[0]), true
	}
	return cty.Set(types[0]), true
}

var stringParam = []function.Parameter{{Name: "text", Type: cty.String}}

// jsonDecodeFunc refuses texts for which the decoder would recurse too deeply.
var jsonDecodeFunc = function.New(&function.Spec{
	Params: stringParam,
	Type: func(args []cty.Value) (cty.Type, error) {
		if !args[0].IsKnown() {
			return cty.DynamicPseudoType, nil
		}
		if jsonTooDeep([]byte(args[0].AsString()), maxJSONDepth) >= 0 {
			return cty.NilType, function.NewArgErrorf(0, "the JSON is nested more than %d levels deep", maxJSONDepth)
		}
		t, err := stdlib.JSONDecodeFunc.ReturnTypeForValues(args)
		if err != nil {
			text := []byte(args[0].AsString())
			if wrong := json.Unmarshal(text, new(json.RawMessage)); wrong != nil {
				err = function.NewArgErrorf(0, "this is not JSON: %v", plainly.JSON(text, wrong))
			}
		}
		return t, err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return stdlib.JSONDecode(args[0]) },
})

var base64EncodeFunc = function.New(&function.Spec{
	Params: stringParam,
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		return cty.StringVal(base64.StdEncoding.EncodeToString([]byte(args[0].AsString()))), nil
	},
})

var base64DecodeFunc = function.New(&function.Spec{
	Params: stringParam,
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		data, err := base64.StdEncoding.DecodeString(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "this is not base64; use base64encode, or padded base64 of the standard alphabet")
		}
		if !utf8.Valid(data) {
			return cty.NilVal, function.NewArgErrorf(0, "the decoded bytes are not UTF-8 text")
		}
		return cty.StringVal(string(data)), nil
	},
})

func affixFunc(name string, has func(s, affix string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: name, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(has(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func (f *folder) fileFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := f.text(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

func (f *folder) text(name string) (string, error) {
	data, err := f.file(name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%q is not UTF-8 text", name)
	}
	return string(data), nil
}

// templateFunc renders a template with the given variables. A template cannot read other
// templates, so there is no recursion.
func (f *folder) templateFunc(fns map[string]function.Function) function.Function {
	inner := maps.Clone(fns)
	render := func(args []cty.Value) (cty.Value, error) {
		name := args[0].AsString()
		text, err := f.text(name)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		if d := measure(hclsyntax.LexTemplate, []byte(text), name); d != nil {
			return cty.NilVal, function.NewArgErrorf(0, "%s: %s", d.Subject, d.Summary)
		}
		tmpl, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
		if diags.HasErrors() {
			return cty.NilVal, function.NewArgError(0, diags)
		}
		own := &spending{left: maxMatching}
		ctx := &hcl.EvalContext{Functions: inner, Variables: map[string]cty.Value{spendingName: own.value()}}
		if ty := args[1].Type(); !ty.IsObjectType() && !ty.IsMapType() {
			return cty.NilVal, function.NewArgErrorf(1, "the variables must be an object or a map")
		}
		for it := args[1].ElementIterator(); it.Next(); {
			k, v := it.Element()
			ctx.Variables[k.AsString()] = v
		}
		v, diags := valueOf(meterTree(tmpl), ctx)
		if diags.HasErrors() {
			return cty.NilVal, function.NewArgError(0, diags)
		}
		return v, nil
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			if !args[0].IsKnown() || !args[1].IsWhollyKnown() {
				return cty.DynamicPseudoType, nil
			}
			v, err := render(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return render(args) },
	})
}
