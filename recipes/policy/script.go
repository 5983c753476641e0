package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/unhurried"
)

// MaxSourceBytes bounds a script, and thereby its nesting and the stack that the parser
// needs.
const MaxSourceBytes = 32 << 10

// ScriptError is a mistake in a script, with its place in File.
type ScriptError struct {
	Policy  string
	On      journal.PolicyKind // the event of the policy; policies on different events can have the same name
	File    string
	Line    int
	Column  int
	Message string
	Remedy  string // may be empty
}

// Error returns "file:line:column: message".
func (e *ScriptError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// compiled is a compiled policy.
type compiled struct {
	Policy
	index    int
	program  *goja.Program
	seed     uint64
	channels map[string]bool // nil means all
	parties  map[string]bool // addresses and species that it judges; nil means all
	memory   string          // the key of its state
	// before is how many characters precede the script on the first line of the parsed
	// source.
	before int
}

func (c *compiled) word(reason string, line int) deploy.Verdict {
	return deploy.Verdict{Policy: c.Name, Reason: reason, Where: fmt.Sprintf("%s:%d", c.File, line)}
}

// compile checks that a script is just one function.
func compile(p Policy, index int) (compiled, *ScriptError) {
	c := newCompiled(p, index)
	if fault := c.checkSize(); fault != nil {
		return c, fault
	}
	source := p.Source
	if strings.HasPrefix(strings.TrimSpace(source), "function") {
		// In brackets a function is an expression, and needs no name.
		source, c.before = "("+strings.TrimRight(source, "; \t\r\n")+"\n)", 1
	}
	fault := c.compile(source)
	return c, fault
}

// longest bounds the timeout of a script. Tests raise it, so that they do not depend on
// the speed of the machine.
var longest = MaxTimeout

func newCompiled(p Policy, index int) compiled {
	if p.Line == 0 {
		p.Line = 1
	}
	if p.On == "" {
		p.On = journal.JudgeSend
	}
	if p.Timeout <= 0 {
		p.Timeout = DefaultTimeout
	}
	if p.Timeout == DefaultTimeout {
		p.Timeout = max(p.Timeout, unhurried.Policies)
	}
	p.Timeout = min(p.Timeout, max(longest, unhurried.Policies))
	c := compiled{Policy: p, index: index, seed: hash(p.Name), memory: string(p.On) + "." + p.Name}
	if p.Channels != nil {
		c.channels = map[string]bool{}
		for _, address := range p.Channels {
			c.channels[address] = true
		}
	}
	if p.Creatures != nil || p.Species != nil {
		c.parties = map[string]bool{}
		for _, name := range slices.Concat(p.Creatures, p.Species) {
			c.parties[name] = true
		}
	}
	return c
}

// checkSize refuses scripts that would take the parser too long.
func (c *compiled) checkSize() *ScriptError {
	if len(c.Source) > MaxSourceBytes {
		return c.fault(1, 1, fmt.Sprintf("the script has %d bytes; at most %d are allowed", len(c.Source), MaxSourceBytes), "")
	}
	if line, why := tooDeep(c.Source); line > 0 {
		return c.fault(line, 1, why, "")
	}
	return nil
}

func (c *compiled) compile(source string) *ScriptError {
	tree, err := parser.ParseFile(nil, c.Name, source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return c.syntaxError(err)
	}
	if fault := c.checkTree(tree); fault != nil {
		return fault
	}
	matching(c.Timeout, func() { c.program, err = goja.CompileAST(tree, true) })
	if err != nil {
		return c.syntaxError(err)
	}
	return nil
}

// fault returns a mistake at a position in the parsed source.
func (c *compiled) fault(line, column int, message, remedy string) *ScriptError {
	if line == 1 {
		column = max(column-c.before, 1)
	}
	return &ScriptError{Policy: c.Name, On: c.On, File: c.File, Line: c.Line + max(line, 1) - 1, Column: column, Message: message, Remedy: remedy}
}

func (c *compiled) syntaxError(err error) *ScriptError {
	var list parser.ErrorList
	var compileErr *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		return c.fault(list[0].Position.Line, list[0].Position.Column, list[0].Message, "")
	case errors.As(err, &compileErr):
		line, column := 1, 1
		if compileErr.File != nil {
			p := compileErr.File.Position(compileErr.Offset)
			line, column = p.Line, p.Column
		}
		return c.fault(line, column, compileErr.Message, "")
	default:
		return c.fault(1, 1, err.Error(), "")
	}
}

const oneFunction = "Write one function: (event, ctx) => { … }. Declare everything it needs inside it."

func (c *compiled) checkTree(tree *ast.Program) *ScriptError {
	tree.Body = slices.DeleteFunc(tree.Body, func(s ast.Statement) bool {
		_, empty := s.(*ast.EmptyStatement)
		return empty
	})
	if len(tree.Body) != 1 {
		return c.fault(1, 1, "the script is not one function", oneFunction)
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return c.fault(1, 1, "the script is not one function", oneFunction)
	}
	var async, generator bool
	switch f := statement.Expression.(type) {
	case *ast.ArrowFunctionLiteral:
		async = f.Async
	case *ast.FunctionLiteral:
		async, generator = f.Async, f.Generator
	default:
		return c.fault(1, 1, "the script is not one function", oneFunction)
	}
	if async || generator {
		return c.fault(1, 1, "a decision cannot wait: the function is async or a generator", "Write a plain function.")
	}
	return c.review(tree)
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
