package wasmbin_test

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// bodies lists bodies of a function in world with the parameter i32 and no
// result, each with its error; "" if it is valid.
var bodies = []struct {
	name, text, wrong string
	lenient           bool // wazero accepts it
}{
	// Operands.
	{name: "constants", text: "i32.const 1 i64.const -1 f32.const 1 f64.const 1 v128.const 1 drop drop drop drop drop"},
	{name: "nothing to drop", text: "drop", wrong: "drop needs an operand, but the block has none left"},
	{name: "nothing to add", text: "i32.const 1 i32.add drop", wrong: "i32.add needs an operand of type i32, but the block has none left"},
	{name: "wrong operand", text: "i64.const 1 i32.eqz drop", wrong: "i32.eqz takes i32, but gets i64"},
	{name: "wrong second operand", text: "f32.const 1 f64.const 1 f32.add drop", wrong: "f32.add takes f32, but gets f64"},
	{name: "left at the end", text: "i32.const 1", wrong: "more operands than results: 1 extra"},
	{name: "select of numbers", text: "i32.const 1 i32.const 2 local.get 0 select drop"},
	{name: "select of vectors", text: "v128.const 1 v128.const 2 local.get 0 select drop"},
	{name: "select of two types", text: "i32.const 1 i64.const 2 local.get 0 select drop", wrong: "the operands of select have different types, i32 and i64"},
	{name: "select of references", text: "ref.null funcref ref.null funcref local.get 0 select drop", wrong: "must state its type"},
	{name: "select with type", text: "ref.null funcref ref.null funcref local.get 0 select_t funcref drop"},
	{name: "select with another type", text: "i32.const 1 i32.const 1 local.get 0 select_t i64 drop", wrong: "select takes i64, but gets i32", lenient: true},
	{name: "locals", text: "local.get 0 local.tee 1 local.set 0 local.get 2 local.set 3"},
	{name: "local of another type", text: "local.get 2 local.set 0", wrong: "local.set takes i32, but gets i64"},
	{name: "no such local", text: "local.get 4 drop", wrong: "there is no local 4"},
	{name: "globals", text: "global.get 0 drop i64.const 1 global.set 1 global.get 3 global.set 3"},
	{name: "constant global", text: "i32.const 1 global.set 0", wrong: "global 0 is not mutable"},
	{name: "no such global", text: "global.get 9 drop", wrong: "there is no global 9"},

	// Blocks.
	{name: "block with result", text: "block i32 i32.const 1 end drop"},
	{name: "block without its result", text: "block i32 end drop", wrong: "end needs an operand of type i32, but the block has none left"},
	{name: "block with parameters", text: "i32.const 1 i32.const 2 block 3 end drop drop"},
	{name: "block without its parameters", text: "i32.const 1 block 3 end drop drop", wrong: "block needs an operand of type i32, but the block has none left"},
	{name: "block takes from outside", text: "i32.const 1 block _ drop end", wrong: "drop needs an operand, but the block has none left"},
	{name: "block of no type", text: "block 6 end", wrong: "there is no type 6"},
	{name: "if", text: "local.get 0 if i32 i32.const 1 else i32.const 2 end drop"},
	{name: "if without condition", text: "if _ end", wrong: "if needs an operand of type i32, but the block has none left"},
	{name: "if without else", text: "local.get 0 if _ nop end"},
	{name: "if with parameters without else", text: "i32.const 1 i32.const 1 local.get 0 if 3 end drop drop"},
	{name: "if with result without else", text: "local.get 0 if i32 i32.const 1 end drop", wrong: "an if without else"},
	{name: "else of the wrong type", text: "local.get 0 if i32 i32.const 1 else i64.const 1 end drop", wrong: "end takes i32, but gets i64"},
	{name: "then of the wrong type", text: "local.get 0 if i32 i64.const 1 else i32.const 1 end drop", wrong: "else takes i32, but gets i64"},
	{name: "two elses", text: "local.get 0 if _ else else end", wrong: "else without an if"},
	{name: "else in a block", text: "block _ else end", wrong: "else without an if"},
	{name: "else in the function", text: "else", wrong: "else without an if"},
	{name: "a block too many", text: "block _", wrong: "before its last end"},
	{name: "an end too many", text: "end", wrong: "continues after its last end"},
	{name: "an end too many in the middle", text: "end nop", wrong: "continues after its last end"},

	// Branches.
	{name: "br out of a block", text: "block i32 i32.const 1 br 0 end drop"},
	{name: "br without operand", text: "block i32 br 0 end drop", wrong: "br needs an operand of type i32, but the block has none left"},
	{name: "br with more operands", text: "block i32 i64.const 1 i32.const 1 br 0 end drop"},
	{name: "br to a loop takes parameters", text: "local.get 0 loop 1 br 0 end drop"},
	{name: "br to a loop does not take results", text: "loop i32 br 0 end drop"},
	{name: "br too far", text: "block _ br 2 end", wrong: "br has the label 2, but the highest one here is 1"},
	{name: "br to the function", text: "block _ br 1 end"},
	{name: "br_if", text: "block i32 i32.const 1 local.get 0 br_if 0 end drop"},
	{name: "br_if without condition", text: "block _ br_if 0 end", wrong: "br_if needs an operand of type i32, but the block has none left"},
	{name: "br_if keeps the operands", text: "block i32 i32.const 1 local.get 0 br_if 0 drop end drop", wrong: "end needs an operand of type i32, but the block has none left"},
	{name: "br_table", text: "block i32 block i32 i32.const 1 local.get 0 br_table 0,1,0,1 end drop i32.const 2 end drop"},
	{name: "br_table of one", text: "block _ local.get 0 br_table 0 end"},
	{name: "br_table with different types", text: "block i32 block i64 i32.const 1 local.get 0 br_table 0,1 end drop i32.const 1 end drop", wrong: "br_table takes i64, but gets i32"},
	{name: "br_table with different numbers", text: "block i32 block _ i32.const 1 local.get 0 br_table 0,1 end i32.const 1 end drop", wrong: "different numbers"},
	{name: "br_table too far", text: "local.get 0 br_table 3,0", wrong: "br_table has the label 3, but the highest one here is"},
	{name: "br_table default too far", text: "local.get 0 br_table 0,3", wrong: "br_table has the label 3, but the highest one here is"},
	{name: "return", text: "i64.const 1 return"},

	// Unreachable code.
	{name: "any operand after unreachable", text: "unreachable i32.add drop"},
	{name: "a known operand above", text: "unreachable i64.const 1 i32.add drop", wrong: "i32.add takes i32, but gets i64"},
	{name: "never too few after br", text: "block i32 br 1 i32.add end drop"},
	{name: "too many after unreachable", text: "unreachable i32.const 1 i32.const 2", wrong: "more operands than results: 2 extra"},
	{name: "select of unknowns", text: "unreachable select i32.eqz drop"},
	{name: "select of one unknown", text: "unreachable i64.const 1 local.get 0 select i32.eqz drop", wrong: "i32.eqz takes i32, but gets i64"},
	{name: "select of an unknown reference", text: "unreachable ref.null funcref local.get 0 select drop", wrong: "must state its type"},
	{name: "unknown reference", text: "unreachable ref.is_null drop"},
	{name: "block after return", text: "return block i32 i32.const 1 end drop"},
	{name: "block in dead code is alive", text: "return block i32 end drop", wrong: "end needs an operand of type i32, but the block has none left"},
	{name: "dead br_table with different types", text: "block f32 block f64 unreachable local.get 0 br_table 0,1 end drop f32.const 0 end drop"},
	{name: "dead br_table with different numbers", text: "block f32 block _ unreachable local.get 0 br_table 0,1 end f32.const 0 end drop", wrong: "different numbers"},
	{name: "dead br_if", text: "block i32 unreachable br_if 0 i64.const 1 i64.add end drop", wrong: "i64.add takes i64, but gets i32"},
	{name: "else revives", text: "local.get 0 if _ unreachable else drop end", wrong: "drop needs an operand, but the block has none left"},
	{name: "dead parameters", text: "unreachable block 3 drop drop i32.const 1 i32.const 1 end drop drop"},

	// Calls.
	{name: "call", text: "local.get 0 call 2 drop"},
	{name: "call of an import", text: "call 0"},
	{name: "call without operand", text: "call 2 drop", wrong: "call needs an operand of type i32, but the block has none left"},
	{name: "call of nothing", text: "call 6", wrong: "there is no function 6"},
	{name: "call with many", text: "i64.const 1 f32.const 1 call 4 drop drop"},
	{name: "call_indirect", text: "local.get 0 local.get 0 call_indirect 1 0 drop"},
	{name: "call_indirect by another table", text: "local.get 0 call_indirect 0 2"},
	{name: "call_indirect of no type", text: "local.get 0 call_indirect 9 0", wrong: "there is no type 9"},
	{name: "call_indirect of no table", text: "local.get 0 call_indirect 0 3", wrong: "there is no table 3"},
	{name: "call_indirect of externref", text: "local.get 0 call_indirect 0 1", wrong: "needs a table of functions"},
	{name: "call_indirect without index", text: "call_indirect 0 0", wrong: "call_indirect needs an operand of type i32, but the block has none left"},

	// References and tables.
	{name: "ref.func declared by an element", text: "ref.func 2 drop"},
	{name: "ref.func declared by a global", text: "ref.func 3 drop"},
	{name: "ref.func declared by an export", text: "ref.func 1 ref.is_null drop"},
	{name: "ref.func not declared", text: "ref.func 4 drop", wrong: "is not declared"},
	{name: "ref.func of the start", text: "ref.func 5 drop", wrong: "is not declared"},
	{name: "ref.func of nothing", text: "ref.func 6 drop", wrong: "does not exist"},
	{name: "ref.is_null of a number", text: "local.get 0 ref.is_null drop", wrong: "ref.is_null takes a reference, but gets i32"},
	{name: "table.get and set", text: "local.get 0 local.get 0 table.get 0 table.set 2"},
	{name: "table.set of another type", text: "local.get 0 local.get 0 table.get 0 table.set 1", wrong: "table.set takes externref, but gets funcref"},
	{name: "table.get of nothing", text: "local.get 0 table.get 3 drop", wrong: "there is no table 3"},
	{name: "table.grow, size and fill", text: "ref.null externref local.get 0 table.grow 1 ref.null externref table.size 1 table.fill 1"},
	{name: "table.grow of another type", text: "ref.null externref local.get 0 table.grow 0 drop", wrong: "table.grow takes funcref, but gets externref"},
	{name: "table.fill of another type", text: "local.get 0 ref.null externref local.get 0 table.fill 0", wrong: "table.fill takes funcref, but gets externref"},
	{name: "table.copy", text: "local.get 0 local.get 0 local.get 0 table.copy 0 2"},
	{name: "table.copy of another type", text: "local.get 0 local.get 0 local.get 0 table.copy 0 1", wrong: "table.copy copies externref"},
	{name: "table.init", text: "local.get 0 local.get 0 local.get 0 table.init 1 1"},
	{name: "table.init of another type", text: "local.get 0 local.get 0 local.get 0 table.init 1 0", wrong: "table.init copies externref"},
	{name: "table.init of nothing", text: "local.get 0 local.get 0 local.get 0 table.init 8 0", wrong: "there is no element segment 8"},
	{name: "elem.drop", text: "elem.drop 7"},
	{name: "elem.drop of nothing", text: "elem.drop 8", wrong: "there is no element segment 8"},

	// Memory and vectors.
	{name: "memory", text: "memory.size memory.grow i32.load 2 4 drop"},
	{name: "alignment", text: "local.get 0 i32.load16_u 2 0 drop", wrong: "alignment of 2^2 bytes; at most 2^1"},
	{name: "alignment of a vector", text: "local.get 0 v128.load 4 0 drop"},
	{name: "alignment too large for a vector", text: "local.get 0 v128.load 5 0 drop", wrong: "alignment of 2^5 bytes; at most 2^4"},
	{name: "bulk memory", text: "local.get 0 local.get 0 local.get 0 memory.copy local.get 0 local.get 0 local.get 0 memory.fill"},
	{name: "memory.init", text: "local.get 0 local.get 0 local.get 0 memory.init 2 data.drop 0"},
	{name: "memory.init of nothing", text: "local.get 0 local.get 0 local.get 0 memory.init 3", wrong: "there is no data segment 3"},
	{name: "data.drop of nothing", text: "data.drop 3", wrong: "there is no data segment 3"},
	{name: "lanes", text: "v128.const 0 i8x16.extract_lane_s 15 drop local.get 0 v128.const 0 v128.load64_lane 3 0 1 drop"},
	{name: "no such lane", text: "v128.const 0 i32x4.extract_lane 4 drop", wrong: "no lane 4"},
	{name: "no such lane in memory", text: "local.get 0 v128.const 0 v128.store16_lane 1 0 8", wrong: "no lane 8"},
	{name: "lane aligned too much", text: "local.get 0 v128.const 0 v128.store8_lane 1 0 0", wrong: "alignment of 2^1 bytes; at most 2^0"},
	{name: "shuffle", text: "v128.const 0 v128.const 0 i8x16.shuffle 31 drop"},
	{name: "no such lane to shuffle", text: "v128.const 0 v128.const 0 i8x16.shuffle 32 drop", wrong: "no lane 32"},
	{name: "shift", text: "v128.const 0 i32.const 1 i64x2.shl drop"},
	{name: "shift by a vector", text: "v128.const 0 v128.const 0 i64x2.shl drop", wrong: "i64x2.shl takes i32, but gets v128"},
}

