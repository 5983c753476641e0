package sqlitestore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestCopyStartsOverWithAnotherBase interrupts the copying of a file. When it continues, the
// file has another layout, as after an upgrade in between.
func TestCopyStartsOverWithAnotherBase(t *testing.T) {
	for name, test := range map[string]struct{ damage func([]byte) []byte }{
		"the same base":    {func(b []byte) []byte { return b }},
		"another base":     {func(b []byte) []byte { b[63]++; return b }},
		"nothing is there": {func([]byte) []byte { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustOpen(t, t.TempDir())
			defer d.Close()
			s := createStore(t, d)
			s.Append(whole(s.Origin(), 0, 50, 100))
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			base, err := os.ReadFile(s.path())
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(d.dir, files.Stores, "copy.1.db")
			begun := test.damage(bytes.Clone(base[:8192]))
			if err := os.WriteFile(path, begun, 0o644); err != nil {
				t.Fatal(err)
			}
			y := catalog.Hydration{File: filepath.Base(path), Base: filepath.Base(s.path()), Copied: 8192}
			if err := (&hydrator{d: d}).copyBase(t.Context(), &y, path); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, base) {
				t.Errorf("the copy has %d bytes, and differs from its base of %d, %v", len(got), len(base), err)
			}
		})
	}
}
