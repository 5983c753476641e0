package policy

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"
	"github.com/dop251/goja/unistring"

	"github.com/seed47132306/terrarium/internal/near"
)

// Functions that scripts cannot name. The compiler of scripts inserts calls of them where
// the language makes large values from small ones.
const (
	boundedText = "%text" // for the result of an addition or a template
	boundedOwn  = "%own"  // for an operand that is spread into an object
)

// review walks once through the syntax of a script. It refuses features that policies may
// not use, bounds operations that make texts longer, and collects names.
type review struct {
	script   *compiled
	tree     *ast.Program
	seen     map[uintptr]bool
	declared map[string]bool
	used     []*ast.Identifier
	patterns int // the total weight of the patterns
	fault    *ScriptError
}

// review checks and rewrites a script.
func (c *compiled) review(tree *ast.Program) *ScriptError {
	r := &review{script: c, tree: tree, seen: map[uintptr]bool{}, declared: map[string]bool{"arguments": true}}
	r.walk(reflect.ValueOf(tree.Body))
	if r.fault == nil {
		r.unknownNames()
	}
	return r.fault
}

func (r *review) refuse(at file.Idx, message, remedy string) {
	if r.fault == nil {
		p := r.tree.File.Position(int(at) - 1)
		r.fault = r.script.fault(p.Line, p.Column, message, remedy)
	}
}

func (r *review) walk(v reflect.Value) {
	if r.fault != nil {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		r.walk(v.Elem())
		if e, ok := v.Interface().(ast.Expression); ok && v.CanSet() {
			if bounded := bounded(e); bounded != nil {
				v.Set(reflect.ValueOf(bounded))
			}
		}
	case reflect.Pointer:
		if v.IsNil() || r.seen[v.Pointer()] {
			return
		}
		r.seen[v.Pointer()] = true
		if v.Elem().Kind() == reflect.Struct && strings.HasSuffix(v.Elem().Type().PkgPath(), "goja/ast") && r.visit(v.Interface()) {
			r.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				r.walk(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.walk(v.Index(i))
		}
	}
}

// visit checks one node. It reports whether to visit its children.
func (r *review) visit(node any) bool {
	switch n := node.(type) {
	case *ast.NumberLiteral:
		if _, isBig := n.Value.(*big.Int); isBig {
			// Arithmetic with big integers is one step, however large they are.
			r.refuse(n.Idx, "big integers are not available to policies", "Use a number.")
		}
		return false
	case *ast.RegExpLiteral:
		if r.patterns += weigh(n.Pattern); r.patterns > maxPattern {
			r.refuse(n.Idx, fmt.Sprintf("the patterns of the script have more than %d steps, counting repetitions", maxPattern), "Use fewer repetitions.")
		}
		return false
	case *ast.Identifier:
		r.used = append(r.used, n)
		return false
	case *ast.PropertyShort:
		r.used = append(r.used, &n.Name)
	case *ast.Binding:
		r.declare(n.Target)
	case *ast.ParameterList:
		r.declare(n.Rest)
	case *ast.CatchStatement:
		r.declare(n.Parameter)
	case *ast.ForDeclaration:
		r.declare(n.Target)
	case *ast.FunctionLiteral:
		if r.name(n.Name); n.Generator || n.Async {
			// Generators nest without a bound, and stopping them takes time in proportion
			// to the depth.
			r.refuse(n.Function, "generators and async functions are not available to policies", "Write a plain function that collects its results in a list.")
		}
	case *ast.ArrowFunctionLiteral:
		if n.Async {
			r.refuse(n.Start, "generators and async functions are not available to policies", "Write a plain function.")
		}
	case *ast.ClassLiteral:
		r.name(n.Name)
	case *ast.ObjectPattern:
		if n.Rest != nil {
			// For a text, each character would become a property, in one step.
			r.refuse(n.Rest.Idx0(), "the rest of an object cannot be destructured", "Destructure the fields by name, or copy the object: {...value}.")
		}
	case *ast.LabelledStatement:
		r.walk(reflect.ValueOf(&n.Statement).Elem())
		return false // a label is not the name of a value
	case *ast.BranchStatement, *ast.MetaProperty:
		return false
	case *ast.UnaryExpression:
		_, bare := n.Operand.(*ast.Identifier)
		return n.Operator != token.TYPEOF || !bare // typeof may test whether a name exists
	}
	return true
}

func (r *review) name(id *ast.Identifier) {
	if id != nil {
		r.declared[id.Name.String()] = true
	}
}

// declare collects the names that a pattern binds.
func (r *review) declare(target any) {
	switch t := target.(type) {
	case *ast.Identifier:
		r.name(t)
	case *ast.ArrayPattern:
		for _, e := range t.Elements {
			r.declare(e)
		}
		r.declare(t.Rest)
	case *ast.ObjectPattern:
		for _, p := range t.Properties {
			switch p := p.(type) {
			case *ast.PropertyShort:
				r.name(&p.Name)
			case *ast.PropertyKeyed:
				r.declare(p.Value)
			}
		}
		r.declare(t.Rest)
	case *ast.AssignExpression: // with a default
		r.declare(t.Left)
	}
}

// bounded wraps an expression that may make a text longer in a call of the function that
// bounds it; nil for other expressions.
func bounded(e ast.Expression) ast.Expression {
	call := func(name string, of ast.Expression) ast.Expression {
		at := of.Idx0()
		return &ast.CallExpression{
			Callee: &ast.Identifier{Name: unistring.NewFromString(name), Idx: at}, LeftParenthesis: at,
			ArgumentList: []ast.Expression{of}, RightParenthesis: at,
		}
	}
	switch n := e.(type) {
	case *ast.BinaryExpression:
		if n.Operator == token.PLUS && !isNumber(n.Left) && !isNumber(n.Right) {
			return call(boundedText, e)
		}
	case *ast.AssignExpression:
		if n.Operator == token.PLUS {
			return call(boundedText, e)
		}
	case *ast.TemplateLiteral:
		if n.Tag == nil && len(n.Expressions) > 0 {
			return call(boundedText, e)
		}
	case *ast.ObjectLiteral:
		for _, p := range n.Value {
			if s, ok := p.(*ast.SpreadElement); ok {
				s.Expression = call(boundedOwn, s.Expression)
			}
		}
	}
	return nil
}

func isNumber(e ast.Expression) bool {
	_, is := e.(*ast.NumberLiteral)
	return is
}

// unknownNames refuses undefined names, which are mostly typing errors. It ignores
// scopes: a name is known if the script declares it anywhere.
func (r *review) unknownNames() {
	globals := globalNames()
	for _, id := range r.used {
		name := id.Name.String()
		if name == "undefined" || r.declared[name] || slices.Contains(globals, name) {
			continue
		}
		remedy := "Declare it in the function, or remove it. Scripts can use the functions of the language that need no files, no network and no clock."
		if like := likeliest(name, slices.AppendSeq(slices.Clone(globals), maps.Keys(r.declared))); like != "" {
			remedy = fmt.Sprintf("Did you mean %s?", like)
		}
		r.refuse(id.Idx, fmt.Sprintf("%q is not defined", clip(name)), remedy)
		return
	}
}

// likeliest returns the most similar name, or "".
func likeliest(name string, candidates []string) string {
	slices.Sort(candidates)
	best, least := "", len(name)/3+2
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := near.Distance(name, c); d < least && d < len(c) {
			best, least = c, d
		}
	}
	return best
}
