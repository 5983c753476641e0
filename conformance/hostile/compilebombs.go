package hostile

// compileBombs returns modules of ordinary size whose instructions take
// kilobytes each while they are compiled. The estimated cost of compiling
// refuses them.
func compileBombs() []Module {
	bomb := func(name, attacks string, shape func(n int) []byte, size, harmless int) Module {
		m := tooMany("compil", name, attacks, shape, size, harmless)
		m.Peak = 2 * DefaultPeak // modules of up to 60 MB, read and rewritten until they are refused
		return m
	}
	vector := func(op uint32) code { return append(code{0xfd}, u32(op)...) }
	popcnt := vector(98)
	v128 := seq(vector(12), make(code, 16))
	// in makes functions that repeat instructions n times in total, at most
	// perBody times each.
	in := func(before, instructions, after code, perBody int) func(n int) []byte {
		return func(n int) []byte {
			m := newCreature(1)
			m.table(1)
			for ; n > 0; n -= perBody {
				m.function(":", nil, before, repeat(min(n, perBody), instructions), after)
			}
			return m.harmless()
		}
	}
	tableGet := append(code{0x25}, u32(0)...)
	tableSet := append(code{0x26}, u32(0)...)
	indirect := func(n int) []byte {
		m := newCreature(1)
		m.table(1)
		typ := m.typ(":")
		for ; n > 0; n -= 4000 {
			m.function(":", nil, repeat(min(n, 4000), i32(0), callIndirect(typ, 0)))
		}
		return m.harmless()
	}
	tables := func(n int) []byte {
		m := newCreature(1)
		targets := make([]uint32, 49_000)
		for i := range targets {
			targets[i] = uint32(i % 100)
		}
		for range n {
			m.function(":", nil, nested(100, i32(0), brTable(targets, 0)))
		}
		return m.harmless()
	}
	const none = 1 << 30
	return []Module{
		bomb("bomb-popcnt", "the compiler: 600,000 vector instructions of a dozen machine instructions each in one function",
			in(v128, popcnt, drop, none), 600_000, 1000),
		bomb("bomb-popcnt-everywhere", "the compiler: the same in twenty functions, each acceptable by itself",
			in(v128, popcnt, drop, 100_000), 2_000_000, 1000),
		bomb("bomb-truncate", "the compiler: 400,000 truncations of vectors",
			in(v128, vector(253), drop, none), 400_000, 1000),
		bomb("bomb-table", "the compiler: 250,000 reads and writes of a table, each with its check",
			in(nil, seq(i32(0), i32(0), tableGet, tableSet), nil, none), 250_000, 1000),
		bomb("bomb-call-indirect", "the compiler: eight million calls through a table in 2,000 functions",
			indirect, 8_000_000, 100),
		bomb("bomb-br-table", "the compiler: 100 functions, each with a table of 49,000 targets, where each target becomes a block",
			tables, 100, 1),
		bomb("bomb-load", "the compiler: 300,000 reads of memory, each at the address read before",
			in(i32(0), code{0x28, 2, 0}, drop, none), 300_000, 1000),
	}
}
