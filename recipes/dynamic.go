package recipes

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/zclconf/go-cty/cty"
)

const maxMade = 1024

func (rep *reporter) usesDynamic(t string, b *hcl.Block, nested hcl.Blocks) bool {
	i := slices.IndexFunc(nested, func(n *hcl.Block) bool { return n.Type == dynamic })
	if i < 0 {
		return false
	}
	if !slices.Contains(templates, b.Type) {
		rep.report(scope{title: t}, nested[i].DefRange, Diagnostic{Summary: "No dynamic blocks here",
			Detail: "Dynamic blocks can only be used in creatures, species and catalogs.", Remedy: "Write out the blocks instead."})
		return false
	}
	return true
}

// blocks returns the nested blocks of a declaration, including those that dynamic blocks
// make for the current instance.
func (ev *evaluator) blocks(s scope, d *declaration) hcl.Blocks {
	switch {
	case d.content == nil:
		return nil
	case !d.dynamic:
		return d.content.Blocks
	case !d.madeOnce || d.madeFor != s.each:
		d.made = ev.expandBlocks(s, d)
		d.madeFor, d.madeOnce = s.each, true
	}
	return d.made
}

func (ev *evaluator) expandBlocks(s scope, d *declaration) hcl.Blocks {
	references, _ := dynblock.WalkExpandVariables(d.body).Visit(schemas[d.kind])
	p := ev.lookUp(s, references)
	if !p.ok || p.usesEach && s.each == nil {
		return d.content.Blocks
	}
	content, diags := expandAll(dynblock.Expand(d.body, s.context(p), dynblock.OptCheckForEach(fewEnough)), d)
	for _, h := range diags {
		ev.hcl(d.title, h)
	}
	return ev.distinct(d.title, content.Blocks)
}

func expandAll(body hcl.Body, d *declaration) (content *hcl.BodyContent, diags hcl.Diagnostics) {
	defer func() {
		r := recover()
		if x, ok := r.(excess); ok {
			content, diags = d.content, hcl.Diagnostics{x.diagnostic()}
		} else if r != nil {
			panic(r)
		}
	}()
	return body.Content(schemas[d.kind])
}

func fewEnough(v cty.Value, expr hcl.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	v, _ = v.Unmark()
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() || v.LengthInt() <= maxMade {
		return nil
	}
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Unusable for_each", Subject: expr.Range().Ptr(), Expression: expr, EvalContext: ctx,
		Detail: fmt.Sprintf("It has %d elements; a dynamic block makes at most %d blocks.", v.LengthInt(), maxMade)}}
}
