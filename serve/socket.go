package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
)

// maxSocketPath is the longest path of a socket that all systems accept.
const maxSocketPath = 100

// SocketOf returns the path of the socket of the process that holds a session directory:
// beside the directory or, if that would be too long, in a private directory for temporary
// files. It follows from the path of the directory, so that nothing in the directory, which
// may come from a stranger, says where to connect.
func SocketOf(dir string) (string, error) {
	whole, err := filepath.Abs(dir)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil {
		return "", err
	}
	if path := whole + ".sock"; len(path) <= maxSocketPath {
		return path, nil
	}
	sum := sha256.Sum256([]byte(whole))
	path := filepath.Join(os.TempDir(), fmt.Sprintf("terrarium-%d", os.Geteuid()), hex.EncodeToString(sum[:12])+".sock")
	if len(path) > maxSocketPath {
		return "", &abi.Error{Code: abi.TooLarge, Op: "listen", Message: "the path of the session directory is too long for a socket, and so is that of temporary files", Remedy: "use a directory with a shorter path"}
	}
	return path, nil
}

// ListenSocket listens on the socket of a session directory, which this process holds. Only
// processes of the same user can connect.
func ListenSocket(ctx context.Context, dir string) (net.Listener, error) {
	path, err := SocketOf(dir)
	if err != nil {
		return nil, err
	}
	if err := makePlace(filepath.Dir(path)); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, &abi.Error{Code: abi.AlreadyExists, Op: "listen", Message: path + " is not a socket", Remedy: "move it elsewhere, or use --no-socket", IDs: map[string]string{"path": path}}
	default: // of an earlier process, since this one holds the directory
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	const private = 0o600
	if err := os.Chmod(path, private); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return ownListener{l}, nil
}

// makePlace makes a private directory for sockets with long paths. A directory that exists
// beside a session directory is as it is.
func makePlace(dir string) error {
	if filepath.Dir(dir) != filepath.Clean(os.TempDir()) || filepath.Base(dir) != fmt.Sprintf("terrarium-%d", os.Geteuid()) {
		return nil
	}
	const private = 0o700
	if err := os.Mkdir(dir, private); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkPlace(dir)
}

// checkPlace refuses a directory in which other users could put a socket.
func checkPlace(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	const others = 0o077
	if !info.IsDir() || info.Mode().Perm()&others != 0 || !owned(info) {
		return &abi.Error{Code: abi.Unavailable, Op: "listen", Message: dir + " is not a private directory of this user", Remedy: "set TMPDIR to a directory of your own, or use a session directory with a shorter path", IDs: map[string]string{"path": dir}}
	}
	return nil
}

// ownListener accepts connections of processes of the same user.
type ownListener struct{ net.Listener }

func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if sameUser(conn, false) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// DialSocket connects to the process that holds a session directory. The error is
// [fs.ErrNotExist] if there is no such process with a socket.
func DialSocket(ctx context.Context, dir string) (net.Conn, error) {
	path, err := SocketOf(dir)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil && sameUser(conn, true):
		return conn, nil
	case err == nil:
		err = conn.Close()
	case errors.Is(err, fs.ErrNotExist) || refusedByPeer(err):
		return nil, fmt.Errorf("no process listens on %s: %w", path, fs.ErrNotExist)
	case !errors.Is(err, fs.ErrPermission):
		return nil, err
	}
	return nil, &abi.Error{
		Code: abi.Unavailable, Op: "connect", Message: dir + " is in use by a process of another user",
		Remedy: "run the command as that user", IDs: map[string]string{"path": path}, Err: err,
	}
}
