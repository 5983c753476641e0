package hostile

import "github.com/seed47132306/terrarium/abi"

// memories returns modules that demand more memory than allowed: initially, or
// by growing.
func memories() []Module {
	const allPages = 1 << 16 // 4 GiB
	smallTable := []End{{
		Limits: abi.Limits{Table: 100_000},
		In:     InInstantiate, Code: abi.LimitExceeded, Says: []string{"limit table", "100000"},
	}}
	return []Module{
		{
			Name: "memory-from-start", Attacks: "the machine's memory: 2 GiB before anything runs",
			Build: func() []byte { return newCreature(allPages / 2).harmless() },
			Ends:  once(InInstantiate, abi.LimitExceeded, "limit memory"),
		},
		{
			Name: "memory-of-everything", Attacks: "the same with 4 GiB, whose size in bytes does not fit into 32 bits",
			Build: func() []byte { return newCreature(allPages).harmless() },
			Ends:  once(InCompile, abi.TooLarge, "4 GiB"),
		},
		{
			Name: "memory-beyond-wasm", Attacks: "code that multiplies pages in 32 bits: 2³²−1 of them",
			Build: func() []byte { return newCreature(exaggerated).harmless() },
			Ends:  once(InCompile, abi.InvalidArgument),
		},
		{
			Name: "memory-grow", Attacks: "the machine's memory: grows page by page, and traps when there is no more, as an allocator does",
			Build: func() []byte { return newCreature(1).finish(growMemory(1), unreachable) },
			Ends:  once(abi.ExportHandle, abi.Trapped, "unreachable", "limit memory"),
		},
		{
			Name: "memory-grow-exact", Attacks: "the limit memory: the guest gets exactly the allowed memory, can write to it, and gets no page more",
			Build: growToLimit,
			Ends: []End{{
				In: abi.ExportHandle, Code: abi.OK,
				Limits: abi.Limits{Memory: exactPages * abi.PageBytes},
			}},
		},
		{
			Name: "memory-grow-huge", Attacks: "the sum of old and new size: grows by 2³²−1 pages",
			Build: func() []byte {
				return newCreature(1).finish(i32(-1), memoryGrow, i32(-1), i32ne, when(unreachable))
			},
			Ends: comesToNothing(),
		},
		{
			Name: "table-from-start", Attacks: "the machine's memory: a table of 900,000 elements before anything runs",
			Build: func() []byte {
				m := newCreature(1)
				m.table(900_000)
				return m.harmless()
			},
			Ends: smallTable,
		},
		{
			Name: "table-of-everything", Attacks: "the same with 2³²−1 elements, more than any host has room for",
			Build: func() []byte {
				m := newCreature(1)
				m.table(exaggerated)
				return m.harmless()
			},
			Ends: once(InCompile, abi.TooLarge, "Limits.TableElements"),
		},
		{
			Name: "tables-from-start", Attacks: "the limit table, which counts all tables: 64 of 10,000 elements each",
			Build: func() []byte {
				m := newCreature(1)
				for range 64 {
					m.table(10_000)
				}
				return m.harmless()
			},
			Ends: smallTable,
		},
		{
			Name: "table-grow", Attacks: "the machine's memory: grows two tables alternately, and traps when there is no more",
			Build: func() []byte {
				m := newCreature(1)
				f := m.function(":", nil)
				m.elements(f) // for ref.func
				a, b := m.table(1), m.table(1)
				return m.finish(growTable(a, f, 4096), growTable(b, f, 4096), unreachable)
			},
			Ends: once(abi.ExportHandle, abi.Trapped, "unreachable", "limit table"),
		},
		{
			Name: "ref-func", Attacks: "memory of the machine that the limit memory does not count: a reference to a function, made again and again",
			Build: func() []byte {
				m := newCreature(1)
				f := m.function(":", nil)
				m.table(1)
				m.elements(f)
				return m.finish(forever(repeat(8, refFunc(f), drop)))
			},
			Ends: stopped(abi.ExportHandle),
		},
		{
			Name: "elements-outside", Attacks: "instantiation: an element segment beyond the end of its table",
			Build: func() []byte {
				m := newCreature(1)
				f := m.function(":", nil)
				m.table(0)
				m.elements(f)
				return m.harmless()
			},
			Ends: once(InInstantiate, abi.Trapped, "element[0]"),
		},
	}
}

// growMemory grows by some pages at a time until it is refused.
func growMemory(pages int32) code {
	return loop(i32(pages), memoryGrow, i32(-1), i32ne, brIf(0))
}

func growTable(table, function uint32, elements int32) code {
	return loop(refFunc(function), i32(elements), tableGrow(table), i32(-1), i32ne, brIf(0))
}

const exactPages = 100

// growToLimit traps unless the memory can grow exactly to the limit and all of
// it can be written to.
func growToLimit() []byte {
	const last = exactPages*abi.PageBytes - 4
	return newCreature(1).finish(
		growMemory(1),
		memorySize, i32(exactPages), i32ne, when(unreachable),
		i32(last), i32(-1), i32Store(),
		i32(abi.PageBytes), i32('x'), i32(last-abi.PageBytes), memoryFill,
	)
}
