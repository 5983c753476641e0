package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// throughTheDoor are the functions of os by which sqlitestore must not touch the files
// of a session directory: internal/files has one for each.
var throughTheDoor = []string{"Open", "OpenFile", "OpenRoot", "Create", "CreateTemp", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Truncate",
	"WriteFile", "ReadFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp", "Chmod", "Stat", "Lstat", "DirFS", "CopyFS"}

// besideTheDoor are the calls that are not about the files of a session directory, by file.
var besideTheDoor = map[string][]string{
	"acknowledged.go":   {"ReadFile"},                                             // the number of the machine's start
	"unfinished_dir.go": {"MkdirTemp", "RemoveAll", "ReadDir", "Lstat", "Remove"}, // directories of our own beside a place that the caller has named
	"destination.go":    {"Lstat", "ReadDir", "Stat", "Chmod", "Remove"},          // that place
	"directory.go":      {"Stat", "MkdirAll"},                                     // the directory itself, which the caller has named
	"foreign.go":        {"Stat"},                                                 // the same
	"failpoints.go":     {"Rename", "Link"},                                       // from aside to that place
	"schema.go":         {"MkdirTemp", "RemoveAll", "WriteFile", "ReadFile"},      // a temporary directory for an empty file
}

func TestSessionFilesGoThroughOneDoor(t *testing.T) {
	dir := filepath.Join(root(t), "sqlitestore")
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) < 50 {
		t.Fatal(len(paths), err)
	}
	used := map[string][]string{}
	set := token.NewFileSet()
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selected, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selected.X.(*ast.Ident)
			if !ok || of.Name != "os" && of.Name != "ioutil" || !slices.Contains(throughTheDoor, selected.Sel.Name) {
				return true
			}
			used[name] = append(used[name], selected.Sel.Name)
			if !slices.Contains(besideTheDoor[name], selected.Sel.Name) {
				t.Errorf("%s: os.%s; files of session directories are for internal/files", set.Position(n.Pos()), selected.Sel.Name)
			}
			return true
		})
	}
	for name, calls := range besideTheDoor {
		for _, call := range calls {
			if !slices.Contains(used[name], call) {
				t.Errorf("%s does not call os.%s any more: take it off the list", name, call)
			}
		}
	}
}
