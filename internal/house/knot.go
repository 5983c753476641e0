package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"
)

// declaration is what a package declares under one name of its own, or a method.
type declaration struct {
	from, to token.Pos // with its comment
	lines    int
	unit     int // of what cannot be separated by definition: a type and its methods
}

// references says which declarations of a package refer to which. Its nodes are
// units: a function, a value, or a type with its methods.
type references struct {
	declarations []declaration
	to           [][]int // by unit
}

// knot is a set of declarations that all reach each other.
type knot struct {
	lines, declarations int
}

func newReferences(p *packages.Package) *references {
	r := &references{}
	units := map[types.Object]int{}
	unit := func(obj types.Object) int {
		n, ok := units[obj]
		if obj == nil || !ok {
			n = len(r.to)
			r.to = append(r.to, nil)
			units[obj] = n
		}
		return n
	}
	add := func(n ast.Node, doc *ast.CommentGroup, unit int) {
		from := n.Pos()
		if doc != nil {
			from = doc.Pos()
		}
		lines := p.Fset.Position(n.End()).Line - p.Fset.Position(from).Line + 1
		r.declarations = append(r.declarations, declaration{from, n.End(), lines, unit})
	}
	for _, file := range p.Syntax {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(d, d.Doc, unit(subject(p.TypesInfo, d)))
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(within(d, spec), docOf(d, spec.Doc), unit(p.TypesInfo.Defs[spec.Name]))
					case *ast.ValueSpec:
						add(within(d, spec), docOf(d, spec.Doc), unit(p.TypesInfo.Defs[spec.Names[0]]))
					}
				}
			}
		}
	}
	slices.SortFunc(r.declarations, func(a, b declaration) int { return int(a.from - b.from) })
	for name, obj := range p.TypesInfo.Uses {
		if obj.Pkg() != p.Types {
			continue
		}
		from, to := r.at(name.Pos()), r.at(origin(obj).Pos())
		if from >= 0 && to >= 0 && from != to {
			r.to[from] = append(r.to[from], to)
		}
	}
	for name, s := range p.TypesInfo.Selections {
		// A field or method that comes from an embedded type is found through it.
		if from, to := r.at(name.Pos()), r.at(s.Obj().Pos()); s.Obj().Pkg() == p.Types && from >= 0 && to >= 0 && from != to {
			r.to[from] = append(r.to[from], to)
		}
	}
	return r
}

// subject is the type of a method, or the function itself.
func subject(info *types.Info, d *ast.FuncDecl) types.Object {
	f, ok := info.Defs[d.Name].(*types.Func)
	if !ok {
		return nil
	}
	if recv := f.Signature().Recv(); recv != nil {
		t := recv.Type()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			return named.Obj()
		}
	}
	return f
}

// origin is the declaration of what is used of a generic type.
func origin(obj types.Object) types.Object {
	switch o := obj.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return obj
}

// within is what a declaration of one name takes up: all of it, or its line of a block.
func within(d *ast.GenDecl, spec ast.Spec) ast.Node {
	if d.Lparen.IsValid() {
		return spec
	}
	return d
}

func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if d.Lparen.IsValid() {
		return own
	}
	return d.Doc
}

// at is the unit in which a position of the source is, or -1.
func (r *references) at(pos token.Pos) int {
	i, found := slices.BinarySearchFunc(r.declarations, pos, func(d declaration, pos token.Pos) int {
		switch {
		case d.to <= pos:
			return -1
		case d.from > pos:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return r.declarations[i].unit
}

// lines are those of all declarations.
func (r *references) lines() (n int) {
	for _, d := range r.declarations {
		n += d.lines
	}
	return n
}

// knot is the largest strongly connected component, by lines.
func (r *references) knot() (out knot) {
	component := components(r.to)
	knots := make([]knot, len(r.to))
	for _, d := range r.declarations {
		k := &knots[component[d.unit]]
		k.lines += d.lines
		k.declarations++
	}
	for _, k := range knots {
		if k.lines > out.lines {
			out = k
		}
	}
	return out
}

// components numbers the strongly connected components of a graph by Tarjan's
// algorithm, and returns the component of each node.
func components(to [][]int) []int {
	var stack []int
	next, count := 0, 0
	order, low, component := make([]int, len(to)), make([]int, len(to)), make([]int, len(to))
	for i := range to {
		order[i], component[i] = -1, -1
	}
	var visit func(n int)
	visit = func(n int) {
		order[n], low[n] = next, next
		next++
		stack = append(stack, n)
		for _, m := range to[n] {
			if order[m] < 0 {
				visit(m)
			}
			if component[m] < 0 {
				low[n] = min(low[n], low[m])
			}
		}
		if low[n] < order[n] {
			return
		}
		for at := -1; at != n; {
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
			component[at] = count
		}
		count++
	}
	for n := range to {
		if order[n] < 0 {
			visit(n)
		}
	}
	return component
}
