package serve_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/serve"
)

// A socket on which a process listens is not removed. One that a process has left is.
func TestListenSocketRemovesOnlyWhatIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "S")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := serve.SocketOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := serve.ListenSocket(t.Context(), dir); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("%v, %v", l, err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the socket is gone: %v", err)
	}
	conn.Close()
	other.(*net.UnixListener).SetUnlinkOnClose(false)
	other.Close()
	l, err := serve.ListenSocket(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A command connects only to a socket, and not through a symbolic link.
func TestDialSocketWantsASocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "S")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.DialSocket(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "other.sock")
	other, err := net.Listen("unix", elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	path, err := serve.SocketOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Skip(err)
	}
	if conn, err := serve.DialSocket(t.Context(), dir); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("%v, %v", conn, err)
	}
}
