package wasmgen_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
)

func TestEnginesAgree(t *testing.T) {
	for seed := range uint64(80) {
		engines(t, wasmgen.GenerateBounded(wasmgen.Seeded(seed)))
	}
}

// engines runs a module in wazero's compiler and interpreter.
func engines(t *testing.T, module []byte) {

	t.Helper()
	ctx := context.Background()
	compiled, err := wasmrun.Runner{Refuel: true}.Run(ctx, module)
	if err != nil {
		t.Fatalf("the compiler refuses it: %v", err)
	}
	interpreted, err := wasmrun.Runner{Refuel: true, Interpreter: true}.Run(ctx, module)
	if err != nil {
		t.Fatalf("the interpreter refuses it: %v", err)
	}
	if d := cmp.Diff(compiled.Transcript, interpreted.Transcript); d != "" {
		t.Errorf("compiler (-) and interpreter (+) differ:\n%s", d)
	}
}

func TestGenerateIsAFunction(t *testing.T) {
	for seed := range uint64(20) {
		data := wasmgen.Seeded(seed)
		again := slices.Clone(data)
		if !bytes.Equal(wasmgen.Generate(data), wasmgen.Generate(again)) {
			t.Errorf("seed %d made two modules", seed)
		}
		if !bytes.Equal(data, again) {
			t.Errorf("seed %d: the string was changed", seed)
		}
	}
}

func TestAnyStringMakesAModule(t *testing.T) {
	long := wasmgen.Seeded(1)
	var list [][]byte
	for n := 0; n < len(long); n += 7 {
		list = append(list, long[:n])
	}
	for b := range 256 {
		list = append(list, bytes.Repeat([]byte{byte(b)}, 500))
	}
	for range 4 {
		long = append(long, long...)
	}
	for i, data := range append(list, long) {
		for _, module := range [][]byte{wasmgen.Generate(data), wasmgen.GenerateBounded(data)} {
			if err := valid(module); err != nil {
				t.Errorf("string %d: %v", i, err)
			}
			if len(module) > 200<<10 {
				t.Errorf("string %d makes a module of %d bytes", i, len(module))
			}
		}
	}
}

func valid(module []byte) error {
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err == nil {
		_, err = m.Validate(wasmbin.Limits{})
	}
	return err
}
