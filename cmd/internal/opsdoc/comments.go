package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// comments holds the comments of types and fields in the source, by "Type" and
// "Type.Field".
type comments map[string]string

// readComments reads the sources of packages. If several packages have a type of the
// same name, the first one counts.
func readComments(root string, packages ...string) (comments, error) {
	out := comments{}
	for _, p := range packages {
		dir := filepath.Join(root, p)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			out.add(file)
		}
	}
	return out, nil
}

func (c comments) add(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok {
			return true
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			c.note(spec.Name.Name, doc)
			if st, ok := spec.Type.(*ast.StructType); ok {
				c.addFields(spec.Name.Name, st)
			}
		}
		return true
	})
}

func (c comments) addFields(name string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		for _, id := range f.Names {
			c.note(name+"."+id.Name, f.Doc)
			c.note(name+"."+id.Name, f.Comment)
		}
	}
}

func (c comments) note(key string, group *ast.CommentGroup) {
	if group == nil || c[key] != "" {
		return
	}
	c[key] = strings.TrimSuffix(strings.TrimSpace(group.Text()), "\n")
}
