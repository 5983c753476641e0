package hostile

import (
	"bytes"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// refused returns the modules that are refused on inspection: files that are
// not modules, modules that lie about their own lengths, and modules that
// break the contract. All of them must be refused before the host allocates
// anything in proportion to their claims.
func refused() []Module {
	return slices.Concat(notModules(), liars(), breachers(), hugeNames())
}

const (
	mebi = 1 << 20
	// A length or count that the module does not contain.
	exaggerated = 1<<32 - 1
)

func notModules() []Module {
	return []Module{
		{
			Name: "not-wasm", Attacks: "the recognizer: a native program passed as a module",
			Build: func() []byte { return append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 64)...) },
			Ends:  once(InCompile, abi.InvalidArgument, "native program"),
		},
		{
			Name: "empty", Attacks: "the recognizer: no bytes at all",
			Build: func() []byte { return []byte{} },
			Ends:  once(InCompile, abi.InvalidArgument, "empty"),
		},
		{
			Name: "truncated", Attacks: "the reader: a good module that ends in the middle of its code",
			Build: func() []byte {
				whole := newCreature(1).harmless()
				return whole[:len(whole)-5]
			},
			Ends: once(InCompile, abi.InvalidArgument, "are left"),
		},
		{
			Name: "wrong-types", Attacks: "the validator: a body that adds operands that are not on the stack",
			Build: func() []byte { return newCreature(1).finish(i32add, drop) },
			Ends:  once(InCompile, abi.InvalidArgument),
		},
	}
}

// lying builds a harmless creature and corrupts one of its sections.
func lying(spoil func(m *binaryModule)) func() []byte {
	return func() []byte {
		m := newCreature(1)
		m.data(0, []byte("harmless"))
		good := m.harmless()
		spoil(m)
		bad := m.bytes()
		if bytes.Equal(good, bad) {
			panic("hostile: nothing was spoilt")
		}
		return bad
	}
}

// badEntry adds an entry to a section and its count.
func badEntry(id byte, entry ...[]byte) func() []byte {
	return lying(func(m *binaryModule) { m.sections[id].add(entry...) })
}

func liars() []Module {
	damaged := once(InCompile, abi.InvalidArgument)
	return []Module{
		{
			Name: "section-too-long", Attacks: "the reader: a section that announces 4 GiB",
			Build: lying(func(m *binaryModule) { m.sections[sectionData].lie = exaggerated - 64 }),
			Ends:  once(InCompile, abi.InvalidArgument, "are left"),
		},
		{
			Name: "section-too-short", Attacks: "the reader: a section that ends before its content does",
			Build: lying(func(m *binaryModule) { m.sections[sectionCode].lie--; m.sections[sectionCode].lie-- }),
			Ends:  damaged,
		},
		{
			Name: "count-lies", Attacks: "an allocation for 2³²−1 types announced in a few bytes",
			Build: lying(func(m *binaryModule) { m.sections[sectionType].set(u32(exaggerated)) }),
			Ends:  damaged,
		},
		{
			Name: "body-too-long", Attacks: "the reader: a function body that announces 4 GiB",
			Build: badEntry(sectionCode, u32(exaggerated), code{0, opEnd}), Ends: damaged,
		},
		{
			Name: "body-missing", Attacks: "the reader: more functions declared than there are bodies",
			Build: badEntry(sectionFunction, u32(0)), Ends: damaged,
		},
		{
			Name: "name-too-long", Attacks: "the reader: the name of an export that announces 4 GiB",
			Build: badEntry(sectionExport, u32(exaggerated), []byte("short")), Ends: damaged,
		},
		{
			Name: "name-not-utf8", Attacks: "code that prints names: a name that is not UTF-8",
			Build: badEntry(sectionExport, text("\xff\xfe\xfd"), []byte{kindFunction, 0}), Ends: damaged,
		},
		{
			Name: "data-too-long", Attacks: "the reader: a data segment that announces 4 GiB",
			Build: lying(func(m *binaryModule) {
				m.countData()
				m.sections[sectionData].add(u32(0), i32(0), code{opEnd}, u32(exaggerated), []byte("few"))
			}),
			Ends: damaged,
		},
		{
			Name: "data-outside", Attacks: "instantiation: a data segment beyond the end of the memory",
			Build: func() []byte {
				m := newCreature(1)
				m.data(abi.PageBytes-2, []byte("over the edge"))
				return m.harmless()
			},
			Ends: once(InInstantiate, abi.Trapped),
		},
		{
			Name: "leb-too-long", Attacks: "the reader: a number encoded in too many bytes",
			Build: lying(func(m *binaryModule) {
				m.sections[sectionStart].set(append(bytes.Repeat([]byte{0x80}, 9), 0))
			}),
			Ends: damaged,
		},
		{
			Name: "index-outside", Attacks: "code that follows indices: a start function that does not exist",
			Build: lying(func(m *binaryModule) { m.start(exaggerated) }), Ends: damaged,
		},
	}
}

