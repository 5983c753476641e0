package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// folder is the folder of a recipe. On the machine, all reading goes through the os.Root,
// so that neither ".." nor a symbolic link leads out of it.
type folder struct {
	name  string // of the recipe: that of its only file, or of the folder
	shown string // as the caller wrote it, for messages
	abs   string
	files fs.FS             // nil for a copy
	root  *os.Root          // that of files; nil for a copy and in [Options.FS]
	kept  map[string]string // the files of a copy
	limit int64
	// unsaved has texts that take the place of files, by absolute path.
	unsaved map[string][]byte
	// prefix is the path from the folder of the outermost recipe: empty, or ending in a
	// slash.
	prefix string
	// read has the files read so far, by name relative to the folder.
	read    map[string][]byte
	answers answers
	// foreign says which part of it belongs to another user, and why; empty if none does.
	foreign string
	// parsed are the recipe's files, by name.
	parsed map[string]parsedFile
}

func (o *Options) openRecipe(path string, unsaved map[string][]byte) (*folder, []string, *Diagnostic) {
	at, err := o.at(path)
	if err != nil {
		return nil, nil, at.unreadable(path, err)
	}
	isDir := false
	if info, err := at.stat(); err == nil {
		isDir = info.IsDir()
	} else if !hasUnsaved(unsaved, path) {
		return nil, nil, at.unreadable(path, err)
	}
	dir, names := path, []string(nil)
	if !isDir {
		dir, names = dirOf(path), []string{filepath.Base(path)}
		if d := notARecipe(path, names[0]); d != nil {
			return nil, nil, d
		}
		at = at.dir()
	}
	abs, err := AbsPath(dir)
	if err != nil {
		return nil, nil, at.unreadable(path, err)
	}
	if isDir {
		entries, err := at.readDir()
		if err != nil {
			return nil, nil, at.unreadable(path, err)
		}
		var d *Diagnostic
		if names, d = recipesAmong(entries, path, unsavedIn(unsaved, abs)); d != nil {
			return nil, nil, d
		}
	}
	files, root, err := at.files()
	if err != nil {
		return nil, nil, at.unreadable(path, err)
	}
	f := &folder{name: nameOf(abs), shown: dir, abs: abs, files: files, root: root, limit: o.MaxFileBytes, unsaved: unsaved, read: map[string][]byte{}}
	if !isDir {
		f.name = recipeName(names[0])
	}
	if in, err := fs.Stat(files, "."); err == nil {
		f.noteOwner("its folder", in)
	}
	return f, names, nil
}

// nameOf returns the name of the recipe in a folder.
func nameOf(abs string) string {
	if name, ok := NameInFS(abs); ok && name == "." {
		return "recipe"
	}
	return filepath.Base(abs)
}

// notARecipe refuses a file by its name.
func notARecipe(path, name string) *Diagnostic {
	d := &Diagnostic{Severity: Error, Summary: "Not a recipe", Range: Range{File: path}, Detail: "The name of a recipe ends in .hcl or .hcl.json.", Remedy: "Give the recipe's file or its folder."}
	switch {
	case isRecipe(name):
		return nil
	case isTestFile(name):
		d.Detail, d.Remedy = "This file has tests of a recipe.", "Give the recipe's file or its folder; terrarium test finds the tests beside it."
	}
	return d
}

func isRecipe(name string) bool { return isSource(name) && !isTestFile(name) }

// isSource reports whether a file is in the language of recipes.
func isSource(name string) bool {
	return !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".hcl") || strings.HasSuffix(name, ".hcl.json"))
}

// isTestFile reports whether a file has only tests. Nothing but tests loads it.
func isTestFile(name string) bool {
	return isSource(name) && strings.HasSuffix(recipeName(name), testEnding)
}

// testEnding precedes the ending of the language in the names of files with tests, such
// as team.test.hcl.
const testEnding = ".test"

// testFiles returns the names of the files with tests that belong to the recipe: all in its
// folder or, if the folder has other recipes too, those that are named after its file.
func (f *folder) testFiles(recipe []string) []string {
	if f.files == nil {
		return nil // a copy has none
	}
	entries, _ := fs.ReadDir(f.files, ".") // the recipe in it has been found
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = !e.IsDir()
	}
	for path := range f.unsaved {
		names[filepath.Base(path)] = filepath.Dir(path) == f.abs || names[filepath.Base(path)]
	}
	all, _ := recipesAmong(entries, f.shown, unsavedIn(f.unsaved, f.abs))
	whole := slices.Equal(all, slices.Sorted(slices.Values(recipe)))
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] && isTestFile(name) && (whole || recipeName(name) == recipeName(recipe[0])+testEnding) {
			out = append(out, name)
		}
	}
	return out
}

// recipesAmong returns the names of the recipe's files in a folder, including files that
// are not saved yet.
func recipesAmong(entries []fs.DirEntry, path string, unsaved []string) (names []string, d *Diagnostic) {
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
	for _, name := range unsaved {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return names, nil
	}
	detail := "The folder is empty."
	if len(others) > 0 {
		detail = "It contains " + enumerate(others) + "."
	}
	return nil, &Diagnostic{Severity: Error, Summary: "No recipe in this folder", Range: Range{File: path}, Detail: detail,
		Remedy: "A recipe consists of files whose names end in .hcl or .hcl.json."}
}

// unreadable reports a recipe that is not at a place, or cannot be read there.
func (p place) unreadable(path string, err error) *Diagnostic {
	d := &Diagnostic{Severity: Error, Summary: "Recipe cannot be read", Detail: sentence(cause(err)), Range: Range{File: path}}
	var refused *abi.Error
	if errors.As(err, &refused) {
		d.Detail, d.Remedy = sentence(refused.Message), sentence(refused.Remedy)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return d
	}
	d.Summary, d.Detail = "Recipe not found", fmt.Sprintf("There is no file or folder %q.", path)
	if to, err := os.Readlink(p.name); err == nil && p.fsys == nil {
		d.Detail = fmt.Sprintf("%q is a link to %q, which does not exist.", path, to)
		return d
	}
	if entries, err := p.dir().readDir(); err == nil {
		d.Suggestion = meantFile(filepath.Base(path), namesOf(entries))
	}
	return d
}

// meantFile returns the name that was probably intended: with its ending, or a similar
// one.
func meantFile(name string, names []string) string {
	for _, ending := range []string{".hcl", ".hcl.json"} {
		if slices.Contains(names, name+ending) {
			return name + ending
		}
	}
	return nearest(name, names)
}

// openCopy is like openRecipe for a stored copy of a recipe.
func openCopy(source deploy.Source, limit int64) (*folder, []string, *Diagnostic) {
	dir := source.Path
	single := isRecipe(filepath.Base(dir))
	if single {
		dir = dirOf(dir)
	}
	abs, err := AbsPath(dir)
	if err != nil {
		return nil, nil, place{}.unreadable(source.Path, err)
	}
	f := &folder{name: nameOf(abs), shown: dir, abs: abs, kept: source.Files, limit: limit, read: map[string][]byte{}}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(source.Files)) {
		if isRecipe(name) && !strings.Contains(name, "/") && (!single || name == filepath.Base(source.Path)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, &Diagnostic{Severity: Error, Summary: "No recipe in the copy", Range: Range{File: source.Path},
			Detail: "The stored copy has no file of the recipe.", Remedy: "Give the path of the recipe itself."}
	}
	if single {
		f.name = recipeName(names[0])
	}
	return f, names, nil
}

// recipeName returns the name of a recipe that is one file.
func recipeName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".hcl")
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
}
