package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
)

func quote(text string) string { return strconv.Quote(text) }

// place is a file within the root of its session directory.
type place struct {
	root *os.Root
	rel  string
	path string // for messages
}

// at opens the root of the session directory that a path is in. The caller has chosen the
// directory itself; its content is not trusted.
func at(path string) (place, error) {
	name := filepath.Base(path)
	top, rel := filepath.Dir(path), name
	if name == "." || name == ".." || !filepath.IsLocal(name) {
		return place{}, &fs.PathError{Op: "open", Path: path, Err: fs.ErrInvalid}
	}
	if filepath.Base(top) == Stores {
		top, rel = filepath.Dir(top), filepath.Join(Stores, name)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return place{}, err
	}
	p := place{root, rel, path}
	if rel == name {
		return p, nil
	}
	info, err := root.Lstat(Stores)
	if err == nil && !info.IsDir() {
		err = unfit(filepath.Dir(path), info.Mode(), "a directory")
	}
	if err != nil {
		return place{}, errors.Join(err, root.Close())
	}
	return p, nil
}

func (p place) close() { _ = p.root.Close() } // nothing was written through it

// look returns the description of a file, which has to be a regular one.
func (p place) look() (fs.FileInfo, error) {
	info, err := p.root.Lstat(p.rel)
	if err == nil && !info.Mode().IsRegular() {
		err = unfit(p.path, info.Mode(), "a regular file")
	}
	if err != nil {
		return nil, err
	}
	return info, nil
}

func unfit(path string, mode fs.FileMode, wanted string) error {
	is := "something else"
	switch {
	case mode.IsDir():
		is = "a directory"
	case mode&fs.ModeSymlink != 0:
		is = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		is = "a named pipe"
	case mode&fs.ModeSocket != 0:
		is = "a socket"
	case mode&fs.ModeDevice != 0:
		is = "a device"
	}
	return refused(path, path+" is "+is+", not "+wanted)
}

func refused(path, message string) error {
	return &abi.Error{Code: abi.Storage, Op: "open", Message: message, IDs: map[string]string{"path": path},
		Remedy: "if the directory is yours, put the file itself there; otherwise do not use the directory. It has been left as it is"}
}

// onlyName refuses a file with more than one name before it is written to.
func onlyName(path string, info fs.FileInfo) error {
	if names(info) > 1 {
		return refused(path, path+" has other names (hard links), so that writing to it would change other files")
	}
	return nil
}

// with calls f with a file's place.
func with[T any](path string, f func(p place) (T, error)) (T, error) {
	p, err := at(path)
	if err != nil {
		var none T
		return none, err
	}
	defer p.close()
	return f(p)
}

// Stat describes a regular file.
func Stat(path string) (fs.FileInfo, error) { return with(path, place.look) }

// Missing reports whether nothing exists at a path, not even a dangling link.
func Missing(path string) bool {
	_, err := Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Used reports whether one of the names is that of something, of whatever kind.
func Used(paths ...string) (bool, error) {
	for _, path := range paths {
		_, err := with(path, func(p place) (fs.FileInfo, error) { return p.root.Lstat(p.rel) })
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// Size returns the size of a regular file in bytes; 0 if there is none.
func Size(path string) int64 {
	info, err := Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY) }

// OpenFile opens a regular file as [os.OpenFile] does. With [os.O_CREATE] in flag, it
// creates the file, which all users may read.
func OpenFile(path string, flag int) (*os.File, error) {
	return with(path, func(p place) (*os.File, error) { return p.open(flag) })
}

func (p place) open(flag int) (*os.File, error) {
	const made = 0o644
	info, err := p.look()
	switch {
	case err == nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: fs.ErrExist}
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		return p.named(p.root.OpenFile(p.rel, flag|os.O_EXCL, made))
	case err != nil:
		return nil, err
	}
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		if err := onlyName(p.path, info); err != nil {
			return nil, err
		}
	}
	f, err := p.named(p.root.OpenFile(p.rel, flag&^(os.O_CREATE|os.O_TRUNC), 0))
	if err != nil {
		return nil, err
	}
	// The file is truncated only if it is the one that was checked.
	if opened, statErr := f.Stat(); statErr != nil || !os.SameFile(info, opened) {
		err = errors.Join(statErr, refused(p.path, p.path+" was exchanged while it was opened"))
	} else if flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// named passes an error on with the path that the caller knows.
func (p place) named(f *os.File, err error) (*os.File, error) {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: p.path, Err: at.Err}
	}
	return f, err
}

// WriteFile writes a regular file, which it creates if need be.
func WriteFile(path string, content []byte) error {
	f, err := OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// ReadFile reads a regular file, but no more than the given number of bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, most))
	return content, errors.Join(err, f.Close())
}

// Remove removes a regular file.
func Remove(path string) error {
	_, err := with(path, func(p place) (none struct{}, err error) {
		if _, err := p.look(); err != nil {
			return none, err
		}
		return none, p.root.Remove(p.rel)
	})
	return err
}

// Rename renames a regular file within its directory. It replaces a regular file of that
// name.
func Rename(from, to string) error {
	if filepath.Dir(from) != filepath.Dir(to) {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrInvalid}
	}
	_, err := with(from, func(p place) (none struct{}, err error) {
		if _, err := p.look(); err != nil {
			return none, err
		}
		target := place{p.root, filepath.Join(filepath.Dir(p.rel), filepath.Base(to)), to}
		if _, err := target.look(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return none, err
		}
		return none, p.root.Rename(p.rel, target.rel)
	})
	return err
}

// ReadStores lists the directory stores of a session directory.
func ReadStores(dir string) ([]fs.DirEntry, error) {
	// The name only serves to find the path.
	return with(filepath.Join(dir, Stores, "any"), func(p place) (entries []fs.DirEntry, err error) {
		return fs.ReadDir(p.root.FS(), Stores)
	})
}

// MakeStores makes the directory stores in a session directory, if it does not exist.
func MakeStores(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(Stores)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.Mkdir(Stores, 0o755)
	case err == nil && !info.IsDir():
		return unfit(filepath.Join(dir, Stores), info.Mode(), "a directory")
	}
	return err
}

// Sync makes a regular file durable, through a descriptor of its own. It must not be used
// on a database that is open in this process: closing the descriptor would drop SQLite's
// locks.
func Sync(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDirectory makes durable the entries of a session directory, of its directory stores,
// or of a directory that the caller has named.
func SyncDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// CheckDatabase checks the files that SQLite is about to open: a database and its
// auxiliary files must be regular files, or missing. No database of a session directory
// ever has a rollback journal; SQLite would play one back, and remove the file that it
// names as the journal of several databases, wherever that is.
func CheckDatabase(path string, writing bool) error {
	_, err := with(path, func(p place) (none struct{}, err error) {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			part := place{p.root, p.rel + suffix, p.path + suffix}
			info, err := part.look()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err == nil && suffix == "-journal":
				err = refused(part.path, part.path+" is a rollback journal, which no session database has")
			case err == nil && (writing || suffix == "-shm"): // which readers write to as well
				err = onlyName(part.path, info)
			}
			if err != nil {
				return none, err
			}
		}
		return none, nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // SQLite reports this itself
	}
	return err
}