func TestValidateBodies(t *testing.T) {
	j := newJudge(t)
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			m := world(t)
			m.Funcs[0] = 5
			m.Code[0] = code(t, c.text, wasmbin.LocalGroup{Count: 1, Type: wasmbin.I32}, wasmbin.LocalGroup{Count: 2, Type: wasmbin.I64})
			wasm := m.Write()
			_, err := valid(wasm, wasmbin.Limits{})
			expect(t, err, c.wrong)
			if err != nil {
				e := err.(*abi.Error)
				if e.IDs["function"] != "1" || e.IDs["offset"] == "" || e.Remedy == "" {
					t.Errorf("the error does not say where: %+v", e)
				}
			}
			theirs := j.accepts(wasm)
			if (theirs == nil) != (c.wrong == "" || c.lenient) {
				t.Errorf("wazero says %v", theirs)
			}
		})
	}
}

// expect checks an error against a part of its message.
func expect(t testing.TB, err error, wrong string) {
	t.Helper()
	switch {
	case err == nil && wrong == "":
	case err == nil:
		t.Errorf("it is accepted, want %q", wrong)
	case wrong == "":
		t.Errorf("it is refused: %v", err)
	case !strings.Contains(err.Error(), wrong):
		t.Errorf("it is refused for another reason: %v, want %q", err, wrong)
	case abi.CodeOf(err) != abi.InvalidArgument:
		t.Errorf("the code is %v", abi.CodeOf(err))
	}
}

