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

// closedSets lists the names of fields that have one of a few values.
var closedSets = []string{"Kind", "Reason", "MadeBy", "Effect", "State"}

// freeTexts lists the fields of such a name that hold any text, with their
// meaning.
var freeTexts = map[string]string{
	"engine/deploy.Verdict.Reason":        "what a policy's author wrote",
	"engine/journal.PolicyPayload.Reason": "the same, in the log",
	"recipes.TestDenial.Reason":           "the same, in a test",
	"operations.ApprovalRecord.Reason":    "the same, in a question",
	"engine/inspect.Decision.Reason":      "what an operator wrote",
	"operations.DecideArgs.Reason":        "the same, in an operation",
	"engine/journal.RecipeStop.Reason":    "counters in words",
	"engine/diff.StopPlan.Reason":         "the same, in a plan",
}

// TestKindsHaveTypes requires that a field with one of a few values has a type
// with constants, so that a value cannot be misspelt, or mistaken for a value
// of another field.
func TestKindsHaveTypes(t *testing.T) {
	seen := map[string]bool{}
	libraryFiles(t, func(room string, set *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() {
					continue
				}
				of, ok := spec.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range of.Fields.List {
					if of, ok := f.Type.(*ast.Ident); !ok || of.Name != "string" {
						continue
					}
					for _, name := range f.Names {
						field := room + "." + spec.Name.Name + "." + name.Name
						if seen[field] = true; freeTexts[field] == "" && slices.Contains(closedSets, name.Name) {
							t.Errorf("%s: %s is a bare string; give its values a type and constants", set.Position(f.Pos()), field)
						}
					}
				}
			}
		}
	})
	for field := range freeTexts {
		if !seen[field] {
			t.Errorf("there is no %s any more: take it off the list", field)
		}
	}
}

// libraryFiles calls f with every file, except tests, of every package that
// programs and other packages of the module import, by its path below the
// module.
func libraryFiles(t *testing.T, f func(room string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, p := range packages(t) {
		room := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if p.Name == "main" || strings.HasPrefix(room, "internal/") || strings.HasPrefix(room, "plugins") || strings.HasPrefix(room, "examples") {
			continue
		}
		set := token.NewFileSet()
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			f(room, set, file)
		}
	}
}
