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
	if text := storageError("open", present, unmade).Error(); strings.Contains(text, "no such file") || !strings.Contains(text, "has room for more files") || !strings.Contains(text, "ulimit -n") {
		t.Errorf("the error for a log that cannot be made is %s", text)
	}
	read := sqlite3.Error{Code: sqlite3.ErrReadonly, ExtendedCode: sqlite3.ErrNoExtended(sqlite3.ErrReadonly)}
	if text := storageError("open", present, read).Error(); !strings.Contains(text, "could only be opened for reading") || !strings.Contains(text, "ulimit -n") {
		t.Errorf("the error for a file that was only opened for reading is %s", text)
	}
	if os.Geteuid() != 0 { // root may write to every directory; for a read-only file system see internal/archtest
		if err := os.Chmod(filepath.Dir(present), 0o500); err != nil {
			t.Fatal(err)
		}
		if text := storageError("open", present, unmade).Error(); strings.Contains(text, "ulimit") || !strings.Contains(text, "make the directory and its file system writable") {
			t.Errorf("the error for a log in a read-only directory is %s", text)
		}
		if text := storageError("open", present, read).Error(); !strings.Contains(text, "the file is read-only") {
			t.Errorf("the error for a file in a read-only directory is %s", text)
		}
		if err := os.Chmod(filepath.Dir(present), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if text := storageError("open", present+"-missing", unmade).Error(); !strings.Contains(text, "check that it exists") {
		t.Errorf("the error for a missing file is %s", text)
	}
	other := storageError("open", "s/catalog.db", sqlite3.Error{Code: sqlite3.ErrCantOpen, SystemErrno: syscall.EACCES})
	if strings.Contains(other.Error(), "too many") {
		t.Errorf("the error for another reason is %v", other)
	}
}
