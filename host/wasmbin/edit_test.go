package wasmbin_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// counter returns a module that refers to a function in every possible way.
// Its export "sum" calls function 2, which returns 100, directly and through
// the table, and adds the value that the start function left in a global.
func counter(t testing.TB) *wasmbin.Module {
	i32 := wasmbin.ConstExpr{Op: wasmbin.OpI32Const}
	return &wasmbin.Module{
		Types:   []wasmbin.FuncType{{}, {Results: types(wasmbin.I32)}},
		Imports: []wasmbin.Import{{Module: "e", Name: "seven", Kind: wasmbin.ExternFunc, Type: 1}},
		Funcs:   []uint32{0, 1, 1, 1},
		Tables:  []wasmbin.Table{{Type: wasmbin.FuncRef, Range: wasmbin.Range{Min: 3}}},
		Globals: []wasmbin.Global{
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: i32},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.FuncRef}, Init: wasmbin.ConstExpr{Op: wasmbin.OpRefFunc, Index: 4}},
		},
		Start:   ptr(uint32(1)),
		Exports: []wasmbin.Export{{Name: "sum", Kind: wasmbin.ExternFunc, Index: 3}, {Name: "table", Kind: wasmbin.ExternTable}},
		Elements: []wasmbin.Element{
			{Type: wasmbin.FuncRef, Offset: i32, Funcs: []uint32{2}},
			{Type: wasmbin.FuncRef, Offset: wasmbin.ConstExpr{Op: wasmbin.OpI32Const, Lo: 1}, UsesExprs: true,
				Exprs: []wasmbin.ConstExpr{{Op: wasmbin.OpRefFunc, Index: 0}}},
		},
		Code: []wasmbin.Code{
			code(t, "call 0 global.set 0"),
			code(t, "i32.const 100"),
			code(t, "i32.const 2 global.get 1 table.set 0 call 2 "+
				"i32.const 0 call_indirect 1 0 i32.add i32.const 1 call_indirect 1 0 i32.add "+
				"i32.const 2 call_indirect 1 0 i32.add global.get 0 i32.add "+
				"i32.const 0 ref.func 2 table.set 0 i32.const 0 call_indirect 1 0 i32.add"),
			code(t, "i32.const 1000"),
		},
		Names: &wasmbin.Names{Funcs: []wasmbin.FuncName{{Index: 0, Name: "seven"}, {Index: 1, Name: "begin"}, {Index: 3, Name: "sum"}}},
	}
}

// run calls the export "sum" and returns its result and the number of calls of
// the host's functions.
func run(t *testing.T, wasm []byte) (sum uint64, calls map[string]int) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	calls = map[string]int{}
	_, err := rt.NewHostModuleBuilder("e").
		NewFunctionBuilder().WithFunc(func() uint32 { calls["seven"]++; return 7 }).Export("seven").
		NewFunctionBuilder().WithFunc(func(uint64) { calls["note"]++ }).Export("note").
		NewFunctionBuilder().WithFunc(func() { calls["tick"]++ }).Export("tick").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.ExportedFunction("sum").Call(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out[0], calls
}

