package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// Section ids of the binary format.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
	sectionCount    = 12 // of data segments; precedes the code
)

// order is the order of the sections.
var order = []byte{
	sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
	sectionExport, sectionStart, sectionElement, sectionCount, sectionCode, sectionData, sectionCustom,
}

// Kinds of imports and exports.
const (
	kindFunction = 0
	kindMemory   = 2
)

// Value types.
const (
	typeI32     = 0x7f
	typeI64     = 0x7e
	typeFuncref = 0x70
)

var preamble = []byte("\x00asm\x01\x00\x00\x00")

// binaryModule is a module assembled section by section. Nothing is checked,
// so that it can be invalid in any way.
type binaryModule struct {
	sections [sectionCount + 1]section
	imported uint32 // imported functions; all imports come first
	defined  uint32 // the module's own functions
	types    map[string]uint32
}

// section is a vector of entries, or for some sections just bytes.
type section struct {
	count   uint32
	content []byte
	raw     bool   // content is the complete section, without a count
	lie     uint32 // added to the size that the section announces
}

func (s *section) add(entry ...[]byte) uint32 {
	s.count++
	s.content = append(s.content, slices.Concat(entry...)...)
	return s.count - 1
}

// addMany adds the same entry n times.
func (s *section) addMany(n int, entry []byte) {
	s.count += uint32(n)
	s.content = append(s.content, bytes.Repeat(entry, n)...)
}

// set replaces the complete section, count included.
func (s *section) set(content ...[]byte) {
	s.content, s.raw = slices.Concat(content...), true
}

// newModule returns an empty module.
func newModule() *binaryModule { return &binaryModule{types: map[string]uint32{}} }

// newCreature returns a module with everything that the contract requires
// except creature_handle: some pages of memory and the marker.
func newCreature(pages uint32) *binaryModule {
	m := newModule()
	m.memory(pages)
	m.export(abi.ExportMemory, kindMemory, 0)
	return m
}

// bytes returns the module in the binary format.
func (m *binaryModule) bytes() []byte {
	out := slices.Clone(preamble)
	for _, id := range order {
		s := &m.sections[id]
		if len(s.content) == 0 && s.count == 0 {
			continue
		}
		content := s.content
		if !s.raw {
			content = slices.Concat(u32(s.count), content)
		}
		out = append(out, id)
		out = append(out, u32(uint32(len(content))+s.lie)...)
		out = append(out, content...)
	}
	return out
}

// signature is a function type. In text, i is i32, I is i64, and the results
// come after the colon: "iI:i".
type signature string

func (s signature) bytes() []byte {
	var params, results []byte
	list := &params
	for _, c := range s {
		switch c {
		case 'i':
			*list = append(*list, typeI32)
		case 'I':
			*list = append(*list, typeI64)
		case ':':
			list = &results
		}
	}
	return slices.Concat([]byte{0x60}, vector(params), vector(results))
}

// signatureOf returns the type of a hostcall in the contract.
func signatureOf(f abi.Function) signature {
	var s []byte
	letter := map[abi.ValueType]byte{abi.I32: 'i', abi.I64: 'I'}
	for _, p := range f.Params {
		s = append(s, letter[p.Type])
	}
	return signature(append(s, ':', letter[f.Result]))
}

// typ returns the index of a function type.
func (m *binaryModule) typ(s signature) uint32 {
	i, ok := m.types[string(s)]
	if !ok {
		i = m.sections[sectionType].add(s.bytes())
		m.types[string(s)] = i
	}
	return i
}

// importFunction declares an import and returns its index. Imports come before
// all of the module's own functions.
func (m *binaryModule) importFunction(module, name string, s signature) uint32 {
	if m.defined > 0 {
		panic("hostile: an import after a function would shift its index")
	}
	m.sections[sectionImport].add(text(module), text(name), []byte{kindFunction}, u32(m.typ(s)))
	m.imported++
	return m.imported - 1
}

// hostcall imports a function of the contract, with its type.
func (m *binaryModule) hostcall(name string) uint32 {
	f, ok := abi.FunctionByName(name)
	if !ok {
		panic(fmt.Sprintf("hostile: the contract has no function %s", name))
	}
	return m.importFunction(abi.ImportModule, name, signatureOf(f))
}

