package recipes

import (
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// TestConversionsAgree compares tolist and toset with the conversion of cty, also where the
// types of the elements need not be compared with each other.
func TestConversionsAgree(t *testing.T) {
	text, number := cty.StringVal("a"), cty.NumberIntVal(1)
	secret := func(v cty.Value) cty.Value { return v.Mark(sensitiveMark{}) }
	object := cty.ObjectVal(map[string]cty.Value{"x": number})
	for _, v := range []cty.Value{
		cty.TupleVal([]cty.Value{text, cty.StringVal("b"), text}),
		cty.TupleVal([]cty.Value{text}),
		cty.EmptyTupleVal,
		cty.TupleVal([]cty.Value{text, number}),
		cty.TupleVal([]cty.Value{number, number}),
		cty.TupleVal([]cty.Value{object, object}),
		cty.TupleVal([]cty.Value{object, cty.EmptyObjectVal}),
		cty.TupleVal([]cty.Value{text, cty.NullVal(cty.String)}),
		cty.TupleVal([]cty.Value{text, cty.NullVal(cty.DynamicPseudoType)}),
		cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType)}),
		cty.TupleVal([]cty.Value{text, cty.UnknownVal(cty.String)}),
		cty.TupleVal([]cty.Value{cty.DynamicVal, cty.DynamicVal}),
		cty.TupleVal([]cty.Value{text, secret(cty.StringVal("b"))}),
		secret(cty.TupleVal([]cty.Value{text, cty.StringVal("b")})),
		secret(cty.TupleVal([]cty.Value{secret(text), number})),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{text}), cty.TupleVal([]cty.Value{text})}),
		cty.NullVal(cty.Tuple([]cty.Type{cty.String, cty.String})),
		cty.ListVal([]cty.Value{text, text}),
		cty.SetVal([]cty.Value{text}),
		text,
	} {
		for _, to := range []cty.Type{cty.List(cty.DynamicPseudoType), cty.Set(cty.DynamicPseudoType), cty.Map(cty.DynamicPseudoType), cty.String} {
			want, wantErr := convert.Convert(v, to)
			got, err := conversion(to).Call([]cty.Value{v})
			if (err == nil) != (wantErr == nil) || err == nil && !got.RawEquals(want) {
				t.Errorf("%#v to %#v: %#v, %v; want %#v, %v", v, to, got, err, want, wantErr)
			}
		}
	}
}
