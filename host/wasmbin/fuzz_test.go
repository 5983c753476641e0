package wasmbin_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// perByte and flat bound the allocations of reading and validating: perByte
// for each byte of the module, plus flat.
const (
	perByte = 64
	flat    = 64 << 10
)

// FuzzRead reads any bytes. An accepted module is written, read back the same,
// and accepted by wazero; the cost is bounded for any input.
func FuzzRead(f *testing.F) {
	f.Add([]byte{})
	f.Add(world(f).Write())
	f.Add(counter(f).Write())
	for _, c := range malformedModules {
		f.Add([]byte(c.wasm))
	}
	for _, c := range features {
		f.Add([]byte(c.wasm))
	}
	for seed := range uint64(8) {
		f.Add(wasmgen.Generate(wasmgen.Seeded(seed)))
	}
	j := newJudge(f)
	// Small enough that a module's claims cost wazero little.
	limits := wasmbin.Limits{Locals: 1000, TotalLocals: 10_000, TableElements: 1000}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := allocated()
		m, err := valid(wasm, limits)
		if used := allocated() - before; used > flat+perByte*uint64(len(wasm)) {
			t.Errorf("%d bytes are allocated for a module of %d", used, len(wasm))
		}
		if err != nil {
			return
		}
		written := m.Write()
		again, err := valid(written, limits)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		same(t, m, again)
		if !bytes.Equal(again.Write(), written) {
			t.Error("it is written differently the second time")
		}
		if len(wasm) > 4096 {
			return
		}
		if err := j.accepts(wasm); err != nil {
			t.Errorf("wazero refuses what is valid here: %v", err)
		}
		if err := j.accepts(written); err != nil {
			t.Errorf("wazero refuses what was written: %v", err)
		}
	})
}

// allocated returns how many bytes the program has allocated so far.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// The worst modules have the smallest possible entries.
func TestReadAllocatesLittle(t *testing.T) {
	for _, name := range []string{"Types", "Imports", "Functions", "Globals", "Exports", "ElementSegments", "Elements", "DataSegments", "CustomSections", "Blocks", "BranchTable"} {
		n := 1000
		wasm := capped[name](t, n).Write()
		before := allocated()
		if _, err := valid(wasm, wasmbin.Limits{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		used := allocated() - before
		t.Logf("%s: %d bytes for each byte", name, used/uint64(len(wasm)))
		if used > flat+perByte*uint64(len(wasm)) {
			t.Errorf("%s: %d bytes are allocated for a module of %d", name, used, len(wasm))
		}
	}
}