// function adds a function and returns its index.
func (m *binaryModule) function(s signature, locals []locals, body ...code) uint32 {
	return m.body(s, bodyOf(locals, body...))
}

// body adds a function whose body is given as bytes, preceded by its size.
func (m *binaryModule) body(s signature, b []byte) uint32 {
	m.sections[sectionFunction].add(u32(m.typ(s)))
	m.sections[sectionCode].add(b)
	m.defined++
	return m.imported + m.defined - 1
}

// bodyOf returns a function body preceded by its size.
func bodyOf(groups []locals, body ...code) []byte {
	b := u32(uint32(len(groups)))
	for _, g := range groups {
		b = slices.Concat(b, u32(g.count), []byte{g.typ})
	}
	b = append(b, seq(body...)...)
	return vector(append(b, opEnd))
}

// locals is one group of local variables.
type locals struct {
	count uint32
	typ   byte
}

func (m *binaryModule) export(name string, kind byte, index uint32) {
	m.sections[sectionExport].add(text(name), []byte{kind}, u32(index))
}

// finish adds the marker and a creature_handle that runs body for a message
// and does nothing for other deliveries, and returns the module's bytes.
func (m *binaryModule) finish(body ...code) []byte {
	return m.finishWith(nil, body...)
}

// finishWith is finish with local variables. Locals 0 and 1 are the parameters
// kind and size.
func (m *binaryModule) finishWith(groups []locals, body ...code) []byte {
	m.export(abi.ExportMarker, kindFunction, m.function(":", nil))
	attack := seq(body...)
	m.export(abi.ExportHandle, kindFunction, m.function("ii:i", groups,
		localGet(0), i32(int32(abi.KindMessage)), i32ne, when(i32(0), ret),
		attack,
		i32(0),
	))
	return m.bytes()
}

// harmless finishes a module whose attack is not in creature_handle.
func (m *binaryModule) harmless() []byte { return m.finish() }

// memory declares the one memory, in pages of 64 KiB.
func (m *binaryModule) memory(pages uint32) {
	m.sections[sectionMemory].add([]byte{0}, u32(pages))
}

// table declares a table of functions without a maximum, and returns its index.
func (m *binaryModule) table(elements uint32) uint32 {
	return m.sections[sectionTable].add([]byte{typeFuncref, 0}, u32(elements))
}

// elements fills a table with functions, from index 0 on.
func (m *binaryModule) elements(functions ...uint32) {
	entry := slices.Concat(u32(0), i32(0), code{opEnd}, u32(uint32(len(functions))))
	for _, f := range functions {
		entry = append(entry, u32(f)...)
	}
	m.sections[sectionElement].add(entry)
}

// passiveElements adds a segment for table.init and returns its index.
func (m *binaryModule) passiveElements(n int, function uint32) uint32 {
	const passive, funcrefs = 1, 0
	entry := slices.Concat(u32(passive), []byte{funcrefs}, u32(uint32(n)))
	return m.sections[sectionElement].add(entry, slices.Repeat(u32(function), n))
}

// data adds a segment that puts bytes at an address when the module is
// instantiated.
func (m *binaryModule) data(at int32, content []byte) {
	m.countData()
	m.sections[sectionData].add(u32(0), i32(at), code{opEnd}, vector(content))
}

// passiveData adds a segment for memory.init and returns its index.
func (m *binaryModule) passiveData(content []byte) uint32 {
	m.countData()
	return m.sections[sectionData].add(u32(1), vector(content))
}

func (m *binaryModule) countData() {
	m.sections[sectionCount].set(u32(m.sections[sectionData].count + 1))
}

// start makes a function the start function.
func (m *binaryModule) start(function uint32) { m.sections[sectionStart].set(u32(function)) }

// nameFunction adds a name section with the name of one function.
func (m *binaryModule) nameFunction(function uint32, name string) {
	const functionNames = 1
	names := slices.Concat(u32(1), u32(function), text(name))
	m.sections[sectionCustom].set(text("name"), []byte{functionNames}, vector(names))
}

// u32 encodes an unsigned LEB128 number.
func u32(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// vector returns bytes preceded by their length.
func vector(b []byte) []byte { return append(u32(uint32(len(b))), b...) }

// text returns a name preceded by its length.
func text(s string) []byte { return vector([]byte(s)) }
