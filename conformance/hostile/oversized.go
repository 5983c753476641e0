package hostile

import (
	"bytes"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// oversized returns modules that are valid, or nearly so, and cost the
// compiler far more than their size suggests. Each is refused by a cap, which
// the error names, before the compiler sees it. At a harmless size each of
// them runs, which shows that only the size is refused.
func oversized() []Module {
	return slices.Concat(manyLocals(), manyOf(), deepAndWide(), compileBombs())
}

// tooMany returns a module of a shape that exceeds a cap at one size and runs
// at another. A count that no int of 32 bits holds is a uint32.
func tooMany[N int | uint32](limit, name, attacks string, shape func(n N) []byte, size, harmless N) Module {
	return Module{
		Name: name, Attacks: attacks, Ends: once(InCompile, abi.TooLarge, limit),
		Build:    func() []byte { return shape(size) },
		Harmless: func() []byte { return shape(harmless) },
	}
}

func manyLocals() []Module {
	one := func(n uint32) []byte {
		m := newCreature(1)
		m.function(":", []locals{{n, typeI64}})
		return m.harmless()
	}
	two := func(n uint32) []byte {
		m := newCreature(1)
		m.function(":", []locals{{n, typeI64}, {2, typeI32}})
		return m.harmless()
	}
	groups := func(functions int) []byte {
		m := newCreature(1)
		for range functions {
			m.function(":", slices.Repeat([]locals{{1000, typeI64}}, 15))
		}
		return m.harmless()
	}
	return []Module{
		tooMany("Limits.Locals", "locals", "an allocation by the compiler for 2³²−1 locals, declared in ten bytes", one, exaggerated, 100),
		tooMany("Limits.Locals", "locals-overflow", "code that adds groups of locals in 32 bits: the sum wraps to one", two, exaggerated, 100),
		tooMany("Limits.TotalLocals", "locals-everywhere", "the compiler: 15 groups of 1,000 locals in each of 2,000 functions", groups, 2000, 1),
	}
}

func manyOf() []Module {
	const million = 1_000_000
	return []Module{
		tooMany("Limits.Functions", "functions", "the compiler: a million functions", manyFunctions, million, 1000),
		tooMany("Limits.Types", "types", "the type section: a million signatures", entries(sectionType, signature("i:i").bytes()), million, 100),
		tooMany("Limits.Globals", "globals", "every instance: a million globals, with a copy in each instance",
			entries(sectionGlobal, slices.Concat([]byte{typeI64, 1}, i64(0), code{opEnd})), million, 100),
		tooMany("Limits.Exports", "exports", "the index of exports: 100,000 of them", manyExports, 100_000, 100),
		tooMany("Limits.DataSegments", "data-segments", "every instance: a million data segments",
			entries(sectionData, slices.Concat(u32(0), i32(0), code{opEnd}, vector([]byte{1}))), million, 100),
		tooMany("Limits.ElementSegments", "element-segments", "every instance: a million element segments",
			entries(sectionElement, slices.Concat(u32(0), i32(0), code{opEnd}, u32(1), u32(0))), million, 100),
	}
}

func manyFunctions(n int) []byte {
	m := newCreature(1)
	m.harmless()
	m.sections[sectionFunction].addMany(n, u32(m.typ(":")))
	m.sections[sectionCode].addMany(n, bodyOf(nil))
	return m.bytes()
}

// entries returns the shape of a module that repeats an entry in a section.
func entries(id byte, entry []byte) func(n int) []byte {
	return func(n int) []byte {
		m := newCreature(1)
		m.table(1) // for element segments
		m.harmless()
		m.sections[id].addMany(n, entry)
		if id == sectionData {
			m.sections[sectionCount].set(u32(uint32(n)))
		}
		return m.bytes()
	}
}

func manyExports(n int) []byte {
	m := newCreature(1)
	s := &m.sections[sectionExport]
	for i := range n {
		s.count++
		s.content = append(s.content, text(exportName(i))...)
		s.content = append(s.content, kindMemory, 0)
	}
	return m.harmless()
}

// exportName returns a short name, different for each number.
func exportName(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	name := []byte{'_'}
	for ; i > 0; i /= len(letters) {
		name = append(name, letters[i%len(letters)])
	}
	return string(name)
}

func deepAndWide() []Module {
	return []Module{
		tooMany("Limits.Block", "nested-blocks", "recursion in reader and compiler: 200,000 blocks inside each other",
			func(n int) []byte { return newCreature(1).finish(nested(n)) }, 200_000, 50),
		tooMany("Limits.BodyBytes", "huge-body", "the compiler: one function of 16 MiB without a branch",
			func(n int) []byte { return newCreature(1).finish(repeat(n, i32(1), drop)) }, 16*mebi/3, 100),
		tooMany("Limits.BranchTable", "wide-br-table", "the compiler: one br_table with a million targets",
			func(n int) []byte { return newCreature(1).finish(block(i32(0), brTable(make([]uint32, n), 0))) }, 1_000_000, 100),
		tooMany("Limits.Branches", "quadratic-br-table", "the compiler: 1,000 tables, each with an edge to each of 1,000 blocks",
			quadraticBrTable, 1000, 10),
		tooMany("Limits.LocalJoins", "phi-bomb", "SSA construction: 5,000 locals that change in each of 5,000 nested loops",
			phiBomb, 5000, 10),
		tooMany("split it", "phi-bomb-small", "caps that count locals and blocks, but not the nesting of loops: 220 of each in three kilobytes",
			phiBomb, 220, 10),
		tooMany("Limits.Blocks", "blocks", "register allocation: 100,000 short blocks in one function",
			shortBlocks, 100_000, 100),
		tooMany("split it", "blocks-within-caps", "the same with 49,000, which no cap on their number refuses: compiling takes quadratic time",
			shortBlocks, 49_000, 100),
		tooMany("Limits.StackHeight", "live-values", "register allocation: 100,000 different values on the operand stack at once",
			liveValues, 100_000, 100),
	}
}

// quadraticBrTable has n br_tables, each with all n enclosing blocks as
// targets.
func quadraticBrTable(n int) []byte {
	targets := make([]uint32, n)
	for i := range targets {
		targets[i] = uint32(i)
	}
	// Every table is reachable, but none is reached: the message is empty.
	jump := block(localGet(1), i32eqz, brIf(0), localGet(1), brTable(targets, 0))
	return newCreature(1).finish(nested(n, repeat(n, jump)))
}

// phiBomb changes n locals in the innermost of n loops, so that each loop head
// has to merge each local.
func phiBomb(n int) []byte {
	var change code
	for i := range uint32(n) {
		change = append(change, seq(localGet(2+i), i32(1), i32add, localSet(2+i))...)
	}
	heads := bytes.Repeat(code{opLoop, blockVoid}, n)
	ends := repeat(n, localGet(1), brIf(0), code{opEnd})
	return newCreature(1).finishWith([]locals{{uint32(n), typeI32}}, heads, change, ends)
}

// shortBlocks has n blocks one after the other.
func shortBlocks(n int) []byte {
	return newCreature(1).finish(repeat(n, block(localGet(1), brIf(0))))
}

// liveValues puts n values on the stack before it uses the first of them.
func liveValues(n int) []byte {
	var push code
	for i := range int32(n) {
		push = append(push, seq(localGet(1), i32(i+1), i32add)...)
	}
	return newCreature(1).finish(push, repeat(n-1, i32add), drop)
}
