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

	"github.com/seed47132306/terrarium/engine/deploy"
)

// folder is the folder of a recipe. All reading goes through the os.Root, so that neither
// ".." nor a symbolic link leads out of it.
type folder struct {
	name  string // of the recipe: that of its only file, or of the folder
	shown string // as the caller wrote it, for messages
	abs   string
	root  *os.Root          // nil for a copy
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

func openRecipe(path string, limit int64, unsaved map[string][]byte) (*folder, []string, *Diagnostic) {
	isDir := false
	if info, err := os.Stat(path); err == nil {
		isDir = info.IsDir()
	} else if !hasUnsaved(unsaved, path) {
		return nil, nil, unreadable(path, err)
	}
	dir, names := path, []string(nil)
	if !isDir {
		dir, names = filepath.Dir(path), []string{filepath.Base(path)}
		if d := notARecipe(path, names[0]); d != nil {
			return nil, nil, d
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	if isDir {
		var d *Diagnostic
		if names, d = listRecipe(path, unsavedIn(unsaved, abs)); d != nil {
			return nil, nil, d
		}
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	name := filepath.Base(abs)
	if !isDir {
		name = recipeName(names[0])
	}
	f := &folder{name: name, shown: dir, abs: abs, root: root, limit: limit, unsaved: unsaved, read: map[string][]byte{}}
	if in, err := root.Stat("."); err == nil {
		f.noteOwner("its folder", in)
	}
	return f, names, nil
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

// testEnding is the end of the names of files with tests, before that of the language.
const testEnding = ".test"

// testFiles returns the names of the files with tests that belong to the recipe: all in its
// folder or, if the folder has other recipes too, those that are named after its file.
func (f *folder) testFiles(recipe []string) []string {
	if f.root == nil {
		return nil // a copy has none
	}
	entries, _ := fs.ReadDir(f.root.FS(), ".") // the recipe in it has been found
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

func listRecipe(path string, unsaved []string) (names []string, d *Diagnostic) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return recipesAmong(entries, path, unsaved)
}

// recipesAmong returns the names of the recipe's files in a folder, also of those that
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

func unreadable(path string, err error) *Diagnostic {
	d := &Diagnostic{Severity: Error, Summary: "Recipe cannot be read", Detail: sentence(cause(err)), Range: Range{File: path}}
	if !errors.Is(err, fs.ErrNotExist) {
		return d
	}
	d.Summary, d.Detail = "Recipe not found", fmt.Sprintf("There is no file or folder %q.", path)
	if to, err := os.Readlink(path); err == nil {
		d.Detail = fmt.Sprintf("%q is a link to %q, which does not exist.", path, to)
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
