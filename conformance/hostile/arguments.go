package hostile

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// arguments returns guests whose hostcalls have invalid arguments: pointers
// and lengths outside the memory, numbers without a meaning, and attempts to
// leave the sandbox.
func arguments() []Module {
	return slices.Concat(strayPointers(), exits())
}

// A range is a pointer and a length that a guest passes.
type memoryRange struct {
	name     string
	ptr, len int32
}

// strayRanges lists ranges that do not lie in a memory of one page, each in a
// different way.
var strayRanges = []memoryRange{
	{"past-the-end", abi.PageBytes - 8, 9},
	{"just-outside", abi.PageBytes, 1},
	{"far-outside", -1, 1},
	{"wrapping", -16, 32}, // ends at 16 in 32-bit arithmetic
	{"endless", 0, 1<<31 - 1},
	{"negative", 0, -1},
}

func strayPointers() []Module {
	var list []Module
	for _, r := range strayRanges {
		list = append(list, Module{
			Name:    "pointers-" + r.name,
			Attacks: "every hostcall that takes a range of memory: " + r.name + ", in each of its ranges",
			Build:   func() []byte { return strayCalls(r) },
			Ends:    comesToNothing(),
		})
	}
	return append(list,
		Module{
			Name: "wasi-pointers", Attacks: "every function of WASI: pointers and lengths of 2³²−1 in all arguments",
			Build: wasiStrayCalls, Ends: comesToNothing(),
		},
		Module{
			Name: "wild-numbers", Attacks: "every hostcall: the largest number in all arguments that are not pointers",
			Build: wildNumbers, Ends: comesToNothing(),
		},
	)
}

// ranges lists the positions of the pointers among the parameters; the length
// follows.
func ranges(f abi.Function) []int {
	var at []int
	for i, p := range f.Params {
		if n := len(p.Name); p.Name == "ptr" || n > 4 && p.Name[n-4:] == "_ptr" {
			at = append(at, i)
		}
	}
	return at
}

// strayCalls makes every hostcall that takes ranges, once for each range with
// that range stray and all other arguments zero, and traps if one of them is
// not refused.
func strayCalls(stray memoryRange) []byte {
	m := newCreature(1)
	imported := map[string]uint32{}
	for _, f := range abi.Functions {
		imported[f.Name] = m.hostcall(f.Name)
	}
	var body code
	for _, f := range abi.Functions {
		for _, at := range ranges(f) {
			for i, p := range f.Params {
				switch {
				case i == at:
					body = append(body, i32(stray.ptr)...)
				case i == at+1:
					body = append(body, i32(stray.len)...)
				case p.Type == abi.I64:
					body = append(body, i64(1)...)
				default:
					body = append(body, i32(0)...)
				}
			}
			body = append(body, seq(call(imported[f.Name]), i32(0), i32geS, when(unreachable))...)
		}
	}
	return m.finish(body)
}

// wildNumbers calls every hostcall with empty ranges and the largest numbers.
// The results do not matter.
func wildNumbers() []byte {
	m := newCreature(1)
	imported := map[string]uint32{}
	for _, f := range abi.Functions {
		imported[f.Name] = m.hostcall(f.Name)
	}
	var body code
	for _, extreme := range []int64{1<<63 - 1, -1 << 63} {
		for _, f := range abi.Functions {
			inRange := map[int]bool{}
			for _, at := range ranges(f) {
				inRange[at], inRange[at+1] = true, true
			}
			for i, p := range f.Params {
				switch {
				case inRange[i]:
					body = append(body, i32(0)...)
				case p.Type == abi.I64:
					body = append(body, i64(extreme)...)
				default:
					body = append(body, i32(int32(extreme>>32))...)
				}
			}
			body = append(body, seq(call(imported[f.Name]), drop)...)
		}
	}
	return m.finish(body)
}

// wasiSignatures lists functions of WASI preview 1 that take pointers.
var wasiSignatures = []struct {
	name string
	typ  signature
}{
	{"args_get", "ii:i"}, {"args_sizes_get", "ii:i"}, {"environ_get", "ii:i"}, {"environ_sizes_get", "ii:i"},
	{"clock_res_get", "ii:i"}, {"clock_time_get", "iIi:i"}, {"fd_fdstat_get", "ii:i"}, {"fd_filestat_get", "ii:i"},
	{"fd_pwrite", "iiiIi:i"}, {"fd_read", "iiii:i"}, {"fd_write", "iiii:i"}, {"path_open", "iiiiiIIii:i"},
	{"poll_oneoff", "iiii:i"}, {"random_get", "ii:i"},
}

func wasiStrayCalls() []byte {
	m := newCreature(1)
	var body code
	for i, f := range wasiSignatures {
		m.importFunction("wasi_snapshot_preview1", f.name, f.typ)
		// Once more with the descriptor of standard output as the first
		// argument.
		for _, first := range []int32{-1, 1} {
			for n, c := range f.typ[:len(f.typ)-len(":i")] {
				switch {
				case c == 'I':
					body = append(body, i64(-1)...)
				case n == 0:
					body = append(body, i32(first)...)
				default:
					body = append(body, i32(-1)...)
				}
			}
			body = append(body, seq(call(uint32(i)), drop)...)
		}
	}
	return m.finish(body)
}

// exits returns guests that try to end more than themselves.
func exits() []Module {
	exit := func(m *binaryModule) code {
		return seq(i32(0), call(m.importFunction("wasi_snapshot_preview1", "proc_exit", "i:")))
	}
	return []Module{
		{
			Name: "proc-exit", Attacks: "the process: proc_exit in the middle of a turn",
			Build: func() []byte {
				m := newCreature(1)
				return m.finish(exit(m))
			},
			Ends: once(abi.ExportHandle, abi.Trapped, "exited with status 0"),
		},
		{
			Name: "proc-exit-in-start", Attacks: "the process: proc_exit in the start function",
			Build: func() []byte {
				m := newCreature(1)
				body := exit(m)
				m.start(m.function(":", nil, body))
				return m.harmless()
			},
			Ends: once(inStart, abi.Trapped, "exited with status 0"),
		},
		{
			Name: "effects-in-init", Attacks: "the rule that creature_init only reads: it sends, and passes on the refusal",
			Build: func() []byte {
				m := newCreature(1)
				send := m.hostcall("send")
				m.export(abi.ExportInit, kindFunction, m.function(":i", nil,
					i32(abi.AllChannels), i32(0), i32(0), i32(0), i32(0), call(send)))
				return m.harmless()
			},
			Ends: once(abi.ExportInit, abi.Denied, "creature_handle"),
		},
		{
			Name: "forged-status", Attacks: "code that looks codes up: a failure status that is in no table",
			Build: func() []byte { return newCreature(1).finish(i32(-1<<31), ret) },
			Ends:  once(abi.ExportHandle, abi.Trapped),
		},
	}
}
