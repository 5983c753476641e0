package wasmbin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmrun"
)

func TestRewrittenModulesBehaveAlike(t *testing.T) {
	for seed := range uint64(300) {
		rewritten(t, wasmgen.GenerateBounded(wasmgen.Seeded(seed)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzRewrite reads, validates and writes generated modules, and runs them
// before and after.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(wasmgen.Seeded(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rewritten(t, wasmgen.GenerateBounded(data))
	})
}

// rewritten compares a module with the result of Read and Write, and wazero's
// compiler with its interpreter.
func rewritten(t *testing.T, module []byte) {
	t.Helper()
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	if _, err := m.Validate(wasmbin.Limits{}); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	ctx := context.Background()
	want, err := wasmrun.Runner{Refuel: true}.Run(ctx, module)
	if err != nil {
		t.Fatalf("wazero refuses the module: %v", err)
	}
	written := m.Write()
	got, err := wasmrun.Runner{Refuel: true}.Run(ctx, written)
	if err != nil {
		t.Fatalf("wazero refuses what was written: %v", err)
	}
	if d := cmp.Diff(want.Transcript, got.Transcript); d != "" {
		t.Errorf("before (-) and after (+) differ:\n%s", d)
	}
	interpreted, err := wasmrun.Runner{Refuel: true, Interpreter: true}.Run(ctx, written)
	if err != nil {
		t.Fatalf("the interpreter refuses what was written: %v", err)
	}
	if d := cmp.Diff(want.Transcript, interpreted.Transcript); d != "" {
		t.Errorf("compiler (-) and interpreter (+) differ:\n%s", d)
	}
}

// stricter lists the refusals of this package that wazero does not share, each with what
// wazero does instead.
var stricter = map[string]string{
	"the module uses half precision":              "takes the first byte of a vector instruction's number for all of it",
	"the module uses relaxed vector instructions": "the same",
	"the number of the vector instruction":        "the same",
	"the number of the instruction is not in":     "reads any form of it, as the standard has it",
	"a number is cut off or too large":            "drops the bits of an integer that are too many",
	"select takes":                                "does not compare the operands of a select with the type that it names",
	"the module uses garbage collection":          "takes any type for a null reference in a constant expression",
}

func isStricter(err error) bool {
	for message := range stricter {
		if strings.Contains(err.Error(), message) {
			return true
		}
	}
	return false
}

func TestValidatorsAgree(t *testing.T) {
	for seed := range uint64(4000) {
		data := wasmgen.Seeded(seed)
		agree(t, wasmgen.Generate(data[:len(data)/2]), data[len(data)/2:][:3*(1+seed%3)])
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzValidate damages generated modules and asks this package and wazero
// whether they are valid.
func FuzzValidate(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(wasmgen.Seeded(seed), []byte{byte(7 * seed), 0, 1})
	}
	f.Fuzz(func(t *testing.T, data, damage []byte) {
		agree(t, wasmgen.Generate(data), damage)
	})
}

// agree damages a module, with three bytes of input for each place, and
// compares the verdicts.
func agree(t *testing.T, module, damage []byte) {
	t.Helper()
	module = damaged(t, module, damage)
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err != nil {
		return // wazero trusts lengths, at any cost in memory
	}
	_, ours := m.Validate(wasmbin.Limits{})
	var e *abi.Error
	if errors.As(ours, &e) && e.Code == abi.TooLarge {
		return
	}
	theirs := compile(module)
	switch {
	case ours == nil && theirs != nil:
		t.Errorf("wazero refuses what is valid here: %v", theirs)
	case ours != nil && theirs == nil && !isStricter(ours):
		t.Errorf("wazero accepts what is refused here: %v", ours)
	}
}

// damaged returns the module with some bytes changed: mostly in instructions,
// because a module damaged elsewhere is rarely still a module.
func damaged(t *testing.T, module, damage []byte) []byte {
	t.Helper()
	module = slices.Clone(module)
	m, err := wasmbin.Read(module, wasmbin.Limits{})
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	var places []*byte
	for _, c := range m.Code {
		for i := range c.Body { // a view of module
			places = append(places, &c.Body[i])
		}
	}
	for d := range slices.Chunk(damage[:min(len(damage), 12)], 3) {
		if len(d) < 3 {
			break
		}
		if at := int(d[0]) | int(d[1])<<8; at%16 == 0 {
			module[at/16%len(module)] ^= d[2]
		} else {
			*places[at%len(places)] ^= d[2]
		}
	}
	return module
}

// compile returns wazero's verdict, panics included. The interpreter validates
// like the compiler and is faster with the rest.
func compile(module []byte) (err error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("wazero panics: %v", r)
		}
		err = errors.Join(err, rt.Close(ctx))
	}()
	_, err = rt.CompileModule(ctx, module)
	return err
}