func breachers() []Module {
	return []Module{
		{
			Name: "no-memory", Attacks: "hostcalls, which would write into a missing memory",
			Build: func() []byte { return newModule().harmless() },
			Ends:  once(InCompile, abi.InvalidArgument, "does not export memory"),
		},
		{
			Name: "two-memories", Attacks: "the limit memory, once for each memory",
			Build: func() []byte {
				m := newCreature(1)
				m.memory(1)
				return m.harmless()
			},
			Ends: once(InCompile, abi.Unsupported, "memories"),
		},
		{
			Name: "shared-memory", Attacks: "the one-call-at-a-time rule: a memory shared between threads",
			Build: func() []byte {
				m := newModule()
				m.sections[sectionMemory].add([]byte{3}, u32(1), u32(1))
				m.export(abi.ExportMemory, kindMemory, 0)
				return m.harmless()
			},
			Ends: once(InCompile, abi.Unsupported, "threads"),
		},
		{
			Name: "imported-memory", Attacks: "isolation: a memory owned by another module",
			Build: func() []byte {
				m := newModule()
				m.sections[sectionImport].add(text("env"), text("memory"), []byte{kindMemory, 0}, u32(1))
				m.export(abi.ExportMemory, kindMemory, 0)
				return m.harmless()
			},
			Ends: once(InCompile, abi.Unsupported, "env.memory"),
		},
		{
			Name: "wrong-import-type", Attacks: "the hostcall's view of its arguments: send without any",
			Build: func() []byte {
				m := newCreature(1)
				m.importFunction(abi.ImportModule, "send", ":i")
				return m.harmless()
			},
			Ends: once(InCompile, abi.InvalidArgument, "terrarium_v1.send", "(i32, i32, i32, i32, i32) -> i32"),
		},
		{
			Name: "unknown-import", Attacks: "the host: a function that it does not offer",
			Build: func() []byte {
				m := newCreature(1)
				m.importFunction("env", "system", "i:i")
				return m.harmless()
			},
			Ends: once(InCompile, abi.Unsupported, "env.system"),
		},
		{
			Name: "wrong-export-type", Attacks: "the call of creature_handle, which has no parameters and no result",
			Build: func() []byte {
				m := newCreature(1)
				f := m.function(":", nil)
				m.export(abi.ExportMarker, kindFunction, f)
				m.export(abi.ExportHandle, kindFunction, f)
				return m.bytes()
			},
			Ends: once(InCompile, abi.InvalidArgument, abi.ExportHandle, "(i32, i32) -> i32"),
		},
		{
			Name: "no-exports", Attacks: "the call of creature_handle, which is missing",
			Build: func() []byte { return newCreature(1).bytes() },
			Ends:  once(InCompile, abi.InvalidArgument, abi.ExportHandle, abi.ExportMarker),
		},
	}
}

func hugeNames() []Module {
	exported := func(n int) []byte {
		m := newCreature(1)
		m.export(strings.Repeat("n", n), kindMemory, 0)
		return m.harmless()
	}
	named := func(n int) []byte {
		m := newCreature(1)
		f := m.function(":", nil)
		m.nameFunction(f, strings.Repeat("n", n))
		return m.finish(call(f))
	}
	return []Module{
		tooMany("Limits.NameBytes", "huge-export-name", "code that lists exports: a name of 16 MiB", exported, 16*mebi, 1000),
		tooMany("Limits.NameBytes", "huge-function-name", "code that prints names: a function with a name of 16 MiB", named, 16*mebi, 1000),
		{
			Name: "huge-import-name", Attacks: "error messages, and the search for a similar name: a name of a mebibyte",
			Build: func() []byte {
				m := newCreature(1)
				m.importFunction(abi.ImportModule, strings.Repeat("n", mebi), ":")
				return m.harmless()
			},
			Ends: once(InCompile, abi.TooLarge, "Limits.NameBytes"),
		},
		{
			Name: "long-import-names", Attacks: "the same with names of an allowed size: 900 of five kilobytes each",
			Build: func() []byte {
				m := newCreature(1)
				name := strings.Repeat("terrarium", 5000/len("terrarium"))
				for i := range 900 {
					m.importFunction(abi.ImportModule, name[i%64:], ":")
				}
				return m.harmless()
			},
			Ends: once(InCompile, abi.Unsupported, "there is no such function"),
		},
		{
			Name: "long-function-name", Attacks: "the text of a trap: a function with a name of 60 kilobytes that traps",
			Build: func() []byte {
				m := newCreature(1)
				f := m.function(":", nil, unreachable)
				m.nameFunction(f, strings.Repeat("n", 60_000))
				return m.finish(call(f))
			},
			Ends: once(abi.ExportHandle, abi.Trapped, "unreachable"),
		},
	}
}
