package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// referenceVariable reads the type of a variable for references: the word for a kind of
// thing, or a list, set or map of it.
func (vs *variables) referenceVariable(d *declaration, expr hcl.Expression) (cty.Type, bool) {
	kinds := []string{"channel", "creature", "species", "predicate"}
	if kind := hcl.ExprAsKeyword(expr); slices.Contains(kinds, kind) {
		d.refersTo = kind
		return referenceType, true
	}
	call, diags := hcl.ExprCall(expr)
	if diags.HasErrors() || len(call.Arguments) != 1 {
		return cty.NilType, false
	}
	kind := hcl.ExprAsKeyword(call.Arguments[0])
	collection := map[string]func(cty.Type) cty.Type{"list": cty.List, "set": cty.Set, "map": cty.Map}[call.Name]
	if collection == nil || !slices.Contains(kinds, kind) {
		return cty.NilType, false
	}
	d.refersTo = kind
	return collection(referenceType), true
}

// checkReferences reports a value that refers to things of another kind than the type of
// the variable.
func (vs *variables) checkReferences(d *declaration, v cty.Value) bool {
	if d.refersTo == "" || v.IsNull() {
		return true
	}
	in := vs.inputs[d.name]
	if in.owner == nil {
		return true // only sub-recipes are given references
	}
	v, _ = v.UnmarkDeep()
	each := []cty.Value{v}
	if !v.Type().Equals(referenceType) {
		each = v.AsValueSlice()
	}
	for _, e := range each {
		if _, ok := refAddress(e, d.refersTo); !ok {
			in.owner.wrongReference(in.scope, in.expr, e, d.refersTo)
			return false
		}
	}
	return true
}
