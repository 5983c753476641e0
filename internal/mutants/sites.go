package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// site is a place where one operator can be exchanged.
type site struct {
	file   string
	line   int
	offset int // of the operator, in bytes
	from   string
	to     string
}

func (s *site) String() string {
	return fmt.Sprintf("%s:%d: %s becomes %s", s.file, s.line, s.from, s.to)
}

// others says what each operator becomes: the one that is most easily mistaken for it.
var others = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.ADD,
	token.INC: token.DEC, token.DEC: token.INC,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.AND: token.OR, token.OR: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
}

// sitesOf returns the sites in the files of a package that are built on this machine and
// are not tests, in order.
func sitesOf(dir string) (out []site, err error) {
	pkg, err := build.Default.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	for _, name := range append(pkg.GoFiles, pkg.CgoFiles...) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := sitesIn(path, text)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func sitesIn(path string, text []byte) (out []site, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(at token.Pos, op token.Token) {
		if to, known := others[op]; known {
			p := set.Position(at)
			out = append(out, site{path, p.Line, p.Offset, op.String(), to.String()})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op != token.ADD || !isText(n.X) && !isText(n.Y) {
				add(n.OpPos, n.Op)
			}
		case *ast.IncDecStmt:
			add(n.TokPos, n.Tok)
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && !isText(n.Rhs[0]) {
				add(n.TokPos, n.Tok)
			}
		}
		return true
	})
	return out, nil
}

// isText reports whether an operand is certainly a string, from which nothing can be
// subtracted.
func isText(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING
	case *ast.BinaryExpr:
		return x.Op == token.ADD && (isText(x.X) || isText(x.Y))
	}
	return false
}

// mutate returns the file with the operator exchanged.
func (s *site) mutate(text []byte) (string, error) {
	if !strings.HasPrefix(string(text[min(s.offset, len(text)):]), s.from) {
		return "", fmt.Errorf("%v: the file has changed", s)
	}
	return string(text[:s.offset]) + s.to + string(text[s.offset+len(s.from):]), nil
}
