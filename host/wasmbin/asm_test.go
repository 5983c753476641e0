package wasmbin_test

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
)

// byName finds instructions by their keyword. The select with a type is
// "select_t" here.
var byName = func() map[string]wasmbin.Opcode {
	names := map[string]wasmbin.Opcode{}
	for op := range wasmbin.Opcode(math.MaxUint16) {
		if op.Valid() && op != wasmbin.OpSelectT {
			names[op.String()] = op
		}
	}
	names["select_t"] = wasmbin.OpSelectT
	return names
}()

var typeByName = map[string]wasmbin.ValueType{"i32": wasmbin.I32, "i64": wasmbin.I64, "f32": wasmbin.F32,
	"f64": wasmbin.F64, "v128": wasmbin.V128, "funcref": wasmbin.FuncRef, "externref": wasmbin.ExternRef}

// assemble turns words such as "i32.const 1 block i32 br 0 end" into a body,
// without the final end. Numbers follow in the order of the binary format; the
// targets of br_table are one word: "0,1,2". The type of a block is "_", a type,
// or an index.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	a := &assembler{t: t, words: strings.Fields(text)}
	for len(a.words) > 0 {
		name := a.word()
		op, ok := byName[name]
		if !ok {
			t.Fatalf("there is no instruction %q", name)
		}
		a.out = op.Append(a.out)
		a.immediates(op.Imm())
	}
	return a.out
}

type assembler struct {
	t     testing.TB
	words []string
	out   []byte
}

