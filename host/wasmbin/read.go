package wasmbin

import (
	"bytes"
)

// The preamble of a module, and the version field of a component, which shares
// the preamble's magic number.
var (
	magic            = []byte("\x00asm")
	versionModule    = []byte{1, 0, 0, 0}
	versionComponent = []byte{0x0d, 0, 1, 0}
)

const preambleBytes = 8

// Section numbers of later versions.
const (
	sectionTag     = 13
	sectionStrings = 14
)

// Read decodes a module. It accepts any bytes, never panics, and allocates at
// most a small multiple of len(wasm). It checks the structure of the module
// and the limits on its declarations, but not the instructions of functions:
// only a module that [Module.Validate] accepts is valid.
//
// The result refers to wasm. The error is an *abi.Error: invalid_argument for
// a damaged module, too_large beyond a limit (its id "limit" is the name of
// the field), unsupported for a module of a later version (its id "feature" is
// the name of the feature). The id "offset" is the byte of the error.
func Read(wasm []byte, limits Limits) (*Module, error) {
	limits = limits.withDefaults()
	d := &decoder{reader: reader{data: wasm, end: len(wasm), limits: &limits}, m: &Module{}}
	if len(wasm) > limits.ModuleBytes {
		return nil, tooLarge(d.here(), "ModuleBytes", "bytes", uint64(len(wasm)), uint64(limits.ModuleBytes))
	}
	d.preamble()
	for d.left() > 0 {
		d.section()
	}
	if d.err == nil && len(d.m.Code) != len(d.m.Funcs) {
		d.fail("%d functions are declared, but %d have code", len(d.m.Funcs), len(d.m.Code))
	}
	if d.err != nil {
		return nil, d.err
	}
	return d.m, nil
}

// decoder reads sections into m.
type decoder struct {
	reader
	m     *Module
	last  SectionID // the last section that was not custom
	after SectionID // the last non-empty section that was not custom
	seen  bool      // last is set

	functions, tables, memories, globals int // imported and defined so far
	tableElements                        uint64
	elements, codeBytes, typeOperands    int

	types  chunks[ValueType]
	locals chunks[LocalGroup]
}

func (d *decoder) preamble() {
	switch b := d.data[:min(len(d.data), preambleBytes)]; {
	case len(b) < preambleBytes || !bytes.Equal(b[:4], magic):
		d.fail("it is not a Wasm module")
	case bytes.Equal(b[4:], versionComponent):
		d.unsupported(d.here(), "the component model")
	case !bytes.Equal(b[4:], versionModule):
		d.fail("it is not of version 1 of the binary format")
	default:
		d.pos = preambleBytes
	}
}

func (d *decoder) section() {
	at := d.here()
	id := d.byte()
	size := d.u32()
	switch {
	case d.err != nil:
		return
	case id == sectionTag:
		d.unsupported(at, featureExceptions)
		return
	case id == sectionStrings:
		d.unsupported(at, featureStrings)
		return
	case id > byte(SectionDataCount):
		d.malformed(at, "there is no section with the id %d", id)
		return
	case int64(size) > int64(d.left()):
		d.malformed(at, "the section %q says that it has %d bytes, but only %d are left", SectionID(id), size, d.left())
		return
	}
	s := SectionID(id)
	if s != SectionCustom {
		if d.seen && s.rank() <= d.last.rank() {
			d.malformed(at, "the section %q must not follow the section %q", s, d.last)
			return
		}
		d.last, d.seen = s, true
	}
	end := d.end
	d.end = d.pos + int(size)
	d.content(s)
	if d.err == nil && d.left() > 0 {
		d.fail("the section %q is longer than its content: %d extra bytes", s, d.left())
	}
	if d.err == nil {
		d.end = end
	}
}

