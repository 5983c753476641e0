package recipes

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// findings are the findings about a recipe and its sub-recipes, and the texts that they
// quote.
type findings struct {
	diags  Diagnostics
	extra  map[string][]byte // the files that messages can quote, by displayed name
	hidden []hiddenText      // where files give values to sensitive variables
}

// reporter reports the findings about one recipe.
type reporter struct {
	*findings
	instantiation
	dir string // the prefix of the recipe's folder, from the outermost one
}

// add adds a finding. Sorting and removal of duplicates come last.
func (fs *findings) add(d Diagnostic) {
	if d.Severity == 0 {
		d.Severity = Error
	}
	fs.diags = append(fs.diags, d)
}

// report adds a finding at a place.
func (rep *reporter) report(s scope, r hcl.Range, d Diagnostic) { rep.add(rep.at(s, r, d)) }

// noteFailed notes that the last finding is a condition of a variable or a check that is
// false, which a test can expect.
func (rep *reporter) noteFailed(address string) {
	rep.diags[len(rep.diags)-1].failed = rep.prefix + address
}

// at sets the place of a finding.
func (rep *reporter) at(s scope, r hcl.Range, d Diagnostic) Diagnostic {
	d.Block = rep.blockTitle(s.title)
	d.Range = rangeOf(r)
	d.Snippet = rep.snippet(r)
	return d
}

// where returns a place as file and line, as stores keep it.
func (rep *reporter) where(r hcl.Range) string {
	return fmt.Sprintf("%s:%d", rep.dir+filepath.Base(r.Filename), r.Start.Line)
}

var didYouMean = regexp.MustCompile(`\s*Did you mean "([^"]*)"\??\.?`)

// hcl adds a finding of the HCL library.
func (rep *reporter) hcl(t string, h *hcl.Diagnostic) {
	d := Diagnostic{Summary: h.Summary, Detail: h.Detail, Severity: Error}
	if h.Severity == hcl.DiagWarning {
		d.Severity = Warning
	}
	if m := didYouMean.FindStringSubmatch(d.Detail); m != nil {
		d.Suggestion = m[1]
		d.Detail = strings.Replace(d.Detail, m[0], "", 1)
	}
	if involvesSensitive(h) {
		d.Detail, d.Suggestion = "The reason is not shown because it involves a sensitive value.", ""
	}
	d.Detail = labels(unmask.Replace(d.Detail))
	if h.Subject != nil {
		d = rep.at(scope{title: t}, *h.Subject, d)
	}
	if h.Expression != nil && h.EvalContext != nil {
		d.Values = valuesOf(h.Expression, h.EvalContext)
		if d.Suggestion == "" {
			d.Suggestion = meantStep(h)
		}
	}
	if d.Remedy == "" {
		d.Remedy = remedyFor(h.Summary)
	}
	rep.add(d)
}

var (
	labelsMissing = regexp.MustCompile(`^All (\S+) blocks must have \d+ labels \(([^)]*)\)\.$`)
	labelsTooMany = regexp.MustCompile(`^Only \d+ labels \(([^)]*)\) are expected for (\S+) blocks\.$`)
)

// labels words a finding about the labels of a block for any number of them.
func labels(detail string) string {
	if m := labelsMissing.FindStringSubmatch(detail); m != nil {
		return fmt.Sprintf("A block %s has %s.", m[1], labelled(m[2]))
	}
	if m := labelsTooMany.FindStringSubmatch(detail); m != nil {
		return fmt.Sprintf("A block %s has only %s.", m[2], labelled(m[1]))
	}
	return detail
}

func labelled(names string) string {
	list := strings.Split(names, ", ")
	if len(list) == 1 {
		return "one label, the " + names
	}
	return fmt.Sprintf("%d labels, the %s", len(list), strings.Join(list, " and the "))
}

// involvesSensitive reports whether the text of a finding could quote a sensitive value,
// because functions quote their arguments.
func involvesSensitive(h *hcl.Diagnostic) bool {
	if h.Expression == nil || h.EvalContext == nil {
		return false
	}
	for _, t := range h.Expression.Variables() {
		if contextOf(h.EvalContext, t.RootName()) == nil {
			continue
		}
		if _, v := reachable(t, h.EvalContext); v != cty.NilVal && v.ContainsMarked() {
			return true
		}
	}
	return false
}

// remedies are for findings of the HCL library that do not say what to do.
var remedies = map[string]string{
	"Unsupported block type":                   "",
	"Missing name for creature":                `Name it: creature "reader" { … }.`,
	"Missing name for channel":                 `Name it: channel "tasks" { … }.`,
	"Missing required argument":                "Add it.",
	"Invalid index":                            "Use a key that exists, or lookup(…) with a default.",
	"Attempt to get attribute from null value": "Give the value, or use try(…) with a default.",
	"Attempt to index null value":              "Give the value, or use try(…) with a default.",
}

func remedyFor(summary string) string {
	remedy, known := remedies[summary]
	switch {
	case known:
	case strings.HasPrefix(summary, "Missing ") && strings.Contains(summary, " for "):
		remedy = "Write it in quotes, before the opening brace."
	case strings.HasPrefix(summary, "Extraneous label for "):
		remedy = "Remove the label."
	}
	return remedy
}

// meantStep finds the step at which a traversal fails, and suggests the intended name.
func meantStep(h *hcl.Diagnostic) string {
	for _, t := range h.Expression.Variables() {
		ctx := contextOf(h.EvalContext, t.RootName())
		if ctx == nil {
			continue
		}
		v := ctx.Variables[t.RootName()]
		for _, step := range t[1:] {
			next, diags := step.TraversalStep(v)
			if diags.HasErrors() {
				return nearest(stepName(step), keysOf(v))
			}
			v = next
		}
	}
	return ""
}