// changes lists changes of world, each with the resulting error.
var changes = []struct {
	name    string
	change  func(m *wasmbin.Module)
	wrong   string
	lenient bool
}{
	{name: "nothing", change: func(*wasmbin.Module) {}},
	{name: "no names", change: func(m *wasmbin.Module) { m.Names, m.Customs = nil, nil }},
	{name: "import of no type", change: func(m *wasmbin.Module) { m.Imports[0].Type = 6 }, wrong: "function 0 has type 6"},
	{name: "import without module", change: func(m *wasmbin.Module) { m.Imports[1].Module = "" }, wrong: "has an empty module name"},
	{name: "import without name", change: func(m *wasmbin.Module) { m.Imports[1].Name = "" }},
	{name: "function of no type", change: func(m *wasmbin.Module) { m.Funcs[0] = 6 }, wrong: "function 1 has type 6"},
	{name: "function without code", change: func(m *wasmbin.Module) { m.Code = m.Code[:4] }, wrong: "5 functions are declared, but 4 have code"},
	{name: "code without function", change: func(m *wasmbin.Module) { m.Funcs = m.Funcs[:4] }, wrong: "4 functions are declared, but 5 have code"},
	{name: "functions without code section", change: func(m *wasmbin.Module) { m.Code = nil }, wrong: "5 functions are declared, but 0 have code"},
	{name: "global of another type", change: func(m *wasmbin.Module) { m.Globals[0].Type = wasmbin.I64 }, wrong: "global 3: its constant expression has the type v128, but must have i64"},
	{name: "global of a defined global", change: func(m *wasmbin.Module) { m.Globals[2].Init.Index = 3 }, wrong: "which is not imported"},
	{name: "global of a mutable global", change: func(m *wasmbin.Module) {
		m.Globals[2] = wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: wasmbin.I64}, Init: wasmbin.ConstExpr{Op: wasmbin.OpGlobalGet, Index: 1}}
	}, wrong: "which is mutable", lenient: true},
	{name: "global of no function", change: func(m *wasmbin.Module) { m.Globals[1].Init.Index = 6 }, wrong: "there is no function 6"},
	{name: "table larger than its maximum", change: func(m *wasmbin.Module) { m.Tables[0].Min = 9 }, wrong: "exceeds its maximum"},
	{name: "memory larger than its maximum", change: func(m *wasmbin.Module) { m.Memories[0].Min = 3 }, wrong: "exceeds its maximum"},
	{name: "memory of all pages", change: func(m *wasmbin.Module) { m.Memories[0].Max = 65536 }},
	{name: "memory of too many pages", change: func(m *wasmbin.Module) { m.Memories[0].Max = 65537 }, wrong: "more than 65536 pages"},
	{name: "a name exported twice", change: func(m *wasmbin.Module) { m.Exports[1].Name = "run" }, wrong: `"run" is exported twice`},
	{name: "export of no function", change: func(m *wasmbin.Module) { m.Exports[0].Index = 6 }, wrong: "func 6, which does not exist"},
	{name: "export of no table", change: func(m *wasmbin.Module) { m.Exports[2].Index = 3 }, wrong: "table 3, which does not exist"},
	{name: "export of no memory", change: func(m *wasmbin.Module) { m.Exports[1].Index = 1 }, wrong: "memory 1, which does not exist"},
	{name: "export of no global", change: func(m *wasmbin.Module) { m.Exports[3].Index = 9 }, wrong: "global 9, which does not exist"},
	{name: "start with a parameter", change: func(m *wasmbin.Module) { m.Start = ptr(uint32(2)) }, wrong: "the start function 2 has parameters"},
	{name: "start is nothing", change: func(m *wasmbin.Module) { m.Start = ptr(uint32(6)) }, wrong: "the start function 6 does not exist"},
	{name: "start is imported", change: func(m *wasmbin.Module) { m.Start = ptr(uint32(0)) }},
	{name: "element for no table", change: func(m *wasmbin.Module) { m.Elements[4].Table = 3 }, wrong: "there is no table 3"},
	{name: "element of another type", change: func(m *wasmbin.Module) { m.Elements[4].Table = 1 }, wrong: "its elements have the type funcref, but its table has externref"},
	{name: "element of no function", change: func(m *wasmbin.Module) { m.Elements[0].Funcs[0] = 6 }, wrong: "element segment 0: there is no function 6"},
	{name: "expression of no function", change: func(m *wasmbin.Module) { m.Elements[5].Exprs[0].Index = 6 }, wrong: "there is no function 6"},
	{name: "expression of another type", change: func(m *wasmbin.Module) { m.Elements[1].Exprs[0].Type = wasmbin.FuncRef }, wrong: "has the type funcref, but must have externref"},
	{name: "offset of another type", change: func(m *wasmbin.Module) { m.Elements[0].Offset.Op = wasmbin.OpI64Const }, wrong: "has the type i64, but must have i32"},
	{name: "data without memory", change: func(m *wasmbin.Module) { m.Memories, m.Exports = nil, nil }, wrong: "needs a memory, but the module has none"},
	{name: "data offset of another type", change: func(m *wasmbin.Module) { m.Data[1].Offset.Op = wasmbin.OpF32Const }, wrong: "data segment 1: its constant expression has the type f32"},
	{name: "data offset is a function", change: func(m *wasmbin.Module) { m.Data[1].Offset = wasmbin.ConstExpr{Op: wasmbin.OpRefFunc} }, wrong: "has the type funcref, but must have i32"},
	{name: "data without count", change: func(m *wasmbin.Module) { m.DataCount = nil }},
	{name: "a type that nothing uses", change: func(m *wasmbin.Module) {
		m.Types = append(m.Types, wasmbin.FuncType{Params: types(wasmbin.V128, wasmbin.FuncRef)})
	}},
}

