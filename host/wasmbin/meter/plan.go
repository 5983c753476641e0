package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// slack is how much more than the cheapest path may be paid in advance, in
// units, to save a charge at a branch. It bounds the charge for work that is
// then not done, per branch.
const slack = 16

// maxRun is how much work may lie between two checks of the fuel, in units:
// longer paths get another check.
const maxRun = 16 << 10

const none = -1

// plan says where in a body fuel is charged, and how much.
//
// A body is cut into segments, each entered only at its start and left only at
// its end. need(s) is the amount that must have been paid when s begins: the
// cost of s plus the least amount that must already have been paid at the
// start of any segment that can follow. That amount is in(t) for a segment t,
// and t itself charges need(t) - in(t). So on every path at least its cost has
// been charged before the work is done.
//
// in(t) remains to be chosen. A larger one saves charges, because need(t) =
// in(t) needs none; a smaller one wastes less if s can be followed by a
// cheaper segment than t. The rules are in [planner.settle].
type plan struct {
	segments []segment // in the order of the body
	loops    bool      // there are reachable loops
	calls    bool      // there are calls of functions other than leaves
	sizes    bool      // there are bulk instructions whose size is not a constant
	joins    int       // locals that have to be merged where paths meet
}

// segment is a part of a body that is run from its start to its end.
type segment struct {
	at    int // where it starts in the body
	cost  int64
	later int64 // the most that its bulk instructions charge once their size is known
	need  int64
	in    int64
	check bool // check the fuel here

	frame int32 // the innermost frame at its end
	label int32 // the block, if or loop whose label is here, or none
	// The labels it may branch to: edges[firstEdge:lastEdge].
	firstEdge, lastEdge int32
	// The segments that only this one leads to, or none.
	next, alt int32
	skips     int32 // the if without else that it may skip, or none
	traps     bool  // every path from here ends in a trap
	run       int64 // the most work since the last check of the fuel when it begins
}

// charge returns the cost of the segment beyond the amount paid when it
// begins.
func (s *segment) charge() int64 { return max(0, s.need-s.in) }

// advance returns the most that may be paid for the segment in advance.
func (s *segment) advance() int64 {
	if s.need > maxRun {
		return 0
	}
	return s.need
}

// work returns the most work in the segment.
func (s *segment) work() int64 { return s.cost + s.later }

// frame is a construct with a label: block, loop, if, or the function.
type frame struct {
	op       wasmbin.Opcode // OpBlock for the function
	parent   int32
	depth    int32
	after    int32 // the segment after its end, or none
	opener   int32 // of an if: the segment that ends with it, none in dead code
	outer    int32 // the outermost frame that code inside branches to; itself if there is none
	stamp    int32 // the last segment for which an edge was recorded
	sets     int   // instructions inside that set a local
	operands int   // carried by a branch to the label
	other    bool  // of an if: it has an else
	targeted bool  // a branch reaches the label
	level    int64 // of a loop: in of its label
	run      int64 // run of the segment after its end
}

// planner makes plans for one body after another.
type planner struct {
	view   *moduleView
	slack  int64
	exact  bool // pay nothing in advance
	locals int  // of the function, parameters included

	segments []segment
	frames   []frame
	edges    []int32
	open     []int32 // open frames
	ends     []loopEnd
	current  int32 // the segment that instructions belong to, none in dead code
	calls    bool  // as in plan
	sizes    bool
	joins    int
}

// loopEnd records that a loop ends after a segment.
type loopEnd struct{ frame, segment int32 }

// plan makes the plan for a body. It is valid until the next call. entry is
// the cost of entering the function before its first instruction.
func (p *planner) plan(body []byte, results, locals int, entry int64) plan {
	p.locals = locals
	p.segments, p.frames, p.edges, p.open, p.ends = p.segments[:0], p.frames[:0], p.edges[:0], p.open[:0], p.ends[:0]
	p.current, p.calls, p.sizes, p.joins = none, false, false, 0
	p.push(wasmbin.OpBlock, results)
	p.begin(0)
	p.segments[0].cost = entry
	p.scan(body)
	p.findTraps()
	p.findOuter()
	p.addJoins()
	p.settle()
	p.placeChecks()
	return plan{segments: p.segments, loops: len(p.ends) > 0, calls: p.calls, sizes: p.sizes, joins: p.joins}
}

// push opens a frame.
func (p *planner) push(op wasmbin.Opcode, operands int) int32 {
	id := int32(len(p.frames))
	f := frame{op: op, parent: none, after: none, opener: none, outer: id, stamp: none, operands: operands}
	if len(p.open) > 0 {
		f.parent = p.open[len(p.open)-1]
		f.depth = int32(len(p.open))
	}
	p.frames = append(p.frames, f)
	p.open = append(p.open, id)
	return id
}

// begin starts a segment at an offset and makes it the current one.
func (p *planner) begin(at int) int32 {
	p.current = int32(len(p.segments))
	edge := int32(len(p.edges))
	p.segments = append(p.segments, segment{at: at, label: none, next: none, alt: none, skips: none, firstEdge: edge, lastEdge: edge})
	return p.current
}

// follow ends the current segment and begins another that only it leads to. In
// dead code there is nothing to follow.
func (p *planner) follow(at int) {
	if before := p.finish(); before != none {
		p.segments[before].next = p.begin(at)
	}
}

// finish ends the current segment and returns it.
func (p *planner) finish() int32 {
	id := p.current
	if id != none {
		s := &p.segments[id]
		s.frame = p.top()
		s.lastEdge = int32(len(p.edges))
		p.current = none
	}
	return id
}

// branch records that the current segment may continue at the label of a
// frame.
func (p *planner) branch(to int32) {
	f := &p.frames[to]
	if p.current == none || f.stamp == p.current {
		return
	}
	f.stamp = p.current
	f.targeted = true
	p.edges = append(p.edges, to)
}

// top returns the innermost open frame.
func (p *planner) top() int32 { return p.open[len(p.open)-1] }

// target returns the frame of a label index.
func (p *planner) target(label uint32) int32 { return p.open[len(p.open)-1-int(label)] }
