package recipes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// file returns the content of a file in the folder. The name is relative to the folder,
// or absolute and within it.
func (f *folder) file(name string) ([]byte, error) {
	rel, err := f.relative(name)
	if err != nil {
		return nil, err
	}
	if data, ok := f.read[rel]; ok {
		return data, nil
	}
	data, err := f.readAll(rel)
	if err != nil {
		return nil, err
	}
	f.read[rel] = data
	return data, nil
}

func (f *folder) relative(name string) (string, error) {
	rel := filepath.FromSlash(name)
	if IsAbs(rel) {
		var err error
		if rel, err = filepath.Rel(f.abs, rel); err != nil {
			return "", outside(name)
		}
	}
	rel = filepath.Clean(rel)
	if !filepath.IsLocal(rel) {
		return "", outside(name)
	}
	return filepath.ToSlash(rel), nil
}

func outside(name string) error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("%q is outside the recipe's folder", name),
		Remedy: "copy the file into the recipe's folder"}
}

func (f *folder) readAll(rel string) ([]byte, error) {
	if f.kept != nil {
		text, ok := f.kept[rel]
		if !ok {
			return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("the stored copy of the recipe has no file %q", rel)}
		}
		return []byte(text), nil
	}
	if text, ok := f.unsaved[under(f.abs, rel)]; ok {
		if int64(len(text)) > f.limit {
			return nil, tooLarge(rel, f.limit)
		}
		return text, nil
	}
	// Opening a pipe or device could block; Stat does not open it.
	info, err := fs.Stat(f.files, rel)
	if err != nil {
		return nil, f.refused(rel, err)
	}
	f.noteOwner(rel, info)
	if !info.Mode().IsRegular() {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("%q is not a regular file", rel)}
	}
	h, err := f.files.Open(rel)
	if err != nil {
		return nil, f.refused(rel, err)
	}
	defer func() { _ = h.Close() }()
	data, err := io.ReadAll(io.LimitReader(h, f.limit+1))
	if err != nil {
		return nil, f.refused(rel, err)
	}
	if int64(len(data)) > f.limit {
		return nil, tooLarge(rel, f.limit)
	}
	return data, nil
}

func tooLarge(rel string, limit int64) error {
	return &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("%q is larger than %d bytes", rel, limit)}
}

// refused distinguishes an escape through a symbolic link from a missing file.
func (f *folder) refused(rel string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		e := &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("there is no file %q in the recipe's folder", rel)}
		if s := nearest(filepath.Base(rel), f.siblings(rel)); s != "" {
			e.Message += fmt.Sprintf(". Did you mean %q?", s) // the form in which HCL suggests names too
		}
		return e
	}
	if l, lerr := fs.Lstat(f.files, rel); lerr == nil && l.Mode()&fs.ModeSymlink != 0 || strings.Contains(cause(err), "escapes") {
		return outside(rel)
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%q cannot be read: %s", rel, cause(err))}
}

func (f *folder) siblings(rel string) []string {
	entries, err := fs.ReadDir(f.files, path.Dir(rel))
	if err != nil {
		return nil
	}
	return namesOf(entries)
}

func namesOf(entries []fs.DirEntry) []string {
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
