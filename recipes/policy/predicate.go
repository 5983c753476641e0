package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// PredicateSource is one predicate: a condition on outputs.
type PredicateSource struct {
	Name string
	// Source is an expression over output, source and channel, or a function of an object
	// with these: (event) => …
	Source  string
	File    string // where Source is, for errors
	Line    int    // of its first line; 0 means 1
	Timeout time.Duration
}

// predicate is one compiled predicate. It implements [deploy.Predicate].
type predicate struct {
	*compiled
	*pool
}

var _ deploy.Predicate = (*predicate)(nil)

// NewPredicates compiles predicates. It reports every invalid script.
func NewPredicates(sources []PredicateSource) (map[string]deploy.Predicate, []*ScriptError) {
	out := map[string]deploy.Predicate{}
	runtimes := newPool(len(sources))
	var faults []*ScriptError
	for n, s := range sources {
		c, fault := compilePredicate(s, n)
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		out[s.Name] = &predicate{&c, runtimes}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return out, nil
}

// An expression becomes the body of a function. The closing bracket is on its own line,
// because the expression may end with a comment.
const (
	predicateHead = "({output, source, channel}) => ("
	predicateTail = "\n)"
)

const oneCondition = "Write an expression such as output.status === 'done', or one function: (event) => …"

// compilePredicate checks that a script is one expression.
func compilePredicate(s PredicateSource, index int) (compiled, *ScriptError) {
	c := newCompiled(Policy{Name: s.Name, Source: s.Source, File: s.File, Line: s.Line, Timeout: s.Timeout}, index)
	fault := c.checkSize()
	if fault == nil {
		fault = c.compileCondition(strings.TrimRight(s.Source, "; \t\r\n"))
	}
	return c, fault
}

func (c *compiled) compileCondition(source string) *ScriptError {
	if strings.HasPrefix(strings.TrimSpace(source), "function") {
		c.before = 1
		return c.compile("(" + source + "\n)")
	}
	tree, err := parser.ParseFile(nil, c.Name, source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return c.syntaxError(err)
	}
	if len(tree.Body) != 1 {
		return c.fault(1, 1, "the script is not one expression", oneCondition)
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return c.fault(1, 1, "the script is not one expression", oneCondition)
	}
	if _, isFunction := statement.Expression.(*ast.ArrowFunctionLiteral); isFunction {
		return c.compile(source)
	}
	c.before = len(predicateHead)
	return c.compile(predicateHead + source + predicateTail)
}

// Holds implements [deploy.Predicate]. It blocks while the script runs, for at most its
// timeout.
func (p *predicate) Holds(ctx context.Context, event *deploy.OutputEvent) (holds bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("the caller cancelled: %w", err)
	}
	i, err := p.acquire()
	if err != nil {
		return false, err
	}
	call := func(f goja.Callable, ctx goja.Value) (goja.Value, error) {
		shown, err := i.showOutput(event)
		if err != nil {
			return nil, err
		}
		return f(goja.Undefined(), shown, ctx)
	}
	read := func(result goja.Value) (fault *ScriptError) {
		holds, fault = condition(p.compiled, result)
		return fault
	}
	fault := i.run(p.compiled, event.Time, event.Seed, call, read)
	if !i.spoilt {
		p.release(i)
	}
	if fault != nil {
		return false, fault
	}
	return holds, nil
}

// condition reads a predicate's answer. A missing value is not an error, so that
// output.error?.fatal works as expected.
func condition(p *compiled, result goja.Value) (bool, *ScriptError) {
	if goja.IsUndefined(result) || goja.IsNull(result) {
		return false, nil
	}
	if _, object := result.(*goja.Object); object {
		return false, p.fault(1, 1, "it returned an object instead of true or false", "Compare it with something.")
	}
	if holds, ok := result.Export().(bool); ok {
		return holds, nil
	}
	return false, p.fault(1, 1, fmt.Sprintf("it returned %s instead of true or false", clip(result.String())), "Compare it with something.")
}

var errOutputTooLarge = misuse{errors.New("the output is larger than a predicate may read")}

// showOutput makes the argument of a predicate: the output is decoded JSON, or else a
// text, or null if it is not text either.
func (i *isolate) showOutput(event *deploy.OutputEvent) (goja.Value, error) {
	if len(event.Output) > maxText {
		return nil, errOutputTooLarge
	}
	output := goja.Null()
	if utf8.Valid(event.Output) {
		text := string(event.Output)
		if output = i.vm.ToValue(text); json.Valid(event.Output) {
			parsed, err := i.decode(text, false)
			if err != nil {
				return nil, err
			}
			output = parsed
		}
	}
	shown := i.vm.NewObject()
	for _, field := range []struct {
		name  string
		value any
	}{{"output", output}, {"source", event.Source}, {"channel", event.Channel}} {
		if err := shown.Set(field.name, field.value); err != nil {
			return nil, err
		}
	}
	return shown, nil
}
