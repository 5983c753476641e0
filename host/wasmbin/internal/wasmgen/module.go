package wasmgen

import "slices"

// longest is how much of a string is used. It bounds the module to about
// a hundred kilobytes.
const longest = 4096

// funcType is a function type.
type funcType struct {
	params, results []valueType
}

func (t funcType) equal(u funcType) bool {
	return slices.Equal(t.params, u.params) && slices.Equal(t.results, u.results)
}

type global struct {
	t       valueType
	mutable bool
	init    []byte
}

type table struct {
	t           valueType
	least, most int   // most < 0 is no upper bound
	entries     []int // the functions that active segments put there, or -1
}

type memory struct {
	present     bool
	least, most int
}

// generator makes one module.
type generator struct {
	src      *source
	bounded  bool
	wide     bool
	types    []funcType
	imported int        // how many of funcs are imports
	funcs    []funcType // imports first
	reentry  int        // the function that the host may call back, or -1
	start    int        // the start function, or -1
	exported int        // the first function that is exported: an import, or the first that is not
	hidden   int        // how many functions, the last ones, are only there to be called
	declared []uint32   // functions that code may refer to
	segment  bool       // whether they are declared by a segment rather than by exports
	globals  []global
	fuel     int // the global that bounds the work, if bounded
	tables   []table
	memory   memory
	elements []elementSegment
	data     []dataSegment
}

// Generate makes a valid module from any string. Its functions may run
// forever or recurse without end.
func Generate(data []byte) []byte {
	return generate(data, false)
}

// GenerateBounded makes a module whose functions trap as unreachable after
// [Fuel] loop rounds and calls together. The host may set the exported global
// "fuel" to allow more.
func GenerateBounded(data []byte) []byte {
	return generate(data, true)
}

// Fuel is the initial fuel of a bounded module. It is less than the nesting of
// calls that any engine allows.
const Fuel = 1000

func generate(data []byte, bounded bool) []byte {
	g := &generator{src: &source{data: data[:min(len(data), longest)]}, bounded: bounded, reentry: -1, start: -1}
	g.wide = g.src.oneIn(8)
	g.chooseTypes()
	g.chooseFunctions()
	g.chooseTables()
	g.chooseMemory()
	g.chooseGlobals()
	g.chooseElements()
	g.chooseData()
	return g.assemble()
}

func (g *generator) someTypes(from []valueType, n int) []valueType {
	var out []valueType
	for range n {
		out = append(out, pick(g.src, from))
	}
	return out
}

// chooseTypes lists function types. The first is that of no parameters and no
// results, which start functions need.
func (g *generator) chooseTypes() {
	g.types = []funcType{{}}
	for range 1 + g.src.below(6) {
		t := funcType{params: g.someTypes(allTypes, g.src.below(4)), results: g.someTypes(allTypes, g.src.below(4))}
		switch g.src.below(16) {
		case 15:
			t.params = g.someTypes(allTypes, g.src.below(24))
		case 14:
			t.results = g.someTypes(allTypes, g.src.below(12))
		case 13, 12, 11:
			t.results = t.params
		}
		g.types = append(g.types, t)
	}
}

// hostTypes lists the types of imported functions, which have no vectors.
var hostTypes = append([]valueType{externref}, numbers...)

func (g *generator) chooseFunctions() {
	for range g.src.below(4) {
		t := funcType{params: g.someTypes(hostTypes, g.src.below(5)), results: g.someTypes(hostTypes, g.src.below(3))}
		g.types = append(g.types, t)
		g.funcs = append(g.funcs, t)
	}
	again := g.src.oneIn(3)
	if again {
		g.funcs = append(g.funcs, g.types[0])
	}
	g.imported, g.exported = len(g.funcs), len(g.funcs)
	if g.src.oneIn(4) {
		g.exported = 0
	}
	for range 1 + g.src.below(5) {
		g.funcs = append(g.funcs, pick(g.src, g.types))
	}
	if again {
		g.reentry = len(g.funcs)
		g.funcs = append(g.funcs, g.types[0])
	}
	if g.src.oneIn(4) {
		g.start = g.thunk()
	}
	g.segment = g.src.oneIn(2)
	for i := range g.funcs {
		if g.segment || i >= g.imported {
			g.declared = append(g.declared, uint32(i))
		}
	}
	g.hidden = g.src.below(4)
	for range g.hidden {
		g.funcs = append(g.funcs, pick(g.src, g.types))
	}
}

