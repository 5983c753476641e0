package wasmbin_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// TestValidateAgreesOnMutants moves, drops, repeats and exchanges instructions
// of valid modules. The result is well-formed and mostly invalid, and wazero
// must agree in each case.
func TestValidateAgreesOnMutants(t *testing.T) {
	j := newJudge(t)
	verdicts := [2]int{}
	for seed := range uint64(400) {
		m, err := wasmbin.Read(wasmgen.Generate(wasmgen.Seeded(seed)), wasmbin.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 8 {
			target := rng.IntN(len(m.Code))
			was := m.Code[target].Body
			m.Code[target].Body = mutant(rng, was, m.Code[rng.IntN(len(m.Code))].Body)
			verdicts[compareVerdicts(t, j, m.Write(), seed)]++
			m.Code[target].Body = was
		}
	}
	if verdicts[0] < 200 || verdicts[1] < 200 {
		t.Errorf("%d mutants are invalid and %d valid: the test sees one side only", verdicts[0], verdicts[1])
	}
}

// instructions cuts a body into its instructions.
func instructions(body []byte) [][]byte {
	var out [][]byte
	for it := wasmbin.NewInstrs(body); it.Next(); {
		out = append(out, body[it.Start:it.End])
	}
	return out
}

// mutant changes a body a little, sometimes with instructions of another one.
func mutant(rng *rand.Rand, body, other []byte) []byte {
	list, strange := instructions(body), instructions(other)
	for range 1 + rng.IntN(2) {
		i, k := rng.IntN(len(list)), rng.IntN(len(list))
		switch rng.IntN(6) {
		case 0:
			list = slices.Delete(list, i, i+1)
		case 1:
			list = slices.Insert(list, i, list[k])
		case 2:
			list[i], list[k] = list[k], list[i]
		case 3:
			list[i] = strange[rng.IntN(len(strange))]
		case 4: // an instruction that never returns, before some that are then dead
			list = slices.Insert(list, i, [][]byte{{0x00}, {0x0c, 0x00}, {0x0f}}[rng.IntN(3)])
		case 5:
			list[i] = slices.Clone(list[i])
			list[i][len(list[i])-1] ^= byte(1 << rng.IntN(3)) // another index, or another instruction
		}
		if len(list) == 0 {
			break
		}
	}
	return slices.Concat(list...)
}

// explained reports whether wazero is known to accept an invalid module: it
// does not compare the type of a select with its operands, and it reads one
// byte of the number of a vector instruction.
func explained(ours error) bool {
	return strings.Contains(ours.Error(), "select takes") || strings.Contains(ours.Error(), "not in its shortest form")
}

// compareVerdicts returns 1 if the module is valid.
func compareVerdicts(t *testing.T, j judge, wasm []byte, seed uint64) int {
	t.Helper()
	_, ours := valid(wasm, wasmbin.Limits{})
	theirs := j.accepts(wasm)
	switch {
	case abi.CodeOf(ours) == abi.TooLarge:
		t.Errorf("seed %d: %v", seed, ours)
	case ours == nil && theirs != nil:
		t.Errorf("seed %d: wazero refuses what is valid here: %v", seed, theirs)
	case ours != nil && theirs == nil && !explained(ours):
		t.Errorf("seed %d: wazero accepts what is refused here: %v", seed, ours)
	}
	if ours == nil {
		return 1
	}
	return 0
}
