package sqlitestore

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"

	"github.com/seed47132306/terrarium/abi"
)

// A process that has too many files open gets that error, and not one about a missing or
// damaged file.
func TestTooManyOpenFilesAreSaid(t *testing.T) {
	for _, err := range []error{
		sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EMFILE},
		&fs.PathError{Op: "open", Path: "s/catalog.db", Err: syscall.ENFILE},
	} {
		err := storageError("open", "s/catalog.db", err)
		if abi.CodeOf(err) != abi.Storage || !strings.Contains(err.Error(), "too many files are open") || !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("the error for too many open files is %v", err)
		}
	}
	present := filepath.Join(t.TempDir(), "catalog.db")
	if err := os.WriteFile(present, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unmade := sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.ENOENT}
	if text := storageError("open", present, unmade).Error(); strings.Contains(text, "no such file") || !strings.Contains(text, "make the directory and its file system writable") {
		t.Errorf("the error for a file without its log is %s", text)
	}
	if text := storageError("open", present+"-missing", unmade).Error(); !strings.Contains(text, "check that it exists") {
		t.Errorf("the error for a missing file is %s", text)
	}
	other := storageError("open", "s/catalog.db", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES})
	if strings.Contains(other.Error(), "too many") {
		t.Errorf("the error for another reason is %v", other)
	}
}
