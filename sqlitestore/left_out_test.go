package sqlitestore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestLeftOut has a store that was in use and that belongs to no session any longer. Every
// opening of the directory reports it, until work continues without it.
func TestLeftOut(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, dir, path string){
		"damaged when the catalogue was made again": func(t *testing.T, dir, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("rubble. "), 999), 0o600); err != nil {
				t.Fatal(err)
			}
			loseCatalog(t, dir)
			if r, err := Rebuild(t.Context(), dir); err != nil || len(r.Unreadable) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
		},
		"of a directory without a name": func(t *testing.T, dir, path string) {
			session := strings.TrimSuffix(filepath.Base(path), files.StoreSuffix)
			execute(t, path, "DELETE FROM store WHERE key = 'home'")
			execute(t, filepath.Join(dir, catalog.Name), "DELETE FROM store WHERE session = '"+session+"'")
			loseAcknowledged(t, dir)
		},
		"without its log": func(t *testing.T, dir, path string) {
			session := strings.TrimSuffix(filepath.Base(path), files.StoreSuffix)
			execute(t, path, "DELETE FROM store")
			execute(t, filepath.Join(dir, catalog.Name), "DELETE FROM store WHERE session = '"+session+"'")
			loseAcknowledged(t, dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, paths := filled(t, 2)
			lose(t, dir, paths[0])
			content, err := os.ReadFile(paths[0])
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a second start reports it, too
				_, seen, err := mustView(t, dir).Live(t.Context())
				d := mustOpen(t, dir)
				_, problems, savedErr := d.Saved(t.Context())
				if err := errors.Join(err, savedErr, d.Close()); err != nil {
					t.Fatal(err)
				}
				for reader, reported := range map[string][]error{"a reader": seen, "the owner": problems} {
					if left := journal.Damaged(reported); len(left) != 1 || !strings.Contains(left[0].Error(), paths[0]+" is not in the catalogue, and ") {
						t.Errorf("%s gets %v, want one problem", reader, reported)
					}
				}
				unchanged(t, paths[0], content)
			}
			d := mustOpen(t, dir)
			createStore(t, d)
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			unchanged(t, paths[0]+files.OrphanSuffix, content)
			if _, problems, err := mustView(t, dir).Live(t.Context()); err != nil || len(problems) != 0 {
				t.Errorf("problems %v, %v", problems, err)
			}
		})
	}
}

// loseAcknowledged removes the proof of a session that the catalogue does not have.
func loseAcknowledged(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, catalog.AcknowledgedName)); err != nil {
		t.Fatal(err)
	}
}
