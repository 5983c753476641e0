//go:build unix

package terrarium_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// A module that cannot be opened because too many files are open is not reported as missing.
func TestModuleWithTooManyOpenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wasm")
	if err := os.WriteFile(path, []byte("\x00asm"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := terrarium.LoadModule(t.Context(), path)
	if rerr := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); rerr != nil {
		t.Fatal(rerr)
	}
	if abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("it answers %v", err)
	}
	if _, err := terrarium.LoadModule(t.Context(), path+"x"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a missing one answers %v", err)
	}
}
