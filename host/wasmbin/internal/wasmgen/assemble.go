package wasmgen

import "strconv"

// Names of exports and imports. Functions are exported as "f" and their index.
const (
	// Observe is the export that returns the state not visible otherwise: each
	// global (a reference as 1 if it is null), and for each table its size and
	// a sum over its null entries.
	Observe = "observe"
	// Prepare is the export to call first. It fills large tables.
	Prepare = "prepare"
	// Memory is the export of the memory, if there is one.
	Memory = "memory"
	// FuelGlobal is the export of the global that bounds a bounded module.
	FuelGlobal = "fuel"
	// ImportModule is the module of all imports. The host may return any
	// results, but always the same ones.
	ImportModule = "env"
	// Again is the import for which the host calls the export Reentry, if
	// there is one, a bounded number of times.
	Again = "again"
	// Reentry has no parameters and no results.
	Reentry = "reentry"
)

const magic = "\x00asm\x01\x00\x00\x00"

// Section ids.
const (
	customSection = iota
	typeSection
	importSection
	functionSection
	tableSection
	memorySection
	globalSection
	exportSection
	startSection
	elementSection
	codeSection
	dataSection
	dataCountSection
)

// assemble writes the sections in their order. Code is generated first, so
// that it uses most of the string.
func (g *generator) assemble() []byte {
	code := g.code()
	out := buffer{wide: g.wide}
	out.raw([]byte(magic)...)
	put := func(id byte, n int, each func(i int, p *buffer)) {
		if n == 0 {
			return
		}
		p := buffer{wide: g.wide}
		p.u32(uint32(n))
		for i := range n {
			each(i, &p)
		}
		out.section(id, p.bytes)
		g.custom(&out)
	}
	observed := funcType{results: g.observed()}
	types := append(g.types, observed)
	put(typeSection, len(types), func(i int, p *buffer) {
		p.raw(0x60)
		p.types(types[i].params)
		p.types(types[i].results)
	})
	put(importSection, g.imported, g.writeImport)
	own := append(g.funcs[g.imported:len(g.funcs):len(g.funcs)], observed, funcType{})
	put(functionSection, len(own), func(i int, p *buffer) { p.u32(typeIndex(types, own[i])) })
	put(tableSection, len(g.tables), func(i int, p *buffer) {
		p.raw(byte(g.tables[i].t))
		p.limits(g.tables[i].least, g.tables[i].most)
	})
	if g.memory.present {
		put(memorySection, 1, func(_ int, p *buffer) { p.limits(g.memory.least, g.memory.most) })
	}
	put(globalSection, len(g.globals), g.writeGlobal)
	g.writeExports(&out)
	if g.start >= 0 {
		p := buffer{wide: g.wide}
		p.u32(uint32(g.start))
		out.section(startSection, p.bytes)
	}
	put(elementSection, len(g.elements), func(i int, p *buffer) { g.elements[i].write(p) })
	if len(g.data) > 0 {
		p := buffer{wide: g.wide}
		p.u32(uint32(len(g.data)))
		out.section(dataCountSection, p.bytes)
	}
	put(codeSection, len(code), func(i int, p *buffer) { p.sized(code[i]) })
	put(dataSection, len(g.data), func(i int, p *buffer) { g.data[i].write(p) })
	g.names(&out)
	return out.bytes
}

// typeIndex is the first of the types that equals t.
func typeIndex(types []funcType, t funcType) uint32 {
	for i := range types {
		if types[i].equal(t) {
			return uint32(i)
		}
	}
	panic("wasmgen: a function of a type that is not in the list")
}

// code makes the bodies, each from an equal part of the rest of the string.
func (g *generator) code() [][]byte {
	var out [][]byte
	for i, t := range g.funcs[g.imported:] {
		share := g.src.left() / (len(g.funcs) - g.imported - i)
		if g.imported+i >= g.visible() && !g.src.oneIn(3) {
			share = min(share, g.src.below(24)) // small enough to get the treatment of small functions
		}
		out = append(out, g.function(t, max(0, g.src.left()-share)))
	}
	if g.bounded {
		init := buffer{}
		init.raw(opI32Const)
		init.signed(Fuel)
		g.globals = append(g.globals, global{t: i32, mutable: true, init: init.bytes})
	}
	return append(out, g.observe(), g.prepare())
}

func (g *generator) writeImport(i int, p *buffer) {
	p.name(ImportModule)
	if g.reentry >= 0 && i == g.imported-1 {
		p.name(Again)
	} else {
		p.name("h" + strconv.Itoa(i))
	}
	p.raw(0)
	p.u32(typeIndex(g.types, g.funcs[i]))
}

func (g *generator) writeGlobal(i int, p *buffer) {
	p.raw(byte(g.globals[i].t))
	if g.globals[i].mutable {
		p.raw(1)
	} else {
		p.raw(0)
	}
	p.raw(g.globals[i].init...)
	p.raw(opEnd)
}

func (g *generator) writeExports(out *buffer) {
	p := buffer{wide: g.wide}
	n := 0
	export := func(name string, kind byte, index int) {
		p.name(name)
		p.raw(kind)
		p.u32(uint32(index))
		n++
	}
	for i := g.exported; i < g.visible(); i++ {
		export("f"+strconv.Itoa(i), 0, i)
	}
	export(Observe, 0, len(g.funcs))
	export(Prepare, 0, len(g.funcs)+1)
	if g.reentry >= 0 {
		export(Reentry, 0, g.reentry)
	}
	for i := range g.tables {
		export("t"+strconv.Itoa(i), 1, i)
	}
	if g.memory.present {
		export(Memory, 2, 0)
	}
	for i := range g.globals {
		if g.bounded && i == g.fuel {
			export(FuelGlobal, 3, i)
		} else {
			export("g"+strconv.Itoa(i), 3, i)
		}
	}
	count := buffer{wide: g.wide}
	count.u32(uint32(n))
	out.section(exportSection, append(count.bytes, p.bytes...))
}

// custom sometimes inserts a meaningless section.
func (g *generator) custom(out *buffer) {
	if !g.src.oneIn(32) {
		return
	}
	p := buffer{wide: g.wide}
	p.name("padding")
	for range 1 + g.src.below(8) { // wazero cannot read an empty one at the end
		p.raw(g.src.next())
	}
	out.section(customSection, p.bytes)
}

// names sometimes writes a name section.
func (g *generator) names(out *buffer) {
	if !g.src.oneIn(4) {
		return
	}
	funcs := buffer{wide: g.wide}
	funcs.u32(uint32(len(g.funcs)))
	for i := range g.funcs {
		funcs.u32(uint32(i))
		funcs.name("function " + strconv.Itoa(i))
	}
	p := buffer{wide: g.wide}
	p.name("name")
	p.section(1, funcs.bytes)
	out.section(customSection, p.bytes)
}