func stepName(step hcl.Traverser) string {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString()
		}
	}
	return ""
}

func keysOf(v cty.Value) []string {
	v, marks := v.Unmark()
	if len(marks) > 0 || !v.IsKnown() || v.IsNull() {
		return nil
	}
	var keys []string
	switch ty := v.Type(); {
	case ty.IsObjectType():
		for name := range ty.AttributeTypes() {
			keys = append(keys, name)
		}
	case ty.IsMapType():
		for name := range v.AsValueMap() {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}

func contextOf(ctx *hcl.EvalContext, name string) *hcl.EvalContext {
	for ; ctx != nil; ctx = ctx.Parent() {
		if _, ok := ctx.Variables[name]; ok {
			return ctx
		}
	}
	return nil
}

// valuesOf returns the values of the traversals in an expression.
func valuesOf(expr hcl.Expression, ctx *hcl.EvalContext) []Value {
	var out []Value
	for _, t := range expr.Variables() {
		if contextOf(ctx, t.RootName()) == nil {
			continue
		}
		if t, v := reachable(t, ctx); len(t) > 1 && v.IsWhollyKnown() {
			out = append(out, Value{Name: traversalText(t), Text: describe(v)})
		}
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out)
}

// reachable returns the longest part of a traversal that has a value, and the value.
func reachable(t hcl.Traversal, ctx *hcl.EvalContext) (hcl.Traversal, cty.Value) {
	for n := len(t); n > 1; n-- {
		if v, diags := t[:n].TraverseAbs(ctx); !diags.HasErrors() {
			return t[:n], v
		}
	}
	return nil, cty.NilVal
}

func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(step.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + step.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + describe(step.Key) + "]")
		default:
			b.WriteString("[*]")
		}
	}
	return b.String()
}

// maxShown bounds the part of a text that a message quotes.
const maxShown = 80

// describe returns a value itself if it is short, else its shape.
func describe(v cty.Value) string {
	switch {
	case v.ContainsMarked():
		return "sensitive"
	case v == cty.NilVal || !v.IsWhollyKnown():
		return "not known"
	case v.IsNull():
		return "null"
	}
	switch ty := v.Type(); {
	case ty == cty.String:
		text := []rune(v.AsString())
		if len(text) > maxShown {
			return fmt.Sprintf("%q and %d more characters", string(text[:maxShown]), len(text)-maxShown)
		}
		return fmt.Sprintf("%q", string(text))
	case ty == cty.Number && huge(v):
		return "a number that is too large, or too close to zero"
	case ty == cty.Number:
		return v.AsBigFloat().Text('g', -1)
	case ty == cty.Bool:
		return fmt.Sprint(v.True())
	case ty.IsObjectType():
		return describeObject(v)
	default:
		return describeCollection(v)
	}
}

func describeObject(v cty.Value) string {
	for _, kind := range []string{"channel", "creature", "species", "predicate"} {
		if address, ok := refAddress(v, kind); ok {
			return kind + " " + strings.TrimPrefix(address, kind+".")
		}
	}
	return "an object with " + describeKeys(keysOf(v), "attribute")
}

func describeKeys(keys []string, what string) string {
	switch len(keys) {
	case 0:
		return "no " + what + "s"
	case 1:
		return "the " + what + " " + keys[0]
	}
	return fmt.Sprintf("the %ss %s", what, enumerate(keys))
}

func describeCollection(v cty.Value) string {
	ty, n := v.Type(), v.LengthInt()
	switch {
	case ty.IsMapType():
		return "a map with " + describeKeys(keysOf(v), "key")
	case ty.IsSetType():
		return fmt.Sprintf("a set of %s", counted(n, "value"))
	default:
		return fmt.Sprintf("a list of %s", counted(n, "value"))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// snippet quotes the lines of a range.
func (fs *findings) snippet(r hcl.Range) []string {
	src, ok := fs.sourceOf(r.Filename)
	if !ok || r.Start.Line == 0 || r.Start.Byte > len(src) {
		return nil
	}
	from := bytes.LastIndexByte(src[:r.Start.Byte], '\n') + 1
	if veiled := fs.veiled(r.Filename, src); len(fs.hidden) > 0 { // where the line starts at another offset
		src, from = veiled, lineStart(veiled, r.Start.Line)
	}
	lines := firstLines(src[from:], min(max(r.End.Line-r.Start.Line, 0)+1, maxSnippetLines))
	n := len(lines)
	if n > 1 && r.End.Column <= 1 && r.End.Line-r.Start.Line+1 == n {
		n-- // the range ends with a newline
	}
	lines = lines[:n]
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// lineStart returns the offset of a line, counted from 1.
func lineStart(src []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(src[at:], '\n')
		if next < 0 {
			return len(src)
		}
		at += next + 1
	}
	return at
}

// firstLines returns a limited number of lines of a text as copies: a large recipe may
// have a finding on every line.
func firstLines(src []byte, most int) []string {
	var lines []string
	for line := range bytes.SplitSeq(src, []byte("\n")) {
		if lines = append(lines, string(line)); len(lines) >= most {
			break
		}
	}
	return lines
}

// sourceOf returns the text of a file by its displayed name.
func (fs *findings) sourceOf(shown string) ([]byte, bool) {
	src, ok := fs.extra[shown]
	return src, ok
}

func rangeOf(r hcl.Range) Range {
	return Range{File: r.Filename, Start: Pos(r.Start), End: Pos(r.End)}
}
