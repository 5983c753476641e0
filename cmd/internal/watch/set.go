package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Set is a set of files.
type Set struct {
	// Tree is a folder whose files belong to the set if Match accepts their names, at any
	// depth. Names that begin with a dot, such as those of the locks of editors, and the
	// folders of build tools are left out. "" means none.
	Tree  string
	Match func(name string) bool
	// Files are the paths of further files, which need not exist.
	Files []string
}

// Sum identifies the contents of a set: different contents have different sums.
type Sum [sha256.Size]byte

// The bounds of a set. They are generous for sources that are written by hand.
const (
	maxEntries = 100_000   // files and folders of a tree
	maxBytes   = 256 << 20 // contents of all files
)

// skipped are folders in which build tools keep what they have made or fetched.
var skipped = []string{"target", "node_modules", "zig-out", "zig-cache", "build", "dist", "vendor"}

// Sum reads the files. It returns their sum, and the folders in which a change of the set
// can show. A file that cannot be read is part of the sum as such. The error has the code
// [abi.TooLarge]; the folders that were read until then are returned with it.
func (s Set) Sum() (sum Sum, dirs []string, err error) {
	r := &reading{hash: sha256.New(), left: maxBytes}
	if s.Tree != "" {
		r.dirs = append(r.dirs, s.Tree)
		err = r.tree(s.Tree, s.Match)
	}
	for _, path := range slices.Sorted(slices.Values(s.Files)) {
		r.dirs = append(r.dirs, filepath.Dir(path))
		if err == nil {
			err = r.file(path)
		}
	}
	if err == nil {
		sum = Sum(r.hash.Sum(nil))
	}
	slices.Sort(r.dirs)
	return sum, slices.Compact(r.dirs), err
}

// reading is one reading of a set.
type reading struct {
	hash    hash.Hash
	dirs    []string
	entries int
	left    int64 // bytes that may be read
}

func (r *reading) tree(root string, match func(string) bool) error {
	if followed, err := filepath.EvalSymlinks(root); err == nil {
		root = followed // a link would be taken for a file
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if r.entries++; r.entries > maxEntries {
			return tooLarge(root, fmt.Sprintf("the folder has more than %d files", maxEntries))
		}
		switch {
		case err != nil: // it was removed, or cannot be read
			return nil
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name())):
			return fs.SkipDir
		case d.IsDir():
			r.dirs = append(r.dirs, path)
		case match(d.Name()) && !strings.HasPrefix(d.Name(), "."):
			return r.file(path)
		}
		return nil
	})
}

// file adds a file to the sum. Each part has its length before it, so that different sets
// have different texts.
func (r *reading) file(path string) error {
	content, err := r.read(path)
	if errors.As(err, new(*abi.Error)) {
		return err
	}
	if err != nil {
		content = nil
	}
	fmt.Fprintf(r.hash, "%d %s %t %d ", len(path), path, err == nil, len(content))
	r.hash.Write(content)
	return nil
}

func (r *reading) read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe could block
		return nil, fs.ErrInvalid
	}
	if info.Size() > r.left {
		return nil, tooLarge(path, fmt.Sprintf("the files have more than %d bytes", int64(maxBytes)))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, info.Size())) // what is added meanwhile changes the next sum
	r.left -= int64(len(content))
	return content, err
}

func tooLarge(path, message string) error {
	return &abi.Error{Code: abi.TooLarge, Message: message, Remedy: "give the creature a folder of its own", IDs: map[string]string{"path": path}}
}
