package meter

import (
	"math"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// The bounds of a leaf: the size of its instructions in bytes, and their cost
// in units.
const (
	leafBytes = 96
	leafCost  = 32
)

// findLeaves finds the functions that are so small that their callers pay for
// them. They call nothing, have no loops, and are reached only by call
// instructions: neither by the host nor through a table.
func findLeaves(m *wasmbin.Module, p *planner) {
	v := p.view
	found := make([]int64, len(m.Code))
	p.slack = math.MaxInt64 / 4 // all paths cost as much as the most expensive
	for i := range m.Code {
		if body := m.Code[i].Body; len(body) <= leafBytes && isLeaf(body) {
			t := v.funcType(v.imported + uint32(i))
			locals := len(t.Params) + m.Code[i].LocalCount()
			planned := p.plan(body, len(t.Results), locals, 1)
			if cost := planned.segments[0].need; !planned.loops && cost <= leafCost && locals <= leafCost {
				found[i] = cost
			}
		}
	}
	p.slack = slack
	referenced(m, func(f uint32) {
		if f >= v.imported {
			found[f-v.imported] = 0
		}
	})
	v.leaves = found
}

// referenced calls visit for the functions that can be called other than by a
// call instruction. Functions named by ref.func in code are among them,
// because they must also occur elsewhere.
func referenced(m *wasmbin.Module, visit func(function uint32)) {
	expr := func(e *wasmbin.ConstExpr) {
		if e.Op == wasmbin.OpRefFunc {
			visit(e.Index)
		}
	}
	for i := range m.Exports {
		if m.Exports[i].Kind == wasmbin.ExternFunc {
			visit(m.Exports[i].Index)
		}
	}
	for i := range m.Globals {
		expr(&m.Globals[i].Init)
	}
	for i := range m.Elements {
		for _, f := range m.Elements[i].Funcs {
			visit(f)
		}
		for j := range m.Elements[i].Exprs {
			expr(&m.Elements[i].Exprs[j])
		}
	}
	if m.Start != nil {
		visit(*m.Start)
	}
}

// isLeaf reports whether a body calls nothing.
func isLeaf(body []byte) bool {
	it := wasmbin.NewInstrs(body)
	for it.Next() {
		switch it.Op {
		case wasmbin.OpCall, wasmbin.OpCallIndirect, wasmbin.OpRefFunc, wasmbin.OpLoop, wasmbin.OpMemoryGrow,
			wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit,
			wasmbin.OpTableGrow, wasmbin.OpTableCopy, wasmbin.OpTableInit, wasmbin.OpTableFill:
			return false
		}
	}
	return true
}
