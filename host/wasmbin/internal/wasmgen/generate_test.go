package wasmgen_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
)

func TestEnginesAgree(t *testing.T) {
	for seed := range uint64(300) {
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
