package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// site is a place where one operator can be exchanged: an expression, or a statement.
type site struct {
	id         int // from 1, of those that are drawn
	pkg        string
	file       string
	line       int
	start, end int    // of the expression or statement, in bytes
	op         int    // offset of the operator
	result     string // type of the expression; empty: it is a statement
	from, to   string
}

func (s *site) String() string {
	name := s.file
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, name); err == nil {
			name = filepath.ToSlash(rel)
		}
	}
	return fmt.Sprintf("%s:%d: %s becomes %s", name, s.line, s.from, s.to)
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

// sitesOf returns the sites in the files of packages that are built on this machine and are
// not tests, in order. Operators between constants and between texts are not sites.
func sitesOf(ctx context.Context, dirs []string) (out []*site, err error) {
	pkgs, err := packages.Load(&packages.Config{
		Context: ctx,
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
	}, dirs...)
	if err != nil {
		return nil, err
	}
	for _, pkg := range pkgs {
		for _, e := range pkg.Errors {
			err = errors.Join(err, e)
		}
		for _, file := range pkg.Syntax {
			out = append(out, sitesIn(pkg.Fset, file, pkg.Types, pkg.TypesInfo)...)
		}
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: there is no operator", strings.Join(dirs, " "))
	}
	return out, err
}

// sitesIn returns the sites of a file.
func sitesIn(set *token.FileSet, file *ast.File, pkg *types.Package, info *types.Info) (out []*site) {
	add := func(n ast.Node, at token.Pos, op token.Token, result string) {
		to, known := others[op]
		if !known {
			return
		}
		p := set.Position(at)
		out = append(out, &site{
			pkg: pkg.Path(), file: p.Filename, line: p.Line, start: set.Position(n.Pos()).Offset, end: set.Position(n.End()).Offset, op: p.Offset,
			result: result, from: op.String(), to: to.String(),
		})
	}
	number := func(x ast.Expr) bool {
		basic, ok := info.TypeOf(x).Underlying().(*types.Basic)
		return ok && basic.Info()&types.IsNumeric != 0
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			name, ok := typeName(info.TypeOf(n), file, pkg, info)
			text := n.Op == token.ADD && !number(n)
			if constant := info.Types[n].Value != nil; ok && !constant && !text {
				add(n, n.OpPos, n.Op, name)
			}
		case *ast.IncDecStmt:
			add(n, n.TokPos, n.Tok, "")
		case *ast.AssignStmt:
			if _, known := others[n.Tok]; known && number(n.Lhs[0]) {
				add(n, n.TokPos, n.Tok, "")
			}
		}
		return true
	})
	return out
}

// typeName returns the name of a type as a file can write it. It is false if the file does
// not import the type's package.
func typeName(t types.Type, file *ast.File, pkg *types.Package, info *types.Info) (string, bool) {
	known := true
	name := types.TypeString(types.Default(t), func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		for _, i := range file.Imports {
			if of := info.PkgNameOf(i); of != nil && of.Imported() == other {
				return of.Name()
			}
		}
		known = false
		return other.Name()
	})
	return name, known
}

// mutate returns the text of a file in which each site chooses between its operators. Lines
// keep their numbers.
func mutate(text string, sites []*site) string {
	sites = slices.Clone(sites)
	slices.SortFunc(sites, func(a, b *site) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end // the outer one first
	})
	return render(text, 0, len(text), sites)
}

// render writes a part of the text, with the sites in it.
func render(text string, start, end int, sites []*site) string {
	var b strings.Builder
	at := start
	for i := 0; i < len(sites); i++ {
		s := sites[i]
		if s.start < at || s.end > end || s.start < start {
			continue // it is inside of one that is written, or elsewhere
		}
		inner := sites[i+1:]
		left, right := render(text, s.start, s.op, inner), render(text, s.op+len(s.from), s.end, inner)
		b.WriteString(text[at:s.start])
		if s.result == "" {
			fmt.Fprintf(&b, "func() { if mutantIs(%d) { %s%s%s } else { %s%s%s } }()", s.id, left, s.to, right, left, s.from, right)
		} else {
			fmt.Fprintf(&b, "func() %s { if mutantIs(%d) { return %s%s%s }; return %s%s%s }()", s.result, s.id, left, s.to, right, left, s.from, right)
		}
		at = s.end
	}
	b.WriteString(text[at:end])
	return b.String()
}

// choice is a file that every package with mutants gets.
const choice = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutantNow, _ = strconv.Atoi(os.Getenv("` + envMutant + `"))
var mutantReached = os.Getenv("` + envReached + `")
var mutantSeen [%d]atomic.Bool

func mutantIs(id int) bool {
	if mutantReached != "" && !mutantSeen[id].Load() && !mutantSeen[id].Swap(true) {
		if f, err := os.OpenFile(mutantReached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			f.WriteString(strconv.Itoa(id) + "\n")
			f.Close()
		}
	}
	return id == mutantNow
}
`

// The environment of a test: the mutant, and the file that gets what the test reaches.
const (
	envMutant  = "TERRARIUM_MUTANT"
	envReached = "TERRARIUM_MUTANT_REACHED"
)
