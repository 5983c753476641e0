package catalog

import (
	"path/filepath"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Error explains an SQLite error on a file in plain words. For a damaged catalogue, it
// says that the catalogue can be rebuilt.
func Error(op, path string, err error) error {
	if filepath.Base(path) == Name && sqlite.Damaged(err) {
		return sqlite.Explained(op, path, err, RebuildRemedy(filepath.Dir(path)))
	}
	return sqlite.Explained(op, path, err, "")
}
