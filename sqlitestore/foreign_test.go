package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// TestPlacesThatAreNotOurs opens directories that another program uses. No file is made in
// them.
func TestPlacesThatAreNotOurs(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	execute(t, foreign, "CREATE TABLE precious (x)")
	for _, c := range []struct {
		name, file, from string
		code             abi.Code
	}{
		{"Catalog", catalog.Name, foreign, abi.Storage},
		{"Database", "photos.db", foreign, abi.InvalidArgument},
		{"File", "notes.txt", foreign, abi.InvalidArgument},
		{"Hidden", ".profile", foreign, abi.InvalidArgument},
		{"Stores", filepath.Join(files.Stores, "notes.txt"), foreign, abi.InvalidArgument},
		{"Folder", filepath.Join("deep", "down", "notes.txt"), foreign, abi.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			replace(t, path, c.from)
			before := tree(t, dir)
			_, err := Open(t.Context(), dir, Options{})
			wantError(t, "opening it", err, c.code, dir)
			var typed *abi.Error
			if !errors.As(err, &typed) || typed.Remedy == "" {
				t.Errorf("the error %v has no remedy", err)
			}
			if after := tree(t, dir); !slices.Equal(after, before) {
				t.Errorf("the directory had the files %v, but has %v", before, after)
			}
		})
	}
}

// tree lists the files below a directory.
func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestPlacesThatWereBegun opens directories of which another process has made only a part.
func TestPlacesThatWereBegun(t *testing.T) {
	for _, name := range []string{"", "lost+found", lockName, catalog.Name + files.PartialSuffix, filepath.Join(files.Stores, "x"+files.StoreSuffix+files.PartialSuffix)} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := mustOpen(t, dir).Close(); err != nil {
			t.Errorf("with %q: %v", name, err)
		}
	}
}
