package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// checkPlace refuses a directory that is not ours, before anything is made in it.
func checkPlace(ctx context.Context, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return storageError("open", dir, err)
	case !info.IsDir():
		return invalid("open", dir+" is a file, and a session is a directory", "name a directory; it is created if need be").With("path", dir)
	}
	path := filepath.Join(dir, catalog.Name)
	if !missing(path) {
		_, err := catalog.Schema.Age(ctx, path, sqlite.ReadOnly)
		return storageError("open", path, err)
	}
	if err := refuseLostCatalog(dir); err != nil {
		return err
	}
	return refuseForeign(dir)
}

// refuseLostCatalog refuses a directory whose catalogue is missing, before its stores are
// taken for leftovers.
func refuseLostCatalog(dir string) error {
	n, err := countStores(dir)
	if err != nil || n == 0 {
		return err
	}
	path := filepath.Join(dir, catalog.Name)
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "open",
		Message: fmt.Sprintf("%s is missing, but the directory contains session stores (%d)", path, n),
		Remedy:  catalog.RebuildRemedy(dir),
		IDs:     map[string]string{"path": path},
	}
}

func countStores(dir string) (int, error) {
	stores, err := filepath.Glob(filepath.Join(globEscape(dir), files.Stores, "*"+files.StoreSuffix))
	return len(stores), err
}

// ours are the names that may occur in a directory whose catalogue has not been made yet,
// because the process that was about to make it was killed. lost+found is in the root of
// many file systems.
var ours = func() []string {
	names := []string{lockName, catalog.AcknowledgedName, files.Stores, catalog.Name + files.PartialSuffix, catalog.Name + "-wal", catalog.Name + "-shm", "lost+found"}
	for _, index := range search.Names {
		names = append(names, index, index+"-wal", index+"-shm")
	}
	return names
}()

// refuseForeign refuses a directory that has no catalogue and that another program uses.
func refuseForeign(dir string) error {
	var foreign string
	err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == dir:
			return nil
		case filepath.Dir(path) == dir && slices.Contains(ours, f.Name()):
			if f.IsDir() && f.Name() != files.Stores {
				return fs.SkipDir
			}
			return nil
		case filepath.Dir(path) != dir && strings.Contains(f.Name(), files.StoreSuffix): // what is left of stores
			return nil
		}
		foreign = path
		return fs.SkipAll
	})
	if err != nil {
		return storageError("open", dir, err)
	}
	if foreign == "" {
		return nil
	}
	return invalid("open", fmt.Sprintf("%s is not a session directory, and not empty: it has %s", dir, foreign),
		"name another directory; it is created if need be. This one has been left as it is").With("path", dir)
}
