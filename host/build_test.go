package host

import (
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

// A builder writes the body of a function added to a guest.
type builder struct {
	t      testing.TB
	module *wasmbin.Module
	code   []byte
}

func (b *builder) op(op wasmbin.Opcode, indices ...uint32) {
	b.code = op.Append(b.code)
	for _, i := range indices {
		b.code = wasmbin.AppendU32(b.code, i)
	}
}

func (b *builder) i32(values ...int64) {
	for _, v := range values {
		b.code = wasmbin.AppendS64(wasmbin.OpI32Const.Append(b.code), v)
	}
}

// call calls an imported function and drops its result.
func (b *builder) call(function string, args ...int64) {
	b.t.Helper()
	b.i32(args...)
	i := slices.IndexFunc(b.module.Imports, func(i wasmbin.Import) bool { return i.Name == function })
	if i < 0 {
		b.t.Fatalf("the guest does not import %s", function)
	}
	b.op(wasmbin.OpCall, uint32(i))
	b.op(wasmbin.OpDrop)
}

// withInitializer adds _initialize to a guest of testdata.
func withInitializer(t testing.TB, guest string, write func(b *builder)) []byte {
	t.Helper()
	m, err := wasmbin.Read(readModule(t, guest), wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{t: t, module: m}
	write(b)
	b.op(wasmbin.OpEnd)
	m.AddExport(abi.ExportInitialize, wasmbin.ExternFunc, m.AddFunc(m.AddType(wasmbin.FuncType{}), wasmbin.Code{Body: b.code}))
	if _, err := m.Validate(wasmbin.Limits{}); err != nil {
		t.Fatal(err)
	}
	return m.Write()
}

// global adds a mutable global to the guest.
func (b *builder) global(typ wasmbin.ValueType, init wasmbin.ConstExpr) uint32 {
	return b.module.AddGlobal(wasmbin.Global{GlobalType: wasmbin.GlobalType{Type: typ, Mutable: true}, Init: init})
}

func (b *builder) number() uint32 {
	return b.global(wasmbin.I32, wasmbin.ConstExpr{Op: wasmbin.OpI32Const, Lo: 7})
}

// data gives the guest data segments that instructions can refer to.
func (b *builder) data(segments ...wasmbin.Data) {
	count := uint32(len(segments))
	b.module.Data, b.module.DataCount = segments, &count
}

// busyGuest does everything in _initialize that still allows an image, and sends its
// state in each turn.
func busyGuest(t testing.TB) []byte {
	return withInitializer(t, "echo", func(b *builder) {
		g := b.number()
		for range 3 {
			b.op(wasmbin.OpGlobalGet, g)
			b.i32(35)
			b.op(wasmbin.OpI32Mul)
			b.op(wasmbin.OpGlobalSet, g)
		}
		b.i32(2)
		b.op(wasmbin.OpMemoryGrow, 0)
		b.op(wasmbin.OpDrop)
		b.i32(0)
		b.op(wasmbin.OpGlobalGet, g)
		b.op(wasmbin.OpI32Store, 2, 2*abi.PageBytes)
	})
}
