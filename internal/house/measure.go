package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/seed47132306/terrarium"

// longFunction is the number of lines above which a function usually has two ideas.
const longFunction = 80

// figures are what was measured of a package.
type figures struct {
	path         string
	lines        int
	declarations int
	declared     int // lines of declarations
	knot         knot

	methods, fields map[string]int // by type
	exported        int            // types
	locks           int            // comments that state one
	mutationLocks   int            // of those
	long            int            // functions
}

// share is how much of the declarations' lines are in the knot, in per cent.
func (f *figures) share() int { return f.knot.lines * 100 / max(f.declared, 1) }

// largest is the largest of some numbers with its name.
func largest(numbers map[string]int) string {
	name := ""
	for other, n := range numbers {
		if name == "" || n > numbers[name] || n == numbers[name] && other < name {
			name = other
		}
	}
	if numbers[name] == 0 {
		return "0"
	}
	return fmt.Sprintf("%d %s", numbers[name], name)
}

// room is the path of a package below the module.
func room(path string) string { return strings.TrimPrefix(path, module+"/") }

// measure measures the packages that match in a folder, the longest first.
func measure(ctx context.Context, dir string, patterns ...string) ([]*figures, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	var list []*figures
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		if generated(p) {
			continue
		}
		f, err := measurePackage(p)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *figures) int { return cmp.Or(b.lines-a.lines, cmp.Compare(a.path, b.path)) })
	return list, nil
}

// generated reports whether all files of a package are generated.
func generated(p *packages.Package) bool {
	byHand := func(f *ast.File) bool { return !ast.IsGenerated(f) }
	return len(p.Syntax) > 0 && !slices.ContainsFunc(p.Syntax, byHand)
}

func measurePackage(p *packages.Package) (*figures, error) {
	f := &figures{path: p.PkgPath, methods: map[string]int{}, fields: map[string]int{}}
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredFiles) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f.lines += bytes.Count(b, []byte("\n"))
	}
	graph := newReferences(p)
	f.declarations, f.declared = len(graph.declarations), graph.lines()
	f.knot = graph.knot()
	for _, file := range p.Syntax {
		f.addLocks(file)
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && p.Fset.Position(fn.End()).Line-p.Fset.Position(fn.Pos()).Line+1 > longFunction {
				f.long++
			}
		}
	}
	f.addTypes(p)
	return f, nil
}

// addTypes counts the methods and fields of the types of a package.
func (f *figures) addTypes(p *packages.Package) {
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		t, ok := scope.Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		if t.Exported() {
			f.exported++
		}
		if named, ok := t.Type().(*types.Named); ok && !t.IsAlias() {
			f.methods[name] = named.NumMethods()
			if i, ok := named.Underlying().(*types.Interface); ok {
				f.methods[name] = i.NumMethods()
			}
		}
	}
	for _, file := range p.Syntax {
		for _, d := range file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.StructType); ok {
					name := nameOf(d, s)
					f.fields[name] = max(f.fields[name], s.Fields.NumFields())
				}
				return true
			})
		}
	}
}

// nameOf is the name of the declaration that contains a struct.
func nameOf(d ast.Decl, s *ast.StructType) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if spec.Pos() > s.Pos() || s.Pos() >= spec.End() {
				continue
			}
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				return spec.Name.Name
			case *ast.ValueSpec:
				return spec.Names[0].Name
			}
		}
	}
	return "struct"
}

// held matches what a comment says of a lock that the caller has, or that is taken meanwhile.
var held = regexp.MustCompile(`(?i)\b(holds?|holding|has entered|under)( [\w']+){0,5} (mu|mutex|locks?|critical sections?)\b` +
	`|\b(mu|mutex|lock|critical section)( of( [\w']+){1,4})? (the caller holds|is held|held|entered)\b`)

// addLocks counts the comments of a file that state a lock. The comment of the package does
// not count: it explains how locks are used.
func (f *figures) addLocks(file *ast.File) {
	for _, group := range file.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if group == file.Doc || !held.MatchString(text) {
			continue
		}
		f.locks++
		if strings.Contains(text, "mutation lock") {
			f.mutationLocks++
		}
	}
}
