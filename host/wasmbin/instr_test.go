package wasmbin_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// TestInstrs decodes one instruction of every kind. Fields that a kind does
// not have are unspecified, so they are not compared.
func TestInstrs(t *testing.T) {
	for _, c := range []struct {
		text string
		want wasmbin.Instr
	}{
		{"nop", wasmbin.Instr{}},
		{"block _", wasmbin.Instr{Block: wasmbin.BlockEmpty}},
		{"loop v128", wasmbin.Instr{Block: wasmbin.BlockOf(wasmbin.V128)}},
		{"if 300", wasmbin.Instr{Block: 300}},
		{"br 200", wasmbin.Instr{Index: 200}},
		{"br_table 1,300,0,7", wasmbin.Instr{Index: 7, Count: 3, Raw: []byte{1, 0xac, 2, 0, 7}}},
		{"call 70000", wasmbin.Instr{Index: 70000}},
		{"call_indirect 3 2", wasmbin.Instr{Index: 3, Index2: 2}},
		{"select_t f64", wasmbin.Instr{Type: wasmbin.F64}},
		{"local.tee 4294967295", wasmbin.Instr{Index: math.MaxUint32}},
		{"global.set 5", wasmbin.Instr{Index: 5}},
		{"table.set 6", wasmbin.Instr{Index: 6}},
		{"table.copy 1 2", wasmbin.Instr{Index: 1, Index2: 2}},
		{"table.init 3 4", wasmbin.Instr{Index: 3, Index2: 4}},
		{"elem.drop 9", wasmbin.Instr{Index: 9}},
		{"data.drop 9", wasmbin.Instr{Index: 9}},
		{"memory.init 8", wasmbin.Instr{Index: 8}},
		{"memory.copy", wasmbin.Instr{}},
		{"memory.fill", wasmbin.Instr{}},
		{"memory.grow", wasmbin.Instr{}},
		{"i64.load32_u 2 4294967295", wasmbin.Instr{Align: 2, Offset: math.MaxUint32}},
		{"v128.store8_lane 0 77 15", wasmbin.Instr{Align: 0, Offset: 77, Lane: 15}},
		{"f32x4.replace_lane 3", wasmbin.Instr{Lane: 3}},
		{"i8x16.shuffle 31", wasmbin.Instr{Raw: append(make([]byte, 15), 31)}},
		{"v128.const 1", wasmbin.Instr{Raw: append(make([]byte, 15), 1)}},
		{"i32.const -2147483648", wasmbin.Instr{Value: 0xffff_ffff_8000_0000}},
		{"i32.const 2147483647", wasmbin.Instr{Value: math.MaxInt32}},
		{"i64.const -9223372036854775808", wasmbin.Instr{Value: 1 << 63}},
		{"i64.const 9223372036854775807", wasmbin.Instr{Value: math.MaxInt64}},
		{"i64.const -65", wasmbin.Instr{Value: math.MaxUint64 - 64}},
		{"f32.const 0x7fa00001", wasmbin.Instr{Value: 0x7fa00001}},
		{"f64.const 0x7ff4000000000001", wasmbin.Instr{Value: 0x7ff4000000000001}},
		{"ref.null externref", wasmbin.Instr{Type: wasmbin.ExternRef}},
		{"ref.func 12", wasmbin.Instr{Index: 12}},
	} {
		raw := assemble(t, c.text)
		it := wasmbin.NewInstrs(append(raw, byte(wasmbin.OpEnd)))
		if !it.Next() {
			t.Errorf("%s: %v", c.text, it.Err())
			continue
		}
		c.want.Op, c.want.End = byName[strings.Fields(c.text)[0]], len(raw)
		if d := cmp.Diff(c.want, it.Instr); d != "" {
			t.Errorf("%s: want (-) and got (+) differ:\n%s", c.text, d)
		}
		if !it.Next() || it.Op != wasmbin.OpEnd || it.Start != len(raw) || it.Next() || it.Err() != nil {
			t.Errorf("%s: what follows is not the end: %v", c.text, it.Err())
		}
	}
}

func TestLabels(t *testing.T) {
	it := wasmbin.NewInstrs(assemble(t, "br_table 5,200,0,3"))
	if !it.Next() {
		t.Fatal(it.Err())
	}
	if got := slices.Collect(it.Labels()); !slices.Equal(got, []uint32{5, 200, 0, 3}) {
		t.Errorf("the targets are %v", got)
	}
}

// The ranges of the instructions cover the body without gaps, and iterating over them
// does not allocate.
func TestInstrsCoverTheBody(t *testing.T) {
	for seed := range uint64(50) {
		m, err := wasmbin.Read(wasmgen.Generate(wasmgen.Seeded(seed)), wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Code {
			body, end := m.Code[i].Body, 0
			it := wasmbin.NewInstrs(body)
			for it.Next() {
				if it.Start != end || !bytes.HasPrefix(body[it.Start:], it.Op.Append(nil)) {
					t.Fatalf("seed %d, body %d: %s is not at %d", seed, i, it.Op, it.Start)
				}
				end = it.End
			}
			if it.Err() != nil || end != len(body) {
				t.Fatalf("seed %d, body %d: %d of %d bytes, %v", seed, i, end, len(body), it.Err())
			}
			allocs := testing.AllocsPerRun(3, func() {
				for it := wasmbin.NewInstrs(body); it.Next(); {
					if it.Op == wasmbin.OpBrTable {
						for range it.Labels() {
						}
					}
				}
			})
			if allocs > 0 {
				t.Fatalf("seed %d, body %d: %v allocations", seed, i, allocs)
			}
		}
	}
}

func TestInstrsErr(t *testing.T) {
	it := wasmbin.NewInstrs([]byte{byte(wasmbin.OpNop), byte(wasmbin.OpI32Const), 0x80})
	for it.Next() {
	}
	expect(t, it.Err(), "at byte 0x1 of the body: a number is cut off")
	if it.Next() {
		t.Error("it goes on after an error")
	}
}

func TestBlockTypes(t *testing.T) {
	if _, ok := wasmbin.BlockEmpty.Index(); ok {
		t.Error("the empty type has an index")
	}
	if _, ok := wasmbin.BlockEmpty.Result(); ok {
		t.Error("the empty type has a result")
	}
	if r, ok := wasmbin.BlockOf(wasmbin.FuncRef).Result(); !ok || r != wasmbin.FuncRef {
		t.Errorf("the result is %s", r)
	}
	if i, ok := wasmbin.BlockType(64).Index(); !ok || i != 64 {
		t.Errorf("the index is %d", i)
	}
	if got := wasmbin.BlockType(64).Append(nil); !bytes.Equal(got, []byte{0xc0, 0}) {
		t.Errorf("the index 64 is written as %x, which is not positive", got)
	}
}
