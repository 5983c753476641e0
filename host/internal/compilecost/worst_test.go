package compilecost

import "github.com/seed47132306/terrarium/host/wasmbin"

// code writes the body of a function of type (i32) → i32.
type code struct{ b []byte }

func (c *code) op(ops ...wasmbin.Opcode) *code {
	for _, o := range ops {
		c.b = o.Append(c.b)
	}
	return c
}

func (c *code) index(o wasmbin.Opcode, i int) *code {
	c.b = wasmbin.AppendU32(o.Append(c.b), uint32(i))
	return c
}

func (c *code) get(i int) *code  { return c.index(wasmbin.OpLocalGet, i) }
func (c *code) set(i int) *code  { return c.index(wasmbin.OpLocalSet, i) }
func (c *code) brIf(d int) *code { return c.index(wasmbin.OpBrIf, d) }
func (c *code) num(v int) *code {
	c.b = wasmbin.AppendS64(wasmbin.OpI32Const.Append(c.b), int64(v))
	return c
}
func (c *code) load() *code { c.b = append(wasmbin.OpI32Load.Append(c.b), 0, 0); return c }
func (c *code) end() *code  { return c.op(wasmbin.OpEnd) }
func (c *code) open(o wasmbin.Opcode) *code {
	c.b = append(o.Append(c.b), 0x40)
	return c
}

// readAll keeps the locals 1 to n alive up to here.
func (c *code) readAll(n int) *code {
	for i := range n {
		c.get(1 + i).get(0).op(wasmbin.OpI32Add).set(0)
	}
	return c
}

// function ends the body and adds n more locals.
func (c *code) function(n int) wasmbin.Code {
	c.get(0).end()
	f := wasmbin.Code{Body: c.b}
	if n > 0 {
		f.Locals = []wasmbin.LocalGroup{{Count: uint32(n), Type: wasmbin.I32}}
	}
	return f
}

// moduleOf returns a module of those functions, all of type (i32) → i32.
func moduleOf(fs ...wasmbin.Code) *wasmbin.Module {
	m := &wasmbin.Module{Types: []wasmbin.FuncType{{Params: []wasmbin.ValueType{wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}}}}
	m.Memories = append(m.Memories, wasmbin.Memory{Range: wasmbin.Range{Min: 1}})
	for _, f := range fs {
		m.AddFunc(0, f)
	}
	return m
}

func small() wasmbin.Code { return new(code).function(0) }

// A shape makes a module of size n. Of all shapes tried these are the worst
// for wazero's compiler, each for a different reason.
type shape struct {
	name string
	make func(n int) *wasmbin.Module
}