// renumbered appends the body with other functions in its call and ref.func
// instructions.
func renumbered(t *testing.T, dst, body []byte, index func(uint32) uint32) []byte {
	copied := 0
	it := wasmbin.NewInstrs(body)
	for it.Next() {
		if it.Op != wasmbin.OpCall && it.Op != wasmbin.OpRefFunc {
			continue
		}
		dst = append(dst, body[copied:it.Start]...)
		dst = wasmbin.AppendU32(it.Op.Append(dst), index(it.Index))
		copied = it.End
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return append(dst, body[copied:]...)
}

func TestEditRenumbersEverything(t *testing.T) {
	m := counter(t)
	before, _ := run(t, m.Write())
	if before != 100+100+7+1000+7+100 {
		t.Fatalf("the sum is %d before", before)
	}

	note := m.AddType(wasmbin.FuncType{Params: types(wasmbin.I64)})
	if again := m.AddType(wasmbin.FuncType{Params: types(wasmbin.I64)}); again != note || note != 2 {
		t.Errorf("the type is added as %d and %d", note, again)
	}
	first := m.AddFuncImports(wasmbin.Import{Module: "e", Name: "note", Type: note}, wasmbin.Import{Module: "e", Name: "tick"})
	if first != 1 {
		t.Errorf("the imports start at %d", first)
	}
	shift := wasmbin.Shift(first, 2)
	ticked := assemble(t, "i64.const 5 call 1 call 2")
	for i := range m.Code {
		m.Code[i].Body = renumbered(t, slices.Clone(ticked), m.Code[i].Body, shift)
	}
	global := m.AddGlobal(wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: wasmbin.I64, Mutable: true}, Init: wasmbin.ConstExpr{Op: wasmbin.OpI64Const}})
	m.AddExport("fuel", wasmbin.ExternGlobal, global)
	added := m.AddFunc(0, code(t, "global.get 2 i64.const 1 i64.add global.set 2"))
	m.AddExport("added", wasmbin.ExternFunc, added)
	if global != 2 || added != 7 {
		t.Errorf("the global is %d and the function %d", global, added)
	}

	if _, err := m.Validate(wasmbin.Limits{}); err != nil {
		t.Fatal(err)
	}
	wasm := m.Write()
	if _, err := valid(wasm, wasmbin.Limits{}); err != nil {
		t.Fatal(err)
	}
	after, calls := run(t, wasm)
	if after != before {
		t.Errorf("the sum is %d, it was %d", after, before)
	}
	// The start, sum, function 2 three times, and the one in the global.
	if calls["note"] != 6 || calls["tick"] != 6 || calls["seven"] != 2 {
		t.Errorf("the calls are %v", calls)
	}
	if want := []wasmbin.FuncName{{Index: 0, Name: "seven"}, {Index: 3, Name: "begin"}, {Index: 5, Name: "sum"}}; !slices.Equal(m.Names.Funcs, want) {
		t.Errorf("the names are %v", m.Names.Funcs)
	}
	if e := m.Export("sum"); e == nil || e.Index != 5 || m.Export("none") != nil {
		t.Errorf("the export is %v", e)
	}
}

// The input must not change, because two modules may share it.
func TestEditLeavesTheBytes(t *testing.T) {
	wasm := counter(t).Write()
	kept := slices.Clone(wasm)
	m, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m.AddFuncImports(wasmbin.Import{Module: "e", Name: "tick"})
	for i := range m.Code {
		m.Code[i].Body = append(m.Code[i].Body, byte(wasmbin.OpNop))
	}
	m.Data = append(m.Data, wasmbin.Data{Mode: wasmbin.Passive, Bytes: []byte("x")})
	m.Write()
	if !slices.Equal(wasm, kept) {
		t.Error("the bytes that were read have changed")
	}
}

func TestFuncInfo(t *testing.T) {
	m := world(t)
	m.Code[2] = code(t, "block 3 loop 3 local.get 0 br_table 0,1,2,0 end end call 3 drop local.get 1 v128.const 0 drop "+
		"block _ block _ block _ end end end", wasmbin.LocalGroup{Count: 2, Type: wasmbin.V128}, wasmbin.LocalGroup{Count: 3, Type: wasmbin.F32})
	m.Code[2].Body = append(assemble(t, "local.get 0 local.get 1"), m.Code[2].Body...)
	infos, err := m.Validate(wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := wasmbin.FuncInfo{Params: 2, Locals: 5, LocalSlots: 9, StackHeight: 3, Vectors: true, Instrs: 20, Blocks: 5, Loops: 1,
		BlockDepth: 3, BranchTable: 3, Branches: 4, Moves: 4 + 4 + 4*2 + 4, Calls: 1}
	if infos[2] != want {
		t.Errorf("it is\n%+v, want\n%+v", infos[2], want)
	}
	if infos[2].StackSlots() != 6 || infos[0].StackSlots() != 0 {
		t.Errorf("the slots are %d and %d", infos[2].StackSlots(), infos[0].StackSlots())
	}
}
