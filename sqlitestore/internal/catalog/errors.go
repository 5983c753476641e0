package catalog

import (
	"path/filepath"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Error says in plain words what SQLite said about a file, and of a catalogue that
// is damaged that it can be made again.
func Error(op, path string, err error) error {
	if filepath.Base(path) == Name && sqlite.Damaged(err) {
		return sqlite.Explained(op, path, err, RebuildRemedy(filepath.Dir(path)))
	}
	return sqlite.Explained(op, path, err, "")
}