func TestValidateModules(t *testing.T) {
	j := newJudge(t)
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			m := world(t)
			c.change(m)
			wasm := m.Write()
			_, err := valid(wasm, wasmbin.Limits{})
			expect(t, err, c.wrong)
			theirs := j.accepts(wasm)
			if (theirs == nil) != (c.wrong == "" || c.lenient) {
				t.Errorf("wazero says %v", theirs)
			}
		})
	}
}

func TestValidateNeedsDataCount(t *testing.T) {
	j := newJudge(t)
	for _, text := range []string{"data.drop 0", "i32.const 0 i32.const 0 i32.const 0 memory.init 0"} {
		m := world(t)
		m.DataCount = nil
		m.Code[0] = code(t, text)
		wasm := m.Write()
		_, err := valid(wasm, wasmbin.Limits{})
		expect(t, err, "needs a data count section")
		if j.accepts(wasm) == nil {
			t.Error("wazero accepts it")
		}
	}
}

func TestValidateNeedsMemory(t *testing.T) {
	j := newJudge(t)
	for _, text := range []string{"memory.size drop", "i32.const 0 i32.load 0 0 drop", "i32.const 0 v128.load 0 0 drop",
		"i32.const 0 i32.const 0 i32.const 0 memory.fill"} {
		m := &wasmbin.Module{Types: []wasmbin.FuncType{{}}, Funcs: []uint32{0}, Code: []wasmbin.Code{code(t, text)}}
		wasm := m.Write()
		_, err := valid(wasm, wasmbin.Limits{})
		expect(t, err, "needs a memory")
		if j.accepts(wasm) == nil {
			t.Error("wazero accepts it")
		}
	}
}

// Errors in built code have no offset in a file.
func TestValidateBuiltModule(t *testing.T) {
	m := world(t)
	m.Code[0] = code(t, "nop drop")
	_, err := m.Validate(wasmbin.Limits{})
	expect(t, err, "in function 1 at byte 0x1 of the body: drop needs an operand, but the block has none left")
}
