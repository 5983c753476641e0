package recipes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// folder is where a recipe stands. All reading goes through the os.Root, so
// that neither ".." nor a symbolic link leads out of it.
type folder struct {
	name  string // of the recipe: that of its only file, or of the folder
	shown string // as it was given, for messages
	abs   string
	root  *os.Root          // nil for a copy
	kept  map[string]string // the files of a copy
	limit int64
	// prefix leads here from the folder of the outermost recipe: empty, or
	// ending in a slash.
	prefix string
	// read is what was read, by name relative to the folder.
	read map[string][]byte
	// parsed are the recipe's files, by name.
	parsed map[string]parsedFile
}

type parsedFile struct {
	file  *hcl.File
	diags hcl.Diagnostics
}

// openRecipe finds the folder of a recipe and the names of its files.
func openRecipe(path string, limit int64) (*folder, []string, *Diagnostic) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	dir, names := path, []string(nil)
	if !info.IsDir() {
		dir, names = filepath.Dir(path), []string{filepath.Base(path)}
		if !isRecipe(names[0]) {
			return nil, nil, &Diagnostic{Severity: Error, Summary: "Not a recipe", Range: Range{File: path},
				Detail: "The name of a recipe ends in .hcl or .hcl.json.", Remedy: "Name the recipe's file or its folder."}
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	if info.IsDir() {
		var d *Diagnostic
		if names, d = listRecipe(path); d != nil {
			return nil, nil, d
		}
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	name := filepath.Base(abs)
	if !info.IsDir() {
		name = recipeName(names[0])
	}
	return &folder{name: name, shown: dir, abs: abs, root: root, limit: limit, read: map[string][]byte{}}, names, nil
}

func isRecipe(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

// maxListed bounds how many names a message lists.
const maxListed = 8

func listRecipe(path string) (names []string, d *Diagnostic) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return recipesAmong(entries, path)
}

func recipesAmong(entries []fs.DirEntry, path string) (names []string, d *Diagnostic) {
	var others []string
	for _, e := range entries {
		switch {
		case e.IsDir():
			others = append(others, e.Name()+"/")
		case isRecipe(e.Name()):
			names = append(names, e.Name())
		default:
			others = append(others, e.Name())
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	detail := "The folder is empty."
	if len(others) > 0 {
		detail = "It holds " + enumerate(others) + "."
	}
	return nil, &Diagnostic{Severity: Error, Summary: "No recipe in this folder", Range: Range{File: path}, Detail: detail,
		Remedy: "A recipe is made of files whose names end in .hcl or .hcl.json."}
}

// enumerate joins names for a sentence, leaving out what would be too long.
func enumerate(names []string) string {
	if n := len(names) - maxListed; n > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

func unreadable(path string, err error) *Diagnostic {
	d := &Diagnostic{Severity: Error, Summary: "Recipe cannot be read", Detail: sentence(cause(err)), Range: Range{File: path}}
	if !errors.Is(err, fs.ErrNotExist) {
		return d
	}
	d.Summary, d.Detail = "Recipe not found", fmt.Sprintf("There is no file or folder %q.", path)
	if to, err := os.Readlink(path); err == nil {
		d.Detail = fmt.Sprintf("%q is a link to %q, where there is nothing.", path, to)
		return d
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err == nil {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		d.Suggestion = meantFile(filepath.Base(path), names)
	}
	return d
}

// meantFile is the name that was probably meant by one: the same with its ending, or
// one that is nearly the same.
func meantFile(name string, names []string) string {
	for _, ending := range []string{".hcl", ".hcl.json"} {
		if slices.Contains(names, name+ending) {
			return name + ending
		}
	}
	return nearest(name, names)
}

// cause strips the operation and path from a file error; messages have them
// already.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// openCopy is openRecipe for a copy that was kept of a recipe.
func openCopy(source engine.Source, limit int64) (*folder, []string, *Diagnostic) {
	dir := source.Path
	single := isRecipe(filepath.Base(dir))
	if single {
		dir = filepath.Dir(dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, unreadable(source.Path, err)
	}
	f := &folder{name: filepath.Base(abs), shown: dir, abs: abs, kept: source.Files, limit: limit, read: map[string][]byte{}}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(source.Files)) {
		if isRecipe(name) && !strings.Contains(name, "/") && (!single || name == filepath.Base(source.Path)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, &Diagnostic{Severity: Error, Summary: "No recipe in the copy", Range: Range{File: source.Path},
			Detail: "The copy that was kept has no file of the recipe.", Remedy: "Name the recipe itself."}
	}
	if single {
		f.name = recipeName(names[0])
	}
	return f, names, nil
}

// recipeName is the name of a recipe that is one file.
func recipeName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".hcl")
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}

// file returns the content of a file in the folder. The name may be relative
// to the folder, or absolute and beneath it.
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
	if filepath.IsAbs(rel) {
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
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("%q lies outside of the recipe's folder", name),
		Remedy: "copy the file into the recipe's folder"}
}

func (f *folder) readAll(rel string) ([]byte, error) {
	if f.kept != nil {
		text, ok := f.kept[rel]
		if !ok {
			return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("the copy of the recipe has no file %q", rel)}
		}
		return []byte(text), nil
	}
	// A pipe or device would block or never end; Stat tells without opening.
	info, err := f.root.Stat(rel)
	if err != nil {
		return nil, f.refused(rel, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: fmt.Sprintf("%q is not a regular file", rel)}
	}
	h, err := f.root.Open(rel)
	if err != nil {
		return nil, f.refused(rel, err)
	}
	defer func() { _ = h.Close() }()
	data, err := io.ReadAll(io.LimitReader(h, f.limit+1))
	if err != nil {
		return nil, f.refused(rel, err)
	}
	if int64(len(data)) > f.limit {
		return nil, &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("%q is larger than %d bytes", rel, f.limit)}
	}
	return data, nil
}

// refused tells an escape through a symbolic link from a missing file.
func (f *folder) refused(rel string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		e := &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("there is no file %q in the recipe's folder", rel)}
		if s := nearest(filepath.Base(rel), f.siblings(rel)); s != "" {
			e.Message += fmt.Sprintf(". Did you mean %q?", s) // the form in which HCL suggests names too
		}
		return e
	}
	if l, lerr := f.root.Lstat(rel); lerr == nil && l.Mode()&fs.ModeSymlink != 0 || strings.Contains(cause(err), "escapes") {
		return outside(rel)
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%q cannot be read: %s", rel, cause(err))}
}

func (f *folder) siblings(rel string) []string {
	d, err := f.root.Open(filepath.Dir(rel))
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

// parse reads and parses one file of the recipe, once.
func (f *folder) parse(name string) (*hcl.File, hcl.Diagnostics) {
	p, ok := f.parsed[name]
	if !ok {
		p.file, p.diags = f.parseFile(name)
		if f.parsed == nil {
			f.parsed = map[string]parsedFile{}
		}
		f.parsed[name] = p
	}
	return p.file, p.diags
}

func (f *folder) parseFile(name string) (*hcl.File, hcl.Diagnostics) {
	shown := filepath.Join(f.shown, name)
	src, err := f.file(name)
	if err != nil {
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Recipe cannot be read", Detail: sentence(err.Error()),
			Subject: &hcl.Range{Filename: shown}}}
	}
	if strings.HasSuffix(name, ".json") {
		return parseJSON(src, shown)
	}
	return parseNative(src, shown)
}

// parseJSON parses a text in JSON.
func parseJSON(src []byte, shown string) (*hcl.File, hcl.Diagnostics) {
	src = bytes.TrimPrefix(src, []byte(byteOrderMark))
	if d := cmp.Or(encoding(src, shown), deceptive(src, shown), measureJSON(src, shown)); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	file, diags := hcljson.Parse(src, shown)
	if file != nil && file.Body != nil {
		file.Body = jsonBody{file.Body}
	}
	return file, diags
}

// sentence gives a clause a capital letter and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