func (d *decoder) content(s SectionID) {
	switch s {
	case SectionCustom:
		d.custom()
	case SectionType:
		d.readTypes()
	case SectionImport:
		d.readImports()
	case SectionFunction:
		d.readFunctions()
	case SectionTable:
		d.readTables()
	case SectionMemory:
		d.readMemories()
	case SectionGlobal:
		d.readGlobals()
	case SectionExport:
		d.readExports()
	case SectionStart:
		start := d.u32()
		d.m.Start = &start
	case SectionElement:
		d.readElements()
	case SectionCode:
		d.readCode()
	case SectionData:
		d.readData()
	case SectionDataCount:
		count := d.u32()
		d.m.DataCount = &count
	}
	if s != SectionCustom && !d.m.empty(s) {
		d.after = s
	}
}

func (d *decoder) custom() {
	name := d.name()
	if name == "name" {
		d.readNames()
		return
	}
	if d.err == nil && len(d.m.Customs) == d.limits.CustomSections {
		d.tooLarge(d.here(), "CustomSections", "custom sections", uint64(len(d.m.Customs)+1), uint64(d.limits.CustomSections))
		return
	}
	if d.left() == 0 {
		// The format allows one at the end of a module, but wazero refuses it.
		if d.err == nil && d.end == len(d.data) {
			d.fail("it ends with an empty custom section")
		}
		return
	}
	d.m.Customs = append(d.m.Customs, Custom{Name: name, Bytes: d.bytes(uint32(d.left())), After: d.after})
}

// The forms of a type definition.
const (
	formFunc      = 0x60
	formsGC       = 0x4e // the first form of later versions
	formsGCLast   = 0x5f
	formSwitching = 0x5d
)

func (d *decoder) readTypes() {
	n := d.limited("Types", "types", 3, 0, d.limits.Types)
	d.m.Types = make([]FuncType, 0, n)
	for range n {
		at := d.here()
		switch form := d.byte(); {
		case form == formSwitching:
			d.unsupported(at, featureSwitching)
		case form >= formsGC && form <= formsGCLast:
			d.unsupported(at, featureGC)
		case form != formFunc && d.err == nil:
			d.malformed(at, "a type has the unknown form %#x", form)
		}
		params := d.valueTypes("Params", "parameters", d.limits.Params)
		d.m.Types = append(d.m.Types, FuncType{params, d.valueTypes("Results", "results", d.limits.Results)})
		if d.err != nil {
			return
		}
	}
}

func (d *decoder) valueTypes(limit, what string, most int) []ValueType {
	n := d.limited(limit, what, 1, 0, most)
	if n == 0 {
		return nil
	}
	d.add(&d.typeOperands, n, "TypeOperands", "parameters and results in types", d.limits.TypeOperands)
	if d.err != nil {
		return nil
	}
	out := d.types.take(n)
	for i := range out {
		out[i] = d.valueType()
	}
	return out
}

func (d *decoder) readImports() {
	n := d.limited("Imports", "imports", 4, 0, d.limits.Imports)
	d.m.Imports = make([]Import, 0, n)
	for range n {
		imp := Import{Module: d.name(), Name: d.name()}
		if imp.Module == "" {
			d.fail("an import has an empty module name") // the format allows this, but wazero refuses it
		}
		at := d.here()
		kind := d.byte()
		imp.Kind = ExternKind(kind)
		switch {
		case d.err != nil:
			return
		case imp.Kind == ExternFunc:
			d.add(&d.functions, 1, "Functions", "functions", d.limits.Functions)
			imp.Type = d.u32()
		case imp.Kind == ExternTable:
			imp.Value, imp.Size = d.table()
		case imp.Kind == ExternMemory:
			imp.Size = d.memory()
		case imp.Kind == ExternGlobal:
			d.add(&d.globals, 1, "Globals", "globals", d.limits.Globals)
			g := d.globalType()
			imp.Value, imp.Mutable = g.Type, g.Mutable
		default:
			d.badKind(at, kind)
		}
		d.m.Imports = append(d.m.Imports, imp)
	}
}

// kindTag is the kind of an imported or exported exception tag.
const kindTag = 4

func (d *decoder) badKind(at place, kind byte) {
	if kind == kindTag {
		d.unsupported(at, featureExceptions)
		return
	}
	d.malformed(at, "an import or export has the unknown kind %d", kind)
}

