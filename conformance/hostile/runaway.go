package hostile

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// runaways returns guests that do not return, in every shape and in every
// function that the host calls. Fuel ends them, or else the deadline;
// recursion ends at the limit stack.
func runaways() []Module {
	return slices.Concat(endlessStarts(), endlessHandlers(), bulkChains(), recursions())
}

// endlessStarts returns guests that loop where the host might not expect it.
func endlessStarts() []Module {
	// exported is a creature that loops in a function of that name.
	exported := func(name string, s signature) func() []byte {
		return func() []byte {
			m := newCreature(1)
			m.export(name, kindFunction, m.function(s, nil, forever(), unreachable))
			return m.harmless()
		}
	}
	return []Module{
		{
			Name: "loop-in-start", Attacks: "instantiation: a start function that does not end",
			Build: func() []byte {
				m := newCreature(1)
				m.start(m.function(":", nil, forever()))
				return m.harmless()
			},
			Ends: stopped(inStart),
		},
		{
			Name: "loop-in-initialize", Attacks: "instantiation: an initializer that does not end",
			Build: exported(abi.ExportInitialize, ":"), Ends: stopped(abi.ExportInitialize),
		},
		{
			Name: "loop-in-init", Attacks: "adding a creature: a creature_init that does not end",
			Build: exported(abi.ExportInit, ":i"), Ends: stopped(abi.ExportInit),
		},
		{
			Name: "loop-in-stop", Attacks: "removing a creature or closing the engine: a creature_stop that does not end",
			Build: exported(abi.ExportStop, ":"), Ends: stopped(abi.ExportStop),
		},
	}
}

