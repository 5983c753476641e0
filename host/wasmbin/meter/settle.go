package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// goesTo calls visit with the frame of every label at which a segment may
// continue.
func (p *planner) goesTo(s *segment, visit func(frame int32)) {
	for _, f := range p.edges[s.firstEdge:s.lastEdge] {
		visit(f)
	}
	if s.skips != none {
		visit(s.skips)
	}
}

// trapsAt reports whether every path from the label of a frame ends in a trap.
func (p *planner) trapsAt(frame int32) bool {
	f := &p.frames[frame]
	return f.op != wasmbin.OpLoop && f.after != none && p.segments[f.after].traps
}

// findTraps finds the segments from which every path ends in a trap, after
// which a guest never runs again.
func (p *planner) findTraps() {
	for i := len(p.segments) - 1; i >= 0; i-- {
		s := &p.segments[i]
		if s.traps {
			continue
		}
		ways, traps := 0, true
		for _, t := range [...]int32{s.next, s.alt} {
			if t != none {
				ways++
				traps = traps && p.segments[t].traps
			}
		}
		p.goesTo(s, func(f int32) {
			ways++
			traps = traps && p.trapsAt(f)
		})
		s.traps = ways > 0 && traps
	}
}

// findOuter finds for each frame the outermost frame that a path from inside
// leads to. Paths that end in a trap do not count.
func (p *planner) findOuter() {
	note := func(from, to int32) {
		if f := &p.frames[from]; p.frames[to].depth < p.frames[f.outer].depth {
			f.outer = to
		}
	}
	for i := range p.segments {
		s := &p.segments[i]
		p.goesTo(s, func(f int32) {
			if !p.trapsAt(f) {
				note(s.frame, f)
			}
		})
	}
	for i := len(p.frames) - 1; i > 0; i-- {
		note(p.frames[i].parent, p.frames[i].outer)
	}
}

// addJoins adds to the cost of each segment the moves of its worst branch: the
// operands it carries, and the locals that differ where paths meet.
func (p *planner) addJoins() {
	for i := range p.segments {
		s := &p.segments[i]
		worst := int64(0)
		p.goesTo(s, func(id int32) {
			f := &p.frames[id]
			cost := beyond(f.operands, freeOperands)
			if f.parent != none {
				cost += beyond(min(f.sets, p.locals), freeLocals)
			}
			worst = max(worst, cost)
		})
		s.cost += worst
	}
}

// settle chooses what is paid in advance, from the last segment to the first.
// All successors of a segment come after it, except for the labels of loops,
// which are settled where the loop ends.
//
//   - After a block or if with no other exit, everything is paid in advance:
//     every path into the construct leads there.
//   - At a branch, a path is paid in advance if it needs at most slack more
//     than the cheapest.
//   - The cost after a loop is paid when the loop is entered and kept while it
//     runs: its label needs as much as the code after the loop.
//   - A segment that needs more than maxRun is never paid in advance.
//     Otherwise a guest could run all of its code, however long, after a
//     single pause.
func (p *planner) settle() {
	ends := p.ends
	for i := len(p.segments) - 1; i >= 0; i-- {
		for len(ends) > 0 && int(ends[len(ends)-1].segment) >= i {
			p.settleLoop(ends[len(ends)-1].frame)
			ends = ends[:len(ends)-1]
		}
		p.settleSegment(&p.segments[i])
	}
	p.segments[0].in = 0
}

func (p *planner) settleLoop(id int32) {
	f := &p.frames[id]
	switch {
	case f.outer != id:
		f.level = p.level(f.outer)
	case f.after != none && !p.segments[f.after].traps:
		f.level = p.segments[f.after].advance()
	}
}

// level returns in of the segment at the label of a frame; for the function,
// of its return.
func (p *planner) level(id int32) int64 {
	f := &p.frames[id]
	switch {
	case f.op == wasmbin.OpLoop:
		return f.level
	case f.after == none:
		return 0
	}
	return p.segments[f.after].in
}

func (p *planner) settleSegment(s *segment) {
	if p.exact {
		s.need = s.cost
		return
	}
	base, most := p.cheapest(s), int64(0)
	for _, t := range [...]int32{s.next, s.alt} {
		if t == none {
			continue
		}
		next := &p.segments[t]
		switch advance := next.advance(); {
		case next.traps:
			next.in = 0
		case advance <= base+p.slack:
			next.in = advance
		default:
			next.in = base
		}
		most = max(most, next.in)
	}
	p.goesTo(s, func(f int32) { most = max(most, p.level(f)) })
	s.need = s.cost + most
	if s.label != none {
		s.in = p.labelIn(s)
	}
}

// cheapest returns the least need of the segments that may follow a segment.
func (p *planner) cheapest(s *segment) int64 {
	least := int64(-1)
	note := func(need int64) {
		if least < 0 || need < least {
			least = need
		}
	}
	for _, t := range [...]int32{s.next, s.alt} {
		if t != none && !p.segments[t].traps {
			note(p.segments[t].advance())
		}
	}
	p.goesTo(s, func(f int32) {
		if !p.trapsAt(f) {
			note(p.level(f))
		}
	})
	return max(0, least)
}

// labelIn chooses in for the segment at a label.
func (p *planner) labelIn(s *segment) int64 {
	f := &p.frames[s.label]
	switch {
	case f.op == wasmbin.OpLoop:
		return f.level
	case s.traps:
		return 0
	case f.outer == s.label:
		return s.advance()
	}
	least := p.level(f.outer)
	if s.advance() <= least+p.slack {
		return s.advance()
	}
	return least
}

// placeChecks places checks of the fuel at the start, at the labels of loops
// and wherever else too much work could be done without one. Segments are in
// an order in which only loops lead back.
func (p *planner) placeChecks() {
	p.segments[0].check = true
	for i := range p.segments {
		s := &p.segments[i]
		if s.label != none {
			f := &p.frames[s.label]
			s.check = f.op == wasmbin.OpLoop
			s.run = max(s.run, f.run)
		}
		s.check = s.check || s.run+s.work() > maxRun
		run := s.work()
		if !s.check {
			run += s.run
		}
		for _, t := range [...]int32{s.next, s.alt} {
			if t != none {
				p.segments[t].run = run
			}
		}
		p.goesTo(s, func(f int32) { p.frames[f].run = max(p.frames[f].run, run) })
	}
}