// add counts n more of something for which imports and definitions share a
// limit.
func (d *decoder) add(total *int, n int, limit, what string, most int) {
	*total += n
	if *total > most {
		d.tooLarge(d.here(), limit, what, uint64(*total), uint64(most))
	}
}

func (d *decoder) readFunctions() {
	n := d.count("functions", 1)
	d.add(&d.functions, n, "Functions", "functions", d.limits.Functions)
	if d.err != nil {
		return
	}
	d.m.Funcs = make([]uint32, n)
	for i := range d.m.Funcs {
		d.m.Funcs[i] = d.u32()
	}
}

func (d *decoder) table() (ValueType, Range) {
	d.add(&d.tables, 1, "Tables", "tables", d.limits.Tables)
	at := d.here()
	if d.left() > 0 && d.data[d.pos] == 0x40 {
		d.unsupported(at, featureGC) // a table with an initial value
	}
	t := d.refType()
	size := d.sizes()
	d.tableElements += uint64(size.Min)
	if d.err == nil && d.tableElements > uint64(d.limits.TableElements) {
		d.tooLarge(at, "TableElements", "initial table elements", d.tableElements, uint64(d.limits.TableElements))
	}
	if d.err == nil && size.HasMax && size.Max < size.Min {
		d.malformed(at, "the initial size of a table exceeds its maximum")
	}
	return t, size
}

func (d *decoder) readTables() {
	n := d.count("tables", 3)
	d.m.Tables = make([]Table, 0, min(n, d.limits.Tables))
	for range n {
		t, size := d.table()
		if d.err != nil {
			return
		}
		d.m.Tables = append(d.m.Tables, Table{t, size})
	}
}

// maxPages is the most pages that 32-bit addresses can reach.
const maxPages = 1 << 16

func (d *decoder) memory() Range {
	at := d.here()
	size := d.sizes()
	d.memories++
	switch {
	case d.err != nil:
	case d.memories > 1:
		d.unsupported(at, featureMultiMemory)
	case size.Min > maxPages || size.Max > maxPages:
		d.malformed(at, "a memory has more than 65536 pages")
	case size.HasMax && size.Max < size.Min:
		d.malformed(at, "the initial size of a memory exceeds its maximum")
	case int(size.Min) > d.limits.MemoryPages:
		d.tooLarge(at, "MemoryPages", "initial memory pages", uint64(size.Min), uint64(d.limits.MemoryPages))
	}
	return size
}

func (d *decoder) readMemories() {
	for range d.count("memories", 2) {
		size := d.memory()
		if d.err != nil {
			return
		}
		d.m.Memories = append(d.m.Memories, Memory{size})
	}
}

func (d *decoder) readGlobals() {
	n := d.count("globals", 4)
	d.add(&d.globals, n, "Globals", "globals", d.limits.Globals)
	if d.err != nil {
		return
	}
	d.m.Globals = make([]Global, 0, n)
	for range n {
		d.m.Globals = append(d.m.Globals, Global{d.globalType(), d.constExpr()})
		if d.err != nil {
			return
		}
	}
}

func (d *decoder) readExports() {
	n := d.limited("Exports", "exports", 3, 0, d.limits.Exports)
	d.m.Exports = make([]Export, 0, n)
	for range n {
		e := Export{Name: d.name()}
		at := d.here()
		kind := d.byte()
		if d.err == nil && kind > byte(ExternGlobal) {
			d.badKind(at, kind)
		}
		e.Kind, e.Index = ExternKind(kind), d.u32()
		if d.err != nil {
			return
		}
		d.m.Exports = append(d.m.Exports, e)
	}
}

// chunks allocates slices from a few large allocations, so that a hundred
// thousand signatures do not need as many allocations.
type chunks[T any] struct {
	free []T
	last int // the size of the last chunk
}

// The first chunk is small and each doubles the last up to the largest, so
// that at most half is unused.
const (
	firstChunk   = 64
	largestChunk = 1 << 16
)

func (c *chunks[T]) take(n int) []T {
	if n > len(c.free) {
		c.last = max(n, min(2*c.last, largestChunk), firstChunk)
		c.free = make([]T, c.last)
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	return out
}
