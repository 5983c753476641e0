package generate

import (
	"bytes"
	_ "embed" // for the license
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// license is that of wasm2go, functions of which are part of what it generates.
//
//go:embed wasm2go.LICENSE
var license string

// access is the function through which translated code reads a table.
const access = `
// table_at returns an element of a table, and traps as the module would.
func table_at(table []any, index uint) any {
	if index >= uint(len(table)) || table[index] == nil {
		panic("invalid table access")
	}
	return table[index]
}
`

// checkTables completes the output of wasm2go. There, a call through a table panics in the
// same way for an index outside of the table as an access outside of the memory does, and
// for an empty element as for a function of another type. The result tells them apart.
func checkTables(code []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, CodeFile, code, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		assertion, ok := n.(*ast.TypeAssertExpr)
		if !ok {
			return true
		}
		if index, ok := assertion.X.(*ast.IndexExpr); ok {
			assertion.X = &ast.CallExpr{Fun: ast.NewIdent("table_at"), Args: []ast.Expr{index.X, index.Index}}
			found = true
		}
		return true
	})
	var b bytes.Buffer
	if err := format.Node(&b, files, file); err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(b.String(), "\n")
	out := head + "\n\n// The functions after those of the module are part of wasm2go:\n//\n" + commented(license) + "\n" + rest
	if found {
		out += access
	}
	return format.Source([]byte(out))
}

// commented returns a text as lines of a comment.
func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("// "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return b.String()
}
