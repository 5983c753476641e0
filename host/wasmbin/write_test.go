package wasmbin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed47132306/terrarium/host/wasmbin"
	"github.com/seed47132306/terrarium/host/wasmbin/internal/wasmgen"
)

// same compares modules, ignoring the offsets of their code.
func same(t testing.TB, want, got *wasmbin.Module) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(wasmbin.Code{}, "Offset"),
		cmpopts.IgnoreFields(wasmbin.Module{}, "CodeOffset"), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("want (-) and got (+) differ:\n%s", d)
	}
}

func TestWriteAndReadBack(t *testing.T) {
	m := world(t)
	wasm := m.Write()
	got, err := wasmbin.Read(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, m, got)
	for i, c := range got.Code {
		if !bytes.Equal(wasm[c.Offset:c.Offset+len(c.Body)], c.Body) {
			t.Errorf("the offset of body %d is wrong", i)
		}
		if at := c.Offset - got.CodeOffset; m.CodeOffsets()[i] != at {
			t.Errorf("body %d is at %d, and not at %d", i, at, m.CodeOffsets()[i])
		}
	}
	if again := got.Append([]byte("prefix")); !bytes.Equal(again[len("prefix"):], wasm) {
		t.Error("Append writes something else than Write")
	}
}

func TestWriteNothing(t *testing.T) {
	wasm := (&wasmbin.Module{}).Write()
	if len(wasm) != 8 {
		t.Errorf("an empty module has %d bytes", len(wasm))
	}
	m, err := valid(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, &wasmbin.Module{}, m)
}

// Sections without entries are not written, so custom sections after them need
// another place.
func TestWriteLeavesOutEmptySections(t *testing.T) {
	wasm := append((&wasmbin.Module{}).Write(), 1, 1, 0, 3, 1, 0, 0, 3, 1, 'x', 7, 10, 1, 0)
	m, err := valid(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	written := m.Write()
	if want := append((&wasmbin.Module{}).Write(), 0, 3, 1, 'x', 7); !bytes.Equal(written, want) {
		t.Errorf("it is written as %x", written)
	}
	again, err := valid(written, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, m, again)
}

// Numbers in their longest forms are read and written in their shortest.
func TestWriteShortens(t *testing.T) {
	wasm := (&wasmbin.Module{}).Write()
	wasm = append(wasm, 6, 0x8b, 0x80, 0x80, 0x80, 0x00, 0x81, 0x80, 0x00, 0x7f, 0x00, 0x41, 0xff, 0xff, 0xff, 0x7f, 0x0b)
	m, err := valid(wasm, wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if init := m.Globals[0].Init; int64(init.Lo) != -1 {
		t.Errorf("the constant is %d", int64(init.Lo))
	}
	if want := append((&wasmbin.Module{}).Write(), 6, 6, 1, 0x7f, 0, 0x41, 0x7f, 0x0b); !bytes.Equal(m.Write(), want) {
		t.Errorf("it is written as %x", m.Write())
	}
}

func TestWriteGenerated(t *testing.T) {
	j := newJudge(t)
	for seed := range uint64(200) {
		wasm := wasmgen.Generate(wasmgen.Seeded(seed))
		m, err := valid(wasm, wasmbin.Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		written := m.Write()
		again, err := valid(written, wasmbin.Limits{})
		if err != nil {
			t.Fatalf("seed %d, written: %v", seed, err)
		}
		same(t, m, again)
		if err := j.accepts(written); err != nil {
			t.Errorf("seed %d: wazero refuses what was written: %v", seed, err)
		}
	}
}

// kept lists compiled modules in the repository.
func kept(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	for _, pattern := range []string{"../testdata/*.wasm", "../../plugins/*/*.wasm"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if out[path], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %d modules are there", len(out))
	}
	return out
}

func TestWriteKeptModules(t *testing.T) {
	j := newJudge(t)
	for path, wasm := range kept(t) {
		m, err := valid(wasm, wasmbin.Limits{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		written := m.Write()
		again, err := valid(written, wasmbin.Limits{})
		if err != nil {
			t.Errorf("%s, written: %v", path, err)
			continue
		}
		same(t, m, again)
		if err := j.accepts(written); err != nil {
			t.Errorf("%s: wazero refuses what was written: %v", path, err)
		}
	}
}
