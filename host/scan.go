package host

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// Section ids of the binary format, as far as they are read here.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionExport   = 7
	sectionCode     = 10
	sectionLast     = 13
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export",
	"start", "element", "code", "data", "data count", "tag"}

// How many entries a section may have. They are far beyond what compilers make
// and bound what scan allocates to a small multiple of the module.
const (
	maxTypes     = 100_000
	maxFunctions = 1_000_000
	maxImports   = 10_000
	maxExports   = 10_000
	maxTables    = 1_000
	maxMemories  = 100
	// Locals of one function: a few bytes can declare 2³², and the compiler
	// makes something for each.
	maxLocals = 50_000
)

// kindTag is the kind of an imported or exported exception tag.
const kindTag api.ExternType = 4

// shape is what a module declares, apart from its code and data. Names are
// copied, everything else may be a view of the module's bytes.
type shape struct {
	types     []signature
	imports   []importEntry
	functions []uint32 // type index of every function, imported ones first
	tables    []table
	memories  []limits
	exports   []exportEntry
	manifests [][]byte

	tableAt, tableEnd int // where the table section is, header included; equal when there is none
	manifest          *abi.Manifest
}

type limits struct {
	min, max uint32
	bounded  bool // max is declared
}

type table struct {
	element byte
	limits
}

type importEntry struct {
	module, name string
	kind         api.ExternType
	typ          uint32 // of a function
}

type exportEntry struct {
	name  string
	kind  api.ExternType
	index uint32
}

// scan reads the section structure of a module whose preamble is right. It is
// called once before anything else looks at the bytes, and a module that it
// accepts has whole sections and consistent counts.
func scan(wasm []byte) (*shape, error) {
	s := &shape{}
	r := &reader{data: wasm, pos: len(preamble), end: len(wasm)}
	var seen [sectionLast + 1]bool
	for r.left() > 0 {
		start := r.pos
		id := r.byte()
		size := r.u32()
		if r.err != nil {
			return nil, truncated(start, "in the header of a section")
		}
		if id > sectionLast {
			return nil, malformed(start, fmt.Sprintf("there is no section %d", id))
		}
		if int64(size) > int64(r.left()) {
			return nil, truncated(start, fmt.Sprintf("the section %q has %d bytes, %d are left", sectionNames[id], size, r.left()))
		}
		if seen[id] && id != sectionCustom {
			return nil, malformed(start, fmt.Sprintf("the section %q appears twice", sectionNames[id]))
		}
		seen[id] = true
		section := &reader{data: wasm, pos: r.pos, end: r.pos + int(size)}
		if id == sectionTable {
			s.tableAt, s.tableEnd = start, section.end
		}
		s.read(id, section)
		if section.err != nil {
			return nil, section.err
		}
		r.pos = section.end
	}
	return s, nil
}

func truncated(pos int, message string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("the module is truncated at byte %#x: %s", pos, message),
		Remedy: "build or copy it again"}
}

func (s *shape) read(id byte, r *reader) {
	switch id {
	case sectionCustom:
		if r.name() == abi.ManifestSection {
			s.manifests = append(s.manifests, r.bytes(uint32(r.left())))
		}
		return
	case sectionType:
		s.readTypes(r)
	case sectionImport:
		s.readImports(r)
	case sectionFunction:
		for range r.count("functions", maxFunctions) {
			s.functions = append(s.functions, r.u32())
		}
	case sectionTable:
		for range r.count("tables", maxTables) {
			s.tables = append(s.tables, table{r.byte(), r.limits("table")})
		}
	case sectionMemory:
		for range r.count("memories", maxMemories) {
			s.memories = append(s.memories, r.limits("memory"))
		}
	case sectionExport:
		for range r.count("exports", maxExports) {
			s.exports = append(s.exports, exportEntry{r.name(), r.byte(), r.u32()})
		}
	case sectionCode:
		for range r.count("functions", maxFunctions) {
			checkLocals(r)
		}
	default:
		return // the compiler reads these
	}
	if r.left() > 0 {
		r.fail("the section %q has %d bytes too many", sectionNames[id], r.left())
	}
}

