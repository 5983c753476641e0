package meter

import "github.com/seed47132306/terrarium/host/wasmbin"

// emitter rewrites bodies, one after another.
type emitter struct {
	asm
	view     *moduleView
	helpers  *helpers
	segments []segment // not reached yet

	cached bool // the fuel is also in the local fuel
	calls  bool // the depth is in the local depth
	// Locals that are added: used as the fields above say, and size when a bulk
	// instruction needs it.
	fuel, depth, size uint32
	weight            int64

	origins *Origins // records where code comes from; nil in Instrument
}

// function rewrites the code of a metered function.
func (e *emitter) function(code *wasmbin.Code, p plan, info *wasmbin.FuncInfo) wasmbin.Code {
	e.segments, e.cached, e.calls = p.segments, p.loops, p.calls
	e.weight = frameWeight(info, p.joins)
	locals := code.Locals
	free := info.Params + info.Locals
	add := func(wanted bool, t wasmbin.ValueType) uint32 {
		if !wanted {
			return 0
		}
		locals = append(locals[:len(locals):len(locals)], wasmbin.LocalGroup{Count: 1, Type: t})
		free++
		return free - 1
	}
	e.fuel = add(e.cached, wasmbin.I64)
	e.depth = add(e.calls, wasmbin.I64)
	e.size = add(p.sizes, wasmbin.I32)
	e.code = make([]byte, 0, len(code.Body)+len(code.Body)/2+64)
	e.from(0, inserted)
	e.enter()
	e.body(code.Body)
	return wasmbin.Code{Locals: locals, Body: e.code}
}

// leaf renumbers the code of a leaf, whose callers pay for it.
func (e *emitter) leaf(code *wasmbin.Code) wasmbin.Code {
	e.segments, e.cached, e.calls = nil, false, false
	e.code = make([]byte, 0, len(code.Body)+8)
	e.body(code.Body)
	return wasmbin.Code{Locals: code.Locals, Body: e.code}
}

func (e *emitter) body(body []byte) {
	it := wasmbin.NewInstrs(body)
	var before wasmbin.Instr
	done := 0
	for it.Next() {
		if len(e.segments) > 0 && e.segments[0].at == it.Start {
			e.copy(body, done, it.Start)
			done = it.Start
			e.from(it.Start, inserted)
			e.segment()
		}
		if replaces(&it.Instr, &before) {
			e.copy(body, done, it.Start)
			e.from(it.Start, replaced)
			e.replace(&it.Instr)
			done = it.End
		}
		before = it.Instr
	}
	e.copy(body, done, len(body))
}

// copy appends the instructions of a range of the body unchanged.
func (e *emitter) copy(body []byte, start, end int) {
	if start < end {
		e.from(start, copied)
		e.raw(body[start:end])
	}
}

// from records that the code appended next comes from that offset of the body.
func (e *emitter) from(offset int, kind originKind) {
	if e.origins != nil {
		e.origins.add(len(e.code), offset, kind)
	}
}

// enter charges, and checks fuel and depth, at the entry of the function. The
// depth is written only before calls: a caller sets it again before its next
// call, so that nothing has to be undone when a function returns.
func (e *emitter) enter() {
	first := &e.segments[0]
	e.segments = e.segments[1:]
	e.index(wasmbin.OpGlobalGet, e.helpers.fuel)
	e.pay(first.charge())
	if !e.calls {
		e.check()
		return
	}
	e.index(wasmbin.OpGlobalGet, e.helpers.depth)
	e.number(wasmbin.OpI64Const, e.weight)
	e.op(wasmbin.OpI64Sub)
	e.index(wasmbin.OpLocalTee, e.depth)
	e.remaining()
	e.op(wasmbin.OpI64Or)
	e.unlessNegative(func() { e.get(e.depth) })
}

// segment charges the cost of the next segment.
func (e *emitter) segment() {
	s := &e.segments[0]
	e.segments = e.segments[1:]
	if c := s.charge(); c > 0 {
		e.remaining()
		e.pay(c)
	}
	if s.check {
		e.check()
	}
}

// remaining pushes the fuel.
func (e *emitter) remaining() {
	if e.cached {
		e.get(e.fuel)
		return
	}
	e.index(wasmbin.OpGlobalGet, e.helpers.fuel)
}

// pay subtracts units from the fuel on the stack.
func (e *emitter) pay(units int64) {
	e.take(func() { e.number(wasmbin.OpI64Const, units) })
}

// take subtracts the value pushed by units from the fuel on the stack. The
// global always holds the result, so that a hostcall, or the host after a
// trap, sees all charges.
func (e *emitter) take(units func()) {
	units()
	e.op(wasmbin.OpI64Sub)
	if e.cached {
		e.index(wasmbin.OpLocalTee, e.fuel)
	}
	e.index(wasmbin.OpGlobalSet, e.helpers.fuel)
}

// reload reads the fuel again after something else may have changed it.
func (e *emitter) reload() {
	if e.cached {
		e.index(wasmbin.OpGlobalGet, e.helpers.fuel)
		e.set(e.fuel)
	}
}

// check pauses the guest if its fuel is used up.
func (e *emitter) check() {
	e.remaining()
	e.unlessNegative(func() { e.number(wasmbin.OpI64Const, 0) })
}

// unlessNegative pauses the guest if the number on the stack is negative, with
// the value pushed by depth. The usual path comes first and is empty: wazero
// then keeps values in registers, and only the other path saves and restores
// them.
func (e *emitter) unlessNegative(depth func()) {
	e.number(wasmbin.OpI64Const, 0)
	e.op(wasmbin.OpI64GeS)
	e.block(wasmbin.OpIf, wasmbin.BlockEmpty)
	e.op(wasmbin.OpElse)
	depth()
	e.index(wasmbin.OpCall, e.helpers.pause)
	e.reload()
	e.op(wasmbin.OpEnd)
}