// endlessHandlers returns guests that do not return from a delivery.
func endlessHandlers() []Module {
	simple := func(body ...code) func() []byte {
		return func() []byte { return newCreature(1).finish(body...) }
	}
	return []Module{
		{
			Name: "loop", Attacks: "the worker: the shortest endless loop",
			Build: simple(forever()), Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "loop-br-table", Attacks: "a meter that checks only br and br_if: a loop that only a br_table closes",
			Build: simple(block(loop(i32(7), brTable([]uint32{1, 1, 0}, 0)))), Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "loops-nested", Attacks: "a meter that charges inner loops too late: a loop of short loops",
			Build: func() []byte {
				return newCreature(1).finishWith([]locals{{1, typeI32}}, forever(
					i32(3), localSet(2),
					loop(localGet(2), i32(1), i32sub, localTee(2), brIf(0)),
				))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "loop-of-stores", Attacks: "the worker, with memory traffic that misses every cache",
			Build: func() []byte {
				return newCreature(256).finishWith([]locals{{1, typeI32}}, forever(
					localGet(2), i32(-1), i32Store(),
					localGet(2), i32(4160), i32add, i32(1<<23-1), i32and, localSet(2),
				))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "call-bomb", Attacks: "meters that check only loops: 2⁶⁴ calls, without a loop or a deep recursion",
			Build: func() []byte {
				m := newCreature(1)
				return m.finish(call(callTree(m)))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "call-indirect-bomb", Attacks: "meters that follow only direct calls: the same through a table",
			Build: callIndirectBomb, Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "straight-line", Attacks: "meters that charge by call: a million instructions in each of 2⁶⁴ calls",
			Build: func() []byte {
				m := newCreature(1)
				long := m.function(":", nil, i32(1), repeat(50_000, i32(1), i32add), drop)
				return m.finish(call(callTree(m, call(long))))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "loop-of-growth", Attacks: "the garbage collector: a loop that grows the memory by zero pages",
			Build: simple(forever(i32(0), memoryGrow, drop)), Ends: stopped(abi.ExportHandle),
		},
	}
}

// callTree adds functions that each call the next one twice, the last of them
// with the given body, and returns the first.
func callTree(m *binaryModule, leaf ...code) uint32 {
	f := m.function(":", nil, leaf...)
	for range 64 {
		f = m.function(":", nil, call(f), call(f))
	}
	return f
}

func callIndirectBomb() []byte {
	m := newCreature(1)
	const levels = 64
	table := m.table(levels + 1)
	typ := m.typ(":")
	functions := []uint32{m.function(":", nil)}
	for level := range int32(levels) {
		next := seq(i32(level), callIndirect(typ, table))
		functions = append(functions, m.function(":", nil, next, next))
	}
	m.elements(functions...)
	return m.finish(i32(levels), callIndirect(typ, table))
}

// bulkChains returns guests of long instructions back to back, without a loop:
// each instruction runs natively from its first byte to its last. 100,000 of
// them would take many minutes.
func bulkChains() []Module {
	const (
		pages    = 256 // 16 MiB
		all      = pages * abi.PageBytes
		segment  = 1 << 20
		elements = 900_000
		// The instructions per function and the number of functions stay below
		// the caps on bodies.
		inOne, functions = 1000, 100
	)
	chain := func(m *binaryModule, instruction code) []byte {
		f := m.function(":", nil, repeat(inOne, instruction))
		return m.finish(repeat(functions, call(f)))
	}
	tabled := func(n uint32) *binaryModule {
		m := newCreature(1)
		m.table(n)
		return m
	}
	return []Module{
		{
			Name: "memory-fill-chain", Attacks: "meters that charge by instruction: memory.fill of 16 MiB, back to back",
			Build: func() []byte { return chain(newCreature(pages), seq(i32(0), i32(1), i32(all), memoryFill)) },
			Ends:  stopped(abi.ExportHandle),
		},
		{
			Name: "memory-copy-chain", Attacks: "the same with memory.copy, whose ranges overlap",
			Build: func() []byte { return chain(newCreature(pages), seq(i32(1), i32(0), i32(all-1), memoryCopy)) },
			Ends:  stopped(abi.ExportHandle),
		},
		{
			Name: "memory-init-chain", Attacks: "the same with memory.init, from a segment of a mebibyte",
			Build: func() []byte {
				m := newCreature(pages)
				s := m.passiveData(make([]byte, segment))
				return chain(m, seq(i32(0), i32(0), i32(segment), memoryInit(s)))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "memory-fill-loop", Attacks: "the same with a loop of one instruction",
			Build: func() []byte { return newCreature(pages).finish(forever(i32(0), i32(1), i32(all), memoryFill)) },
			Ends:  stopped(abi.ExportHandle),
		},
		{
			Name: "table-copy-chain", Attacks: "the same with table.copy, of 900,000 elements",
			Build: func() []byte {
				return chain(tabled(elements), seq(i32(1), i32(0), i32(elements-1), tableCopy(0, 0)))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "table-fill-chain", Attacks: "the same with table.fill",
			Build: func() []byte {
				null := code{0xd0, typeFuncref}
				return chain(tabled(elements), seq(i32(0), null, i32(elements), tableFill(0)))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "table-init-chain", Attacks: "the same with table.init, from a segment of 100,000 elements",
			Build: func() []byte {
				const n = 100_000
				m := tabled(elements)
				f := m.function(":", nil)
				s := m.passiveElements(n, f)
				return chain(m, seq(i32(0), i32(0), i32(n), tableInit(s, 0)))
			},
			Ends: stopped(abi.ExportHandle),
		},
	}
}

// recursions returns guests that call themselves until the stack is too deep.
func recursions() []Module {
	tooDeep := []End{{
		Limits: abi.Limits{Fuel: muchFuel, Deadline: muchTime},
		In:     abi.ExportHandle, Code: abi.LimitExceeded, Says: []string{"limit stack"},
	}}
	return []Module{
		{
			Name: "recursion", Attacks: "the stack: a function that calls itself",
			Build: func() []byte {
				m := newCreature(1)
				return m.finish(call(m.function(":", nil, call(m.imported))))
			},
			Ends: tooDeep,
		},
		{
			Name: "recursion-huge-frames", Attacks: "a stack limit that counts calls and not their frames: 2,000 values live in each",
			Build: recursionWithHugeFrames, Ends: tooDeep,
		},
		{
			Name: "recursion-indirect", Attacks: "a stack limit that counts only direct calls: recursion through a table",
			Build: func() []byte {
				m := newCreature(1)
				table := m.table(1)
				f := m.function(":", nil, i32(0), callIndirect(m.typ(":"), table))
				m.elements(f)
				return m.finish(call(f))
			},
			Ends: tooDeep,
		},
		{
			Name: "recursion-in-start", Attacks: "the stack, before the host expects anything",
			Build: func() []byte {
				m := newCreature(1)
				m.start(m.function(":", nil, call(m.imported)))
				return m.harmless()
			},
			Ends: []End{{
				Limits: tooDeep[0].Limits, In: inStart, Code: abi.LimitExceeded, Says: []string{"limit stack"},
			}},
		},
	}
}

// recursionWithHugeFrames keeps many different values over the call, so that
// the compiler must put all of them into the frame.
func recursionWithHugeFrames() []byte {
	const values = 2000
	m := newCreature(1)
	self := m.imported
	var before, after code
	for i := range uint32(values) {
		before = append(before, seq(localGet(0), i64(int64(i)*7919), i64add, localSet(1+i))...)
		after = append(after, seq(localGet(1+i), i64add)...)
	}
	f := m.function("I:I", []locals{{values, typeI64}}, before, localGet(0), call(self), after)
	return m.finish(i64(1), call(f), drop)
}
