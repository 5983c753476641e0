package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// maxSegment is the most units of a segment, so that the fuel can be checked
// in the middle of long straight-line code.
const maxSegment = maxRun / 2

// scan cuts the body into segments.
func (p *planner) scan(body []byte) {
	it := wasmbin.NewInstrs(body)
	var before wasmbin.Instr
	for it.Next() {
		p.instruction(&it.Instr, &before)
		before = it.Instr
	}
}

func (p *planner) instruction(in, before *wasmbin.Instr) {
	if p.current != none {
		p.segments[p.current].cost += p.view.cost(in, before)
	}
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		p.enter(in)
	case wasmbin.OpElse:
		p.otherwise(in)
	case wasmbin.OpEnd:
		p.leave(in)
	case wasmbin.OpBr:
		p.branch(p.target(in.Index))
		p.finish()
	case wasmbin.OpBrIf:
		p.branch(p.target(in.Index))
		p.follow(in.End)
	case wasmbin.OpBrTable:
		for label := range in.Labels() {
			p.branch(p.target(label))
		}
		p.finish()
	case wasmbin.OpReturn:
		p.branch(p.open[0])
		p.finish()
	case wasmbin.OpUnreachable:
		if s := p.finish(); s != none {
			p.segments[s].traps = true
		}
	case wasmbin.OpLocalSet, wasmbin.OpLocalTee:
		p.frames[p.top()].sets++
	case wasmbin.OpCall:
		p.calls = p.calls || p.view.leaf(in.Index) == 0
	case wasmbin.OpCallIndirect:
		p.calls = true
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		p.bulk(before)
	}
	if p.current != none && p.segments[p.current].work() > maxSegment {
		p.follow(in.End)
	}
}

// bulk records a bulk memory instruction.
func (p *planner) bulk(before *wasmbin.Instr) {
	if _, constant := constSize(before); constant {
		return
	}
	p.sizes = true
	if p.current != none {
		p.segments[p.current].later += shortBytes / bytesPerUnit
	}
}

// enter opens a block, loop or if.
func (p *planner) enter(in *wasmbin.Instr) {
	params, results := p.view.arity(in.Block)
	switch in.Op {
	case wasmbin.OpBlock:
		p.push(in.Op, results)
	case wasmbin.OpLoop:
		live := p.current != none
		id := p.push(in.Op, params)
		if !live {
			return
		}
		p.frames[id].opener = p.current
		p.branch(id)
		p.open = p.open[:len(p.open)-1] // the preceding segment ends outside
		p.finish()
		p.open = append(p.open, id)
		p.begin(in.End)
		p.segments[p.current].label = id
	case wasmbin.OpIf:
		opener := p.finish()
		id := p.push(in.Op, results)
		p.frames[id].opener = opener
		if opener != none {
			p.segments[opener].next = p.begin(in.End)
		}
	}
}

// otherwise begins the else of an if.
func (p *planner) otherwise(in *wasmbin.Instr) {
	id := p.top()
	f := &p.frames[id]
	f.other = true
	p.branch(id)
	p.finish()
	if opener := p.frames[id].opener; opener != none {
		p.segments[opener].alt = p.begin(in.End)
	}
}

// leave closes the innermost frame.
func (p *planner) leave(in *wasmbin.Instr) {
	id := p.top()
	f := &p.frames[id]
	switch {
	case f.op == wasmbin.OpLoop:
		p.leaveLoop(id, in.End)
		return
	case f.op == wasmbin.OpIf && !f.other && f.opener != none:
		p.segments[f.opener].skips = id
		f.targeted = true
	}
	if f.targeted || f.op == wasmbin.OpIf || f.parent == none {
		p.branch(id)
		p.finish()
	}
	p.pop()
	if f.targeted && f.parent != none {
		f.after = p.begin(in.End)
		p.segments[f.after].label = id
	}
}

// leaveLoop closes a loop. Its label is at its start, so that only its last
// segment leads to the code after it.
func (p *planner) leaveLoop(id int32, at int) {
	if p.frames[id].opener != none {
		p.ends = append(p.ends, loopEnd{id, int32(len(p.segments)) - 1})
	}
	before := p.finish()
	p.pop()
	if before != none {
		after := p.begin(at)
		p.segments[before].next = after
		p.frames[id].after = after
	}
}

func (p *planner) pop() {
	f := &p.frames[p.top()]
	p.open = p.open[:len(p.open)-1]
	if f.parent == none {
		return
	}
	p.frames[f.parent].sets += f.sets
	if f.targeted {
		p.joins += min(f.sets, p.locals)
	}
}