func (s *shape) readTypes(r *reader) {
	for range r.count("types", maxTypes) {
		if form := r.byte(); form != 0x60 && r.err == nil {
			r.err = &abi.Error{Code: abi.Unsupported, Message: "the module has types of the garbage-collection extension",
				Remedy: "build it without garbage collection"}
			r.pos = r.end
		}
		params := r.bytes(r.u32())
		s.types = append(s.types, signature{params, r.bytes(r.u32())})
	}
}

// checkLocals reads one function body, of which only the locals matter here.
func checkLocals(r *reader) {
	size := r.u32()
	body := &reader{data: r.data, pos: r.pos, end: min(r.end, r.pos+int(size))}
	r.bytes(size)
	var locals int64
	for range body.count("groups of locals", maxLocals) {
		locals += int64(body.u32())
		body.byte()
	}
	switch {
	case r.err != nil:
	case body.err != nil:
		r.err = body.err
	case locals > maxLocals:
		r.err = &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("a function of the module has %d locals; at most %d are allowed", locals, maxLocals),
			Remedy: "split the function"}
	}
	if r.err != nil {
		r.pos = r.end
	}
}

func (s *shape) readImports(r *reader) {
	for range r.count("imports", maxImports) {
		i := importEntry{module: r.name(), name: r.name(), kind: r.byte()}
		switch i.kind {
		case api.ExternTypeFunc:
			i.typ = r.u32()
			s.functions = append(s.functions, i.typ)
		case api.ExternTypeTable:
			r.byte()
			r.limits("table")
		case api.ExternTypeMemory:
			r.limits("memory")
		case api.ExternTypeGlobal:
			r.bytes(2)
		case kindTag:
			r.byte()
			r.u32()
		default:
			r.fail("there is no import of kind %d", i.kind)
		}
		s.imports = append(s.imports, i)
	}
}

// signatureAt returns the type with that index; ok is false when the module has
// no such type.
func (s *shape) signatureAt(index uint32) (sig signature, ok bool) {
	if int64(index) >= int64(len(s.types)) {
		return signature{}, false
	}
	return s.types[index], true
}

// export returns the export with that name, if there is one.
func (s *shape) export(name string) (e exportEntry, ok bool) {
	for _, e := range s.exports {
		if e.name == name {
			return e, true
		}
	}
	return exportEntry{}, false
}

// exportsFunction reports whether a function is exported by that name.
func (s *shape) exportsFunction(name string) bool {
	e, ok := s.export(name)
	return ok && e.kind == api.ExternTypeFunc
}

// tableElements is how many elements all tables have at the start.
func (s *shape) tableElements() int64 {
	var n int64
	for _, t := range s.tables {
		n += int64(t.min)
	}
	return n
}

func (s *shape) info(sum [sha256.Size]byte, size int64) *abi.ModuleInfo {
	info := &abi.ModuleInfo{
		SHA256:      hexSum(sum),
		Size:        size,
		Manifest:    s.manifest,
		HasInit:     s.exportsFunction(abi.ExportInit),
		HasStop:     s.exportsFunction(abi.ExportStop),
		Initializer: s.exportsFunction(abi.ExportInitialize),
	}
	for _, i := range s.imports {
		info.Imports = append(info.Imports, abi.Import{Module: i.module, Name: i.name})
	}
	for _, e := range s.exports {
		if e.kind == api.ExternTypeFunc {
			info.Exports = append(info.Exports, e.name)
		}
	}
	slices.Sort(info.Exports)
	for _, m := range s.memories {
		info.MemoryMin = int64(m.min) * abi.PageBytes
		info.MemoryMax = int64(m.max) * abi.PageBytes
	}
	return info
}
