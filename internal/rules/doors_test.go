package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// throughTheDoor lists the functions of os that sqlitestore must not use on
// the files of a session directory: internal/files has one for each.
var throughTheDoor = []string{"Open", "OpenFile", "OpenRoot", "Create", "CreateTemp", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Truncate",
	"WriteFile", "ReadFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp", "Chmod", "Stat", "Lstat", "DirFS", "CopyFS"}

// besideTheDoor lists the calls that do not concern the files of a session
// directory, by file.
var besideTheDoor = map[string][]string{
	"internal/catalog/acknowledged.go": {"ReadFile"},                                             // the number of the machine's start
	"unfinished_dir.go":                {"MkdirTemp", "RemoveAll", "ReadDir", "Lstat", "Remove"}, // directories of our own beside a place that the caller has named
	"destination.go":                   {"Lstat", "ReadDir", "Stat", "Chmod", "Remove"},          // that place
	"directory.go":                     {"Stat", "MkdirAll"},                                     // the directory itself, which the caller has named
	"foreign.go":                       {"Stat"},                                                 // the same
	"internal/failpoint/failpoint.go":  {"Rename", "Link"},                                       // from aside to that place
}

func TestSessionFilesGoThroughOneDoor(t *testing.T) {
	dir := filepath.Join(root(t), "sqlitestore")
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) < 50 {
		t.Fatal(len(paths), err)
	}
	inner, err := filepath.Glob(filepath.Join(dir, "internal", "*", "*.go"))
	if err != nil || len(inner) < 10 {
		t.Fatal(len(inner), err)
	}
	paths = append(paths, inner...)
	used := map[string][]string{}
	set := token.NewFileSet()
	for _, path := range paths {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/files/") || strings.HasPrefix(name, "internal/losevfs/") {
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

// ofTheCatalogue matches statements about tables that only the catalogue has.
var ofTheCatalogue = regexp.MustCompile(`(?i)\b(FROM|INTO|UPDATE|JOIN|TABLE)\s+(cut|hydration|leftover|mark|trait)\b`)

// TestOnlyTheCatalogueKnowsItsTables ensures that no other package has SQL for
// them.
func TestOnlyTheCatalogueKnowsItsTables(t *testing.T) {
	own := 0
	for path, content := range sources(t, ".go") {
		if !strings.HasPrefix(path, "sqlitestore"+string(filepath.Separator)) || strings.HasSuffix(path, "_test.go") {
			continue
		}
		within := filepath.Dir(path) == filepath.Join("sqlitestore", "internal", "catalog")
		for _, at := range ofTheCatalogue.FindAll(content, -1) {
			if own++; !within {
				t.Errorf("%s has %q; SQL against the catalogue is for sqlitestore/internal/catalog", path, at)
			}
		}
	}
	if own < 10 {
		t.Errorf("only %d statements about the catalogue were found", own)
	}
}
