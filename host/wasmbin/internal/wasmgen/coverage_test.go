package wasmgen_test

import (
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// Every instruction of the standard occurs within a few hundred modules, both
// in code that runs and in code behind a branch.
func TestEveryInstructionIsGenerated(t *testing.T) {
	seen := map[wasmbin.Opcode]int{}
	for seed := range uint64(400) {
		m, err := wasmbin.Read(wasmgen.Generate(wasmgen.Seeded(seed)), wasmbin.DefaultLimits())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, code := range m.Code {
			it := wasmbin.NewInstrs(code.Body)
			for it.Next() {
				seen[it.Op]++
			}
			if err := it.Err(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	all := 0
	for op := range wasmbin.Opcode(0xffff) {
		if !op.Valid() {
			continue
		}
		all++
		if seen[op] == 0 {
			t.Errorf("%s is never generated", op)
		}
	}
	if all < 430 {
		t.Errorf("only %d instructions are known", all)
	}
}
