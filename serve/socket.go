package serve

import (
	"context"
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

// SocketOf returns the path of the socket of the process that holds a session directory: it
// is beside the directory. It follows from the path of the directory, so that nothing in the
// directory, which may come from a stranger, says where to connect.
func SocketOf(dir string) (string, error) {
	whole, err := filepath.Abs(dir)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	return whole + ".sock", err
}

// address returns a path of a socket that systems accept, however long its own path is. It
// is valid until release is called.
func address(path string) (short string, release func() error, err error) {
	if len(path) <= maxSocketPath {
		return path, func() error { return nil }, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	// On Linux, a directory that is open has a short path.
	short = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil || len(short) > maxSocketPath {
		return "", nil, errors.Join(&abi.Error{
			Code: abi.TooLarge, Op: "listen", Message: "the path of the session directory is too long for a socket beside it",
			Remedy: "use a directory with a shorter path", IDs: map[string]string{"path": path},
		}, dir.Close())
	}
	return short, dir.Close, nil
}

// ListenSocket listens on the socket of a session directory, which this process holds. Only
// processes of the same user can connect.
func ListenSocket(ctx context.Context, dir string) (net.Listener, error) {
	path, err := SocketOf(dir)
	if err != nil {
		return nil, err
	}
	short, release, err := address(path)
	if err != nil {
		return nil, err
	}
	if err := removeLeft(ctx, path, short); err != nil {
		return nil, errors.Join(err, release())
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", short)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	const private = 0o600
	if err := os.Chmod(path, private); err != nil {
		return nil, errors.Join(err, l.Close(), release())
	}
	return ownListener{l, release}, nil
}

// removeLeft removes the socket of an earlier process of this user, if it is there. A socket on
// which a process listens stays.
func removeLeft(ctx context.Context, path, short string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return taken(path, path+" is not a socket")
	case ownerOf(info) != os.Geteuid():
		return taken(path, path+" is a socket of another user")
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", short)
	switch {
	case err == nil:
		return errors.Join(taken(path, "another process listens on "+path), conn.Close())
	case !refusedByPeer(err):
		return err
	}
	return os.Remove(path)
}

func taken(path, message string) error {
	return &abi.Error{Code: abi.AlreadyExists, Op: "listen", Message: message, Remedy: "move it elsewhere, or use --no-socket", IDs: map[string]string{"path": path}}
}

// ownListener accepts connections of processes of the same user.
type ownListener struct {
	net.Listener
	release func() error // releases the address of the listener
}

// Close also removes the socket, which the listener finds at its address.
func (l ownListener) Close() error { return errors.Join(l.Listener.Close(), l.release()) }

func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if isOf(conn, os.Geteuid()) {
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
	users, err := checkSocket(dir, path)
	if err != nil {
		return nil, err
	}
	short, release, err := address(path)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", short)
	err = errors.Join(err, release())
	switch {
	case err == nil && isOf(conn, users...):
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

// checkSocket returns the users whose process may be at the other end of the socket of a
// session directory: this user and, for root, the owner of the directory. It refuses what is
// not a socket.
func checkSocket(dir, path string) (users []int, err error) {
	of, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no process listens on %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, &abi.Error{Code: abi.Unavailable, Op: "connect", Message: path + " is not a socket", Remedy: "move it elsewhere", IDs: map[string]string{"path": path}}
	}
	users = []int{os.Geteuid()}
	if users[0] == 0 {
		users = append(users, ownerOf(of))
	}
	return users, nil
}
