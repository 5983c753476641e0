package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Prefix of the paths of files in [Options.FS]. A slash and the path from the root of the
// file system follow.
const fsPrefix = "fs:"

// NameInFS returns the name in [Options.FS] of a path such as fs:/team/team.hcl. It
// reports false for the paths of the machine. The name is not valid if the path leads out
// of the file system; see [fs.ValidPath].
func NameInFS(p string) (string, bool) {
	rest, ok := strings.CutPrefix(filepath.ToSlash(p), fsPrefix)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Clean("./" + strings.TrimPrefix(rest, "/")), true
}

// pathInFS is the reverse of NameInFS.
func pathInFS(name string) string {
	if name == "." {
		name = ""
	}
	return fsPrefix + "/" + name
}

// IsAbs reports whether a path is absolute: on the machine, or in [Options.FS].
func IsAbs(p string) bool {
	_, ok := NameInFS(p)
	return ok || filepath.IsAbs(p)
}

// AbsPath returns the absolute path of a file on the machine, or the clean path of one in
// [Options.FS].
func AbsPath(p string) (string, error) {
	if name, ok := NameInFS(p); ok {
		return pathInFS(name), nil
	}
	return filepath.Abs(p)
}

// under returns the path of a name within a folder.
func under(folder, name string) string {
	if of, ok := NameInFS(folder); ok {
		return pathInFS(path.Join(of, filepath.ToSlash(name)))
	}
	return filepath.Join(folder, filepath.FromSlash(name))
}

// dirOf is [filepath.Dir], also for paths in [Options.FS].
func dirOf(p string) string {
	if name, ok := NameInFS(p); ok {
		return pathInFS(path.Dir(name))
	}
	return filepath.Dir(p)
}

// place is a file or folder of the machine, or of [Options.FS].
type place struct {
	fsys fs.FS // nil for the machine
	name string
}

// at returns the place of a path. The error says why no file can be there.
func (o *Options) at(p string) (place, error) {
	name, ok := NameInFS(p)
	switch {
	case !ok:
		return place{name: p}, nil
	case !fs.ValidPath(name):
		return place{}, &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("%q leads out of the program's file system", p), Remedy: "name a file within it"}
	case o.FS == nil:
		return place{}, &abi.Error{
			Code: abi.NotFound, Message: fmt.Sprintf("%q is in a file system of the program, which this program does not have", p),
			Remedy: "start the program that has applied the recipe, or give Options.FS the same files",
		}
	}
	return place{fsys: o.FS, name: name}, nil
}

// Missing reports whether no file and no folder is at a path.
func (o *Options) Missing(p string) bool {
	at, err := o.at(p)
	if err == nil {
		_, err = at.stat()
	}
	return errors.Is(err, fs.ErrNotExist) || abi.CodeOf(err) == abi.NotFound
}

func (p place) stat() (fs.FileInfo, error) {
	if p.fsys == nil {
		return os.Stat(p.name)
	}
	return fs.Stat(p.fsys, p.name)
}

func (p place) readDir() ([]fs.DirEntry, error) {
	if p.fsys == nil {
		return os.ReadDir(p.name)
	}
	return fs.ReadDir(p.fsys, p.name)
}

func (p place) open() (fs.File, error) {
	if p.fsys == nil {
		return os.Open(p.name)
	}
	return p.fsys.Open(p.name)
}

func (p place) dir() place {
	if p.fsys == nil {
		return place{name: filepath.Dir(p.name)}
	}
	return place{p.fsys, path.Dir(p.name)}
}

// files opens a folder for reading. The root is nil in a file system of the program, and
// must otherwise be closed; nothing leads out of it.
func (p place) files() (fs.FS, *os.Root, error) {
	if p.fsys != nil {
		sub, err := fs.Sub(p.fsys, p.name)
		return sub, nil, err
	}
	root, err := os.OpenRoot(p.name)
	if err != nil {
		return nil, nil, err
	}
	return root.FS(), root, nil
}
