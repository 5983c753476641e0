package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestHopIsCurrent proves that the prebuilt guest matches its source.
func TestHopIsCurrent(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed; make toolchains installs it")
	}
	built := filepath.Join(t.TempDir(), "hop.wasm")
	if out, err := exec.Command(tool, "testdata/hop.wat", "-o", built).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s", err, out)
	}
	want, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(hop, want) {
		t.Error("testdata/hop.wasm is not what testdata/hop.wat says: build it again with wat2wasm")
	}
}

// TestRingDelivers checks that the measured work happens.
func TestRingDelivers(t *testing.T) {
	w := newWorld(t, 0, nil)
	ch := w.ring(10, hop)
	w.circulate(ch, 5, 1000)
	graphs, err := w.Status("")
	must(t, err)
	var turns uint64
	for _, g := range graphs {
		for _, c := range g.Creatures {
			turns += c.Counters.Turns - 1 // without start
		}
	}
	// Every token makes its hops and is then handled once more.
	if want := uint64(1000 + 5); turns != want {
		t.Errorf("%d messages were handled, want %d", turns, want)
	}
}