var worst = []shape{
	{"branches in a row", func(n int) *wasmbin.Module { // long chains to walk
		c := new(code).open(wasmbin.OpBlock)
		for range n {
			c.get(0).brIf(0)
		}
		return moduleOf(c.end().function(0))
	}},
	{"ifs in a row", func(n int) *wasmbin.Module { // a deep tree of dominators
		c := new(code)
		for range n {
			c.get(0).open(wasmbin.OpIf).end()
		}
		return moduleOf(c.function(0))
	}},
	{"blocks within blocks", func(n int) *wasmbin.Module {
		c := new(code)
		for range n {
			c.open(wasmbin.OpBlock)
		}
		for i := range n {
			c.get(0).brIf(i)
		}
		for range n {
			c.end()
		}
		return moduleOf(c.function(0))
	}},
	{"loads and branches", func(n int) *wasmbin.Module { // known addresses from block to block
		c := new(code).open(wasmbin.OpBlock)
		for range n {
			c.get(0).load().index(wasmbin.OpLocalTee, 0).brIf(0)
		}
		return moduleOf(c.end().function(0))
	}},
	{"locals across branches", func(n int) *wasmbin.Module { // every edge is searched for every local
		c := new(code)
		for i := range n {
			c.get(0).num(i).op(wasmbin.OpI32Add).set(1 + i)
		}
		c.open(wasmbin.OpBlock)
		for range n {
			c.get(0).brIf(0)
		}
		return moduleOf(c.end().readAll(n).function(n))
	}},
	{"locals that branches change", func(n int) *wasmbin.Module { // every edge passes every local
		c := new(code).open(wasmbin.OpBlock)
		for i := range n {
			c.get(0).num(i).op(wasmbin.OpI32Add).set(1 + i).get(0).brIf(0)
		}
		return moduleOf(c.end().readAll(n).function(n))
	}},
	{"loops within loops", func(n int) *wasmbin.Module { // a round for every level
		n = min(n, maxLoops*maxLoops)
		loops, locals := min(n, maxLoops), max(1, n/4)
		c := new(code)
		for range loops {
			c.open(wasmbin.OpLoop)
		}
		for i := range locals {
			c.get(1 + i).num(1).op(wasmbin.OpI32Add).set(1 + i)
		}
		for range loops {
			c.get(0).brIf(0).end()
		}
		return moduleOf(c.function(locals))
	}},
	{"loops in a row", func(n int) *wasmbin.Module {
		c := new(code)
		for i := range n {
			c.get(0).num(i).op(wasmbin.OpI32Add).set(1 + i)
		}
		for range n {
			c.open(wasmbin.OpLoop).get(0).brIf(0).end()
		}
		return moduleOf(c.readAll(n).function(n))
	}},
	{"locals that rotate", func(n int) *wasmbin.Module { // a round for every copy
		c := new(code).open(wasmbin.OpLoop)
		for i := range n {
			c.get(2 + i).set(1 + i)
		}
		c.get(0).brIf(0).end()
		return moduleOf(c.readAll(n).function(n + 1))
	}},
	{"a table to a loop", func(n int) *wasmbin.Module {
		c := new(code).open(wasmbin.OpLoop)
		for i := range n / 16 {
			c.get(1 + i).num(1).op(wasmbin.OpI32Add).set(1 + i)
		}
		c.get(0).index(wasmbin.OpBrTable, n)
		c.b = append(c.b, make([]byte, n+1)...)
		return moduleOf(c.end().function(n/16 + 1))
	}},
	{"fills of memory", func(n int) *wasmbin.Module { // each is a loop
		c := new(code)
		for range n {
			c.num(0).num(0).num(8).op(wasmbin.OpMemoryFill)
			c.b = append(c.b, 0)
		}
		return moduleOf(c.function(0))
	}},
	{"copies of memory", func(n int) *wasmbin.Module { // each becomes kilobytes
		c := new(code)
		for range n {
			c.num(0).num(0).num(8).op(wasmbin.OpMemoryCopy)
			c.b = append(c.b, 0, 0)
		}
		return moduleOf(c.function(0))
	}},
	{"divisions", func(n int) *wasmbin.Module {
		c := new(code)
		for range n {
			c.get(0).get(0).op(wasmbin.OpI32DivS).set(0)
		}
		return moduleOf(c.function(0))
	}},
	{"calls and globals", func(n int) *wasmbin.Module { // all loaded again after each call
		c := new(code).get(0)
		for range n {
			c.index(wasmbin.OpCall, 0)
		}
		m := moduleOf(c.set(0).function(0))
		for range n {
			m.AddGlobal(wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstExpr{Op: wasmbin.OpI32Const}})
		}
		return m
	}},
	{"functions and types", func(n int) *wasmbin.Module { // gone over for each function
		m := moduleOf()
		for range n {
			m.AddFunc(0, small())
		}
		kinds := [...]wasmbin.ValueType{wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64}
		for i := range min(n, 9_000) {
			var t wasmbin.FuncType
			for ; i > 0; i /= 4 {
				t.Params = append(t.Params, kinds[i%4])
			}
			m.AddType(t)
		}
		return m
	}},
	{"a large function first", func(n int) *wasmbin.Module { // its tables stay
		c := new(code)
		for range n / 4 {
			c.get(0).open(wasmbin.OpIf).end()
		}
		m := moduleOf(c.function(0))
		for range n {
			m.AddFunc(0, small())
		}
		return m
	}},
}

// tableToBlocks has one br_table whose targets alternate between some blocks.
func tableToBlocks(blocks, targets int) *wasmbin.Module {
	c := new(code)
	for range blocks {
		c.open(wasmbin.OpBlock)
	}
	c.get(0).index(wasmbin.OpBrTable, targets)
	for i := range targets + 1 {
		c.b = wasmbin.AppendU32(c.b, uint32(i%blocks))
	}
	for range blocks {
		c.end()
	}
	return moduleOf(c.function(0))
}

// callsWithOperands repeatedly calls a function with that many parameters and
// results.
func callsWithOperands(calls, operands int, op wasmbin.Opcode) *wasmbin.Module {
	c, callee := new(code), new(code)
	var t wasmbin.FuncType
	for i := range operands {
		t.Params, t.Results = append(t.Params, wasmbin.I32), append(t.Results, wasmbin.I32)
		c.num(i)
		callee.get(i)
	}
	m := moduleOf()
	typ := m.AddType(t)
	f := m.AddFunc(typ, wasmbin.Code{Body: callee.end().b})
	m.Tables = append(m.Tables, wasmbin.Table{Type: wasmbin.FuncRef, Range: wasmbin.Range{Min: 1}})
	for range calls {
		if op == wasmbin.OpCallIndirect {
			c.num(0).index(op, int(typ))
			c.b = append(c.b, 0)
		} else {
			c.index(op, int(f))
		}
	}
	for range operands {
		c.op(wasmbin.OpDrop)
	}
	m.AddFunc(0, c.function(0))
	return m
}
