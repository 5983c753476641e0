package editor

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of a workspace.
const (
	MaxFileBytes = 1 << 20 // of a text; recipes have the same limit
	maxFiles     = 256     // that are read of one folder
	maxSaved     = 8 << 20 // bytes of the files that are kept; one byte of text takes some ten of memory
)

// Layout says which files belong to one recipe.
type Layout string

// The layouts.
const (
	// Auto takes the files of a folder as one recipe if a file refers to what another file
	// declares, or has blocks but no creature; otherwise each file is a recipe.
	Auto    Layout = "auto"
	Folders Layout = "folder" // all files of a folder are one recipe
	Files   Layout = "file"   // each file is a recipe
)

// Workspace holds the texts of an editor, and reads the other files of their recipes.
type Workspace struct {
	roots      []string // absolute paths
	layout     Layout
	open       map[string]*file
	saved      map[string]savedFile
	bytes      int64                 // of saved
	most       int64                 // of bytes
	known      map[string]*recipe    // by path
	formatters map[string]*formatter // of open texts
	// listed has the folders that were listed, and the files that were looked at, for one
	// question: they are not looked at again.
	listed map[string][]*file
	looked map[string]*file
}

// savedFile is a file on the disk as it was last read.
type savedFile struct {
	*file
	size     int64
	modified time.Time
}

// NewWorkspace returns a workspace with the folders that the editor has opened. Files
// outside them are read only if they are in the same folder as an open text.
func NewWorkspace(roots []string, layout Layout) *Workspace {
	return &Workspace{roots: roots, layout: layout, open: map[string]*file{}, saved: map[string]savedFile{}, known: map[string]*recipe{},
		formatters: map[string]*formatter{}, most: maxSaved}
}

// begin begins to answer a question: files may have changed since the last one.
func (w *Workspace) begin() { w.listed, w.looked = map[string][]*file{}, map[string]*file{} }

// Set opens a text, or replaces it. path is absolute.
func (w *Workspace) Set(path string, text []byte) {
	if old := w.open[path]; old != nil && scannable(path, text) && scannable(path, old.text) {
		w.open[path] = rescan(old, text)
		return
	}
	w.open[path] = w.scan(path, text)
}

// Close forgets an open text: from now on, the file is used instead.
func (w *Workspace) Close(path string) {
	delete(w.open, path)
	w.drop(path)
	delete(w.formatters, path)
}

// Unsaved returns the open texts, by path.
func (w *Workspace) Unsaved() map[string][]byte {
	out := make(map[string][]byte, len(w.open))
	for path, f := range w.open {
		out[path] = f.text
	}
	return out
}

// Text returns the text of a file that is open or part of the recipe of an open one.
func (w *Workspace) Text(path string) ([]byte, bool) {
	if f := w.open[path]; f != nil {
		return f.text, true
	}
	if f := w.saved[path].file; f != nil {
		return f.text, true
	}
	return nil, false
}

// Outermost returns the paths of the recipes that files belong to: folders, or files. For a
// file of a sub-recipe, it is the path of the outermost recipe around it.
func (w *Workspace) Outermost(paths ...string) []string {
	w.begin()
	known := map[string]string{} // by the path of the recipe
	out := make([]string, len(paths))
	for i, path := range paths {
		r := w.recipeOf(path)
		first := r.path
		if out[i] = known[first]; out[i] != "" {
			continue
		}
		for range maxDepth {
			parent := r.parent()
			if parent == nil {
				break
			}
			r = parent
		}
		out[i], known[first] = r.path, r.path
	}
	return out
}

// Root returns the folder within which the recipe of a file may be read: the one that the
// editor has opened, else that of the file.
func (w *Workspace) Root(path string) string {
	for _, root := range w.roots {
		if inside(root, path) {
			return root
		}
	}
	return filepath.Dir(path)
}

func inside(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// scan returns the structure of a text. One in JSON, or one that is too long, has none.
func (w *Workspace) scan(path string, text []byte) *file {
	if !scannable(path, text) {
		f := scan(path, nil)
		f.text = text
		return f
	}
	return scan(path, text)
}

// scannable reports whether a text can have a structure.
func scannable(path string, text []byte) bool {
	return strings.HasSuffix(path, ".hcl") && len(text) <= MaxFileBytes
}

func isRecipe(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

// folder returns the files of a folder that can be part of a recipe, by name.
func (w *Workspace) folder(dir string) []*file {
	if files, ok := w.listed[dir]; ok {
		return files
	}
	names := map[string]bool{}
	for path := range w.open {
		if filepath.Dir(path) == dir && isRecipe(filepath.Base(path)) {
			names[path] = true
		}
	}
	entries, _ := os.ReadDir(dir) // without the folder, only open texts count
	for _, e := range entries {
		if isRecipe(e.Name()) && len(names) < maxFiles {
			names[filepath.Join(dir, e.Name())] = true
		}
	}
	var out []*file
	for path := range names {
		if f := w.file(path); f != nil {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	w.listed[dir] = out
	return out
}

// file returns an open text or a file; nil if it cannot be read.
func (w *Workspace) file(path string) *file {
	if f := w.open[path]; f != nil {
		return f
	}
	f, ok := w.looked[path]
	if !ok {
		f = w.fromDisk(path)
		w.looked[path] = f
	}
	return f
}

// drop forgets a file that was read.
func (w *Workspace) drop(path string) {
	w.bytes -= w.saved[path].size
	delete(w.saved, path)
}

// keep keeps a file that was read. If too many bytes are kept, those of other folders are
// forgotten; if there are still too many, the file counts as one that cannot be read.
func (w *Workspace) keep(path string, s savedFile) bool {
	w.drop(path)
	if w.bytes+s.size > w.most {
		for other := range w.saved {
			if w.looked[other] == nil {
				w.drop(other)
			}
		}
	}
	if w.bytes+s.size > w.most {
		return false
	}
	w.saved[path] = s
	w.bytes += s.size
	return true
}

func (w *Workspace) fromDisk(path string) *file {
	info, err := os.Stat(path) // opening a pipe could block
	if err != nil || !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return nil
	}
	if s, ok := w.saved[path]; ok && s.size == info.Size() && s.modified.Equal(info.ModTime()) {
		return s.file
	}
	text, err := readFile(path, info)
	if err != nil {
		return nil
	}
	s := savedFile{size: info.Size(), modified: info.ModTime()}
	if !w.keep(path, s) {
		return nil
	}
	s.file = w.scan(path, text)
	w.saved[path] = s
	return s.file
}

// readFile reads a file within its folder, so that a link does not lead out of it.
func readFile(path string, info fs.FileInfo) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, info.Size()))
}

// exists reports whether there is a regular file.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