// visible is how many functions can be reached other than by calls.
func (g *generator) visible() int {
	return len(g.funcs) - g.hidden
}

// thunk picks a function without parameters and results, or -1.
func (g *generator) thunk() int {
	var fitting []int
	for i, t := range g.funcs {
		if t.equal(funcType{}) {
			fitting = append(fitting, i)
		}
	}
	if len(fitting) == 0 {
		return -1
	}
	return pick(g.src, fitting)
}

// large is a size of tables at which implementations may work in pieces.
const large = 8192

func (g *generator) chooseTables() {
	for range g.src.below(4) {
		t := table{t: funcref, least: g.src.below(16), most: -1}
		if g.src.oneIn(10) {
			t.least = large + g.src.below(large/2)
		}
		if g.src.oneIn(4) {
			t.t = externref
		}
		if g.src.oneIn(2) {
			t.most = t.least + g.src.below(16)
		}
		t.entries = slices.Repeat([]int{-1}, t.least)
		g.tables = append(g.tables, t)
	}
}

// tableOf picks a table of a type.
func (g *generator) tableOf(t valueType) (index int, ok bool) {
	var fitting []int
	for i := range g.tables {
		if g.tables[i].t == t {
			fitting = append(fitting, i)
		}
	}
	if len(fitting) == 0 {
		return 0, false
	}
	return pick(g.src, fitting), true
}

// entries lists the indexes in a table that initially hold a function of the
// type.
func (g *generator) entries(table int, t funcType) []int {
	var out []int
	for i, f := range g.tables[table].entries {
		if f >= 0 && g.funcs[f].equal(t) {
			out = append(out, i)
		}
	}
	return out
}

func (g *generator) chooseMemory() {
	if g.src.oneIn(12) {
		return
	}
	g.memory = memory{present: true, least: 1, most: -1}
	if g.src.oneIn(2) {
		g.memory.least = 1 + g.src.below(4)
	} else if g.src.oneIn(12) {
		g.memory.least = 0
	}
	if g.src.oneIn(2) {
		g.memory.most = g.memory.least + g.src.below(4)
	}
}

func (g *generator) chooseGlobals() {
	for range g.src.below(10) {
		init := buffer{wide: g.wide}
		t := pick(g.src, allTypes)
		g.constant(&init, t)
		g.globals = append(g.globals, global{t: t, mutable: !g.src.oneIn(4), init: init.bytes})
	}
	// It is last, and removed while code is generated, because no other code
	// may change it.
	g.fuel = len(g.globals)
}

// blockEncoding is the type of a block and its form in the binary.
type blockEncoding struct {
	funcType
	encoding []byte
}

// blockType picks a type for a block; steady is one whose results are its
// parameters.
func (g *generator) blockType(steady bool) blockEncoding {
	var fitting []int
	for i, t := range g.types {
		if !steady || slices.Equal(t.params, t.results) {
			fitting = append(fitting, i)
		}
	}
	switch choice := g.src.below(4); {
	case choice == 0, choice == 1 && steady:
		return blockEncoding{encoding: []byte{noResult}}
	case choice == 1:
		t := pick(g.src, allTypes)
		return blockEncoding{funcType{results: []valueType{t}}, []byte{byte(t)}}
	}
	i := pick(g.src, fitting)
	out := buffer{}
	out.signed(int64(i))
	return blockEncoding{g.types[i], out.bytes}
}

// spend writes the code that counts a call or a round of a loop.
func (b *body) spend() {
	if !b.gen.bounded {
		return
	}
	fuel := uint32(b.gen.fuel)
	b.indexed(opGlobalGet, fuel)
	b.code.raw(opI32Eqz, opIf, noResult, opUnreachable, opEnd)
	b.indexed(opGlobalGet, fuel)
	b.code.raw(opI32Const, 1, opI32Sub)
	b.indexed(opGlobalSet, fuel)
}
