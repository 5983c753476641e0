package meter

import (
	"math/rand/v2"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// TestEveryWayIsCharged follows random paths through the bodies of random
// modules, and compares at every instruction the charge with the cost of the
// instructions so far.
func TestEveryWayIsCharged(t *testing.T) {
	for seed := range uint64(400) {
		wasm := wasmgen.Generate(wasmgen.Seeded(seed))
		m, err := wasmbin.Read(wasm, wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		infos, err := m.Validate(wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p := &planner{view: newView(m), slack: slack}
		findLeaves(m, p)
		for i := range m.Code {
			w := newWalker(m, &infos[i], i, p)
			for range 5 {
				if reason := w.walk(rand.New(rand.NewPCG(seed, uint64(i))), 2000); reason != "" {
					t.Fatalf("seed %d, function %d: %s", seed, i, reason)
				}
			}
		}
	}
}

// walker follows the control flow of a body by the rules of the standard,
// independently of segments.
type walker struct {
	view    *moduleView
	instrs  []wasmbin.Instr
	charges map[int]int64 // by offset
	checks  map[int]bool
	ends    map[int]int // maps the index of a block, loop, if or else to the index of its end
	elses   map[int]int
}

func newWalker(m *wasmbin.Module, info *wasmbin.FuncInfo, i int, p *planner) *walker {
	w := &walker{view: p.view, charges: map[int]int64{}, checks: map[int]bool{}, ends: map[int]int{}, elses: map[int]int{}}
	it := wasmbin.NewInstrs(m.Code[i].Body)
	var open []int
	for it.Next() {
		n := len(w.instrs)
		w.instrs = append(w.instrs, it.Instr)
		switch it.Op {
		case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
			open = append(open, n)
		case wasmbin.OpElse:
			w.elses[open[len(open)-1]] = n
		case wasmbin.OpEnd:
			if len(open) > 0 {
				w.ends[open[len(open)-1]] = n
				open = open[:len(open)-1]
			}
		}
	}
	planned := p.plan(m.Code[i].Body, len(m.Types[m.Funcs[i]].Results), int(info.Params+info.Locals), entryCost(info))
	for _, s := range planned.segments {
		w.charges[s.at] += s.charge()
		w.checks[s.at] = s.check
	}
	return w
}

// walk follows one path of at most that many instructions and returns the
// problems.
func (w *walker) walk(r *rand.Rand, most int) string {
	var open []int // open blocks, by index
	charged, cost, unchecked := int64(0), int64(0), int64(0)
	for pc, steps := 0, 0; pc < len(w.instrs) && steps < most; steps++ {
		in := &w.instrs[pc]
		charged += w.charges[in.Start]
		if w.checks[in.Start] {
			unchecked = 0
		}
		var before wasmbin.Instr
		if pc > 0 {
			before = w.instrs[pc-1]
		}
		own := w.view.cost(in, &before)
		cost += own
		unchecked += own
		switch {
		case charged < cost:
			return "at " + in.Op.String() + " more is done than charged"
		case unchecked > maxRun+maxSegment:
			return "at " + in.Op.String() + " too much is done without a check"
		}
		pc, open = w.step(r, pc, open)
	}
	return ""
}

// step returns the next instruction, or one beyond the end if the function
// returns.
func (w *walker) step(r *rand.Rand, pc int, open []int) (int, []int) {
	in := &w.instrs[pc]
	branch := func(label uint32) (int, []int) {
		if int(label) >= len(open) {
			return len(w.instrs), nil
		}
		target := open[len(open)-1-int(label)]
		if w.instrs[target].Op == wasmbin.OpLoop {
			return target + 1, open[:len(open)-int(label)]
		}
		return w.ends[target] + 1, open[:len(open)-1-int(label)]
	}
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop:
		return pc + 1, append(open, pc)
	case wasmbin.OpIf:
		other, ok := w.elses[pc]
		switch {
		case r.IntN(2) == 0:
			return pc + 1, append(open, pc)
		case ok:
			return other + 1, append(open, pc)
		}
		return w.ends[pc] + 1, open
	case wasmbin.OpElse:
		return w.ends[open[len(open)-1]] + 1, open[:len(open)-1]
	case wasmbin.OpEnd:
		if len(open) > 0 {
			open = open[:len(open)-1]
		}
	case wasmbin.OpBr:
		return branch(in.Index)
	case wasmbin.OpBrIf:
		if r.IntN(2) == 0 {
			return branch(in.Index)
		}
	case wasmbin.OpBrTable:
		skip := r.IntN(int(in.Count) + 1)
		for label := range in.Labels() {
			if skip == 0 {
				return branch(label)
			}
			skip--
		}
	case wasmbin.OpReturn, wasmbin.OpUnreachable:
		return len(w.instrs), nil
	}
	return pc + 1, open
}