func (a *assembler) word() string {
	a.t.Helper()
	if len(a.words) == 0 {
		a.t.Fatal("an immediate is missing")
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *assembler) number() int64 {
	a.t.Helper()
	n, err := strconv.ParseInt(a.word(), 0, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a *assembler) u32() { a.out = wasmbin.AppendU32(a.out, uint32(a.number())) }

func (a *assembler) immediates(imm wasmbin.Imm) {
	switch imm {
	case wasmbin.ImmBlock:
		a.blockType()
	case wasmbin.ImmLabels:
		labels := strings.Split(a.word(), ",")
		a.out = wasmbin.AppendU32(a.out, uint32(len(labels)-1))
		a.words = append(labels, a.words...)
		for range labels {
			a.u32()
		}
	case wasmbin.ImmTypeTable, wasmbin.ImmTableTable, wasmbin.ImmElemTable, wasmbin.ImmMemArg:
		a.u32()
		a.u32()
	case wasmbin.ImmDataMemory:
		a.u32()
		a.out = append(a.out, 0)
	case wasmbin.ImmMemory:
		a.out = append(a.out, 0)
	case wasmbin.ImmMemoryMemory:
		a.out = append(a.out, 0, 0)
	case wasmbin.ImmTypes:
		a.out = append(a.out, 1, byte(typeByName[a.word()]))
	case wasmbin.ImmRefType:
		a.out = append(a.out, byte(typeByName[a.word()]))
	case wasmbin.ImmMemArgLane:
		a.u32()
		a.u32()
		a.out = append(a.out, byte(a.number()))
	case wasmbin.ImmLane:
		a.out = append(a.out, byte(a.number()))
	case wasmbin.ImmShuffle, wasmbin.ImmV128:
		a.out = append(a.out, make([]byte, 15)...)
		a.out = append(a.out, byte(a.number()))
	case wasmbin.ImmI32, wasmbin.ImmI64:
		a.out = wasmbin.AppendS64(a.out, a.number())
	case wasmbin.ImmF32:
		a.out = binary.LittleEndian.AppendUint32(a.out, uint32(a.number()))
	case wasmbin.ImmF64:
		a.out = binary.LittleEndian.AppendUint64(a.out, uint64(a.number()))
	case wasmbin.ImmNone:
	default:
		a.u32()
	}
}

func (a *assembler) blockType() {
	w := a.word()
	if w == "_" {
		a.out = wasmbin.BlockEmpty.Append(a.out)
		return
	}
	if t, ok := typeByName[w]; ok {
		a.out = wasmbin.BlockOf(t).Append(a.out)
		return
	}
	a.words = append([]string{w}, a.words...)
	a.out = wasmbin.BlockType(a.number()).Append(a.out)
}

// code assembles the code of a function and adds the final end.
func code(t testing.TB, text string, locals ...wasmbin.LocalGroup) wasmbin.Code {
	t.Helper()
	return wasmbin.Code{Locals: locals, Body: append(assemble(t, text), byte(wasmbin.OpEnd))}
}

func types(ts ...wasmbin.ValueType) []wasmbin.ValueType { return ts }

func ptr[T any](v T) *T { return &v }

// world returns a module that has one of everything. Tests change function 1.
func world(t testing.TB) *wasmbin.Module {
	i32 := func(n uint64) wasmbin.ConstExpr { return wasmbin.ConstExpr{Op: wasmbin.OpI32Const, Lo: n} }
	return &wasmbin.Module{
		Types: []wasmbin.FuncType{
			0: {},
			1: {Params: types(wasmbin.I32), Results: types(wasmbin.I32)},
			2: {Params: types(wasmbin.I64, wasmbin.F32), Results: types(wasmbin.F64, wasmbin.V128)},
			3: {Params: types(wasmbin.I32, wasmbin.I32), Results: types(wasmbin.I32, wasmbin.I32)},
			4: {Results: types(wasmbin.ExternRef)},
			5: {Params: types(wasmbin.I32)},
		},
		Imports: []wasmbin.Import{
			{Module: "e", Name: "f", Kind: wasmbin.ExternFunc, Type: 0},
			{Module: "e", Name: "constant", Kind: wasmbin.ExternGlobal, Value: wasmbin.I32},
			{Module: "e", Name: "mutable", Kind: wasmbin.ExternGlobal, Value: wasmbin.I64, Mutable: true},
			{Module: "e", Name: "reference", Kind: wasmbin.ExternGlobal, Value: wasmbin.ExternRef},
		},
		Funcs: []uint32{0, 1, 3, 2, 0},
		Tables: []wasmbin.Table{
			{Type: wasmbin.FuncRef, Range: wasmbin.Range{Min: 4, Max: 8, HasMax: true}},
			{Type: wasmbin.ExternRef, Range: wasmbin.Range{Min: 2}},
			{Type: wasmbin.FuncRef, Range: wasmbin.Range{Min: 1}},
		},
		Memories: []wasmbin.Memory{{Range: wasmbin.Range{Min: 1, Max: 2, HasMax: true}}},
		Globals: []wasmbin.Global{
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.V128, Mutable: true}, Init: wasmbin.ConstExpr{Op: wasmbin.OpV128Const, Lo: 1, Hi: 2}},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.FuncRef}, Init: wasmbin.ConstExpr{Op: wasmbin.OpRefFunc, Index: 3}},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.I32}, Init: wasmbin.ConstExpr{Op: wasmbin.OpGlobalGet, Index: 0}},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.F32}, Init: wasmbin.ConstExpr{Op: wasmbin.OpF32Const, Lo: 0x7fa00000}},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.F64}, Init: wasmbin.ConstExpr{Op: wasmbin.OpF64Const, Lo: 1 << 63}},
			{GlobalType: wasmbin.GlobalType{Type: wasmbin.I64, Mutable: true}, Init: wasmbin.ConstExpr{Op: wasmbin.OpI64Const, Lo: math.MaxUint64}},
		},
		Exports: []wasmbin.Export{
			{Name: "run", Kind: wasmbin.ExternFunc, Index: 1}, {Name: "memory", Kind: wasmbin.ExternMemory},
			{Name: "table", Kind: wasmbin.ExternTable, Index: 2}, {Name: "global", Kind: wasmbin.ExternGlobal, Index: 4},
		},
		Start: ptr(uint32(5)),
		Elements: []wasmbin.Element{
			{Mode: wasmbin.Active, Type: wasmbin.FuncRef, Offset: i32(1), Funcs: []uint32{2, 1}},
			{Mode: wasmbin.Passive, Type: wasmbin.ExternRef, UsesExprs: true, Exprs: []wasmbin.ConstExpr{
				{Op: wasmbin.OpRefNull, Type: wasmbin.ExternRef}, {Op: wasmbin.OpGlobalGet, Index: 2}}},
			{Mode: wasmbin.Declarative, Type: wasmbin.FuncRef, Funcs: []uint32{1}},
			{Mode: wasmbin.Active, Type: wasmbin.ExternRef, Table: 1, Offset: i32(0), UsesExprs: true,
				Exprs: []wasmbin.ConstExpr{{Op: wasmbin.OpRefNull, Type: wasmbin.ExternRef}}},
			{Mode: wasmbin.Active, Type: wasmbin.FuncRef, Table: 2, Offset: i32(0), Funcs: []uint32{0}},
			{Mode: wasmbin.Active, Type: wasmbin.FuncRef, Offset: i32(0), UsesExprs: true,
				Exprs: []wasmbin.ConstExpr{{Op: wasmbin.OpRefFunc, Index: 2}}},
			{Mode: wasmbin.Passive, Type: wasmbin.FuncRef, Funcs: []uint32{}},
			{Mode: wasmbin.Declarative, Type: wasmbin.FuncRef, UsesExprs: true, Exprs: []wasmbin.ConstExpr{}},
		},
		DataCount: ptr(uint32(3)),
		Code: []wasmbin.Code{
			code(t, "nop"), code(t, "local.get 0"), code(t, "local.get 0 local.get 1"),
			code(t, "unreachable"), code(t, ""),
		},
		Data: []wasmbin.Data{
			{Mode: wasmbin.Passive, Bytes: []byte("abc")},
			{Offset: i32(8), Bytes: []byte{}},
			{Offset: wasmbin.ConstExpr{Op: wasmbin.OpGlobalGet, Index: 0}, Bytes: []byte("x")},
		},
		Names: &wasmbin.Names{Module: "world", Funcs: []wasmbin.FuncName{{Index: 0, Name: "f"}, {Index: 2, Name: "same"}, {Index: 5, Name: "begin"}}},
		Customs: []wasmbin.Custom{
			{Name: "first", Bytes: []byte{1}}, {Name: "middle", Bytes: []byte{0}, After: wasmbin.SectionElement},
			{Name: "last", Bytes: []byte("z"), After: wasmbin.SectionData},
		},
	}
}
