package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The state guarded by the engine's mutation lock is reached through the type
// that proves ownership: only lock.go names the lock, and makes a locked.
func TestTheMutationLockIsAType(t *testing.T) {
	files, err := filepath.Glob("../../engine/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	named := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		door := filepath.Base(name) == "lock.go"
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if n.Sel.Name != "mutation" {
					return true
				}
				if named++; !door {
					t.Errorf("%s: call lock or rlock", set.Position(n.Pos()))
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "locked" && !door {
					t.Errorf("%s: only lock and rlock make one", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if named == 0 {
		t.Error("nothing names the mutation lock: this rule looks for something that is not there")
	}
}
