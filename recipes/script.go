package recipes

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/seed47132306/terrarium/recipes/policy"
)

// script is the source of a policy and its place.
type script struct {
	in    *reporter
	title string
	text  string
	name  string         // of the file, in verdicts
	shown string         // of the file, in diagnostics
	line  int            // of the first line of text
	expr  hcl.Expression // the text in the recipe; nil for a file
	src   []byte         // of the whole file
}

// script finds the source of a policy, in the recipe or in a file.
func (sc *scripts) script(s scope, d *declaration) (*script, bool) {
	run, file := d.attr("run"), d.attr("file")
	switch {
	case run == nil && file == nil:
		remedy := "Add run = <<-JS … JS, or file = \"policies/NAME.js\"."
		if d.kind == "predicate" {
			remedy = `Add run = "output.status === 'done'", or file = "predicates/NAME.js".`
		}
		sc.report(s, d.at, Diagnostic{Summary: "No script", Detail: fmt.Sprintf("A %s needs a script.", d.kind), Remedy: remedy})
		return nil, false
	case run != nil && file != nil:
		sc.report(s, file.NameRange, Diagnostic{Summary: "Two scripts", Detail: fmt.Sprintf("A %s can have run or file, but not both.", d.kind), Remedy: "Remove one of them."})
		return nil, false
	case file != nil:
		return sc.scriptFile(s, d)
	}
	text, ok := literalJSON(run.Expr)
	if !ok {
		if text, ok = sc.stringAttr(s, d, "run"); !ok {
			return nil, false
		}
	}
	r := run.Expr.Range()
	out := &script{in: sc.reporter, title: d.title, text: text, name: sc.folder.prefix + filepath.Base(r.Filename), shown: r.Filename, line: r.Start.Line, expr: run.Expr}
	out.src, _ = sc.sourceOf(r.Filename)
	if out.heredoc() {
		out.line++ // the text begins on the next line
	}
	return out, true
}

// literalJSON returns a script in a JSON recipe. JSON has no heredocs, so such a text is
// not a template, and ${ has its JavaScript meaning.
func literalJSON(expr hcl.Expression) (string, bool) {
	if !isJSON(expr) {
		return "", false
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

func (s *script) heredoc() bool {
	if s.expr == nil {
		return false
	}
	at := s.expr.Range().Start.Byte
	return at+2 < len(s.src) && string(s.src[at:at+2]) == "<<"
}

// indent returns how many characters precede the script on one of its lines, counted from
// 0: a heredoc may have been moved to the left.
func (s *script) indent(line int) int {
	if s.expr == nil {
		return 0
	}
	if !s.heredoc() {
		if line > 0 {
			return 0
		}
		return s.expr.Range().Start.Column // after the opening quote
	}
	written, text := strings.Split(string(s.src), "\n"), strings.Split(s.text, "\n")
	if line >= len(text) || s.line-1+line >= len(written) {
		return 0
	}
	return max(len(strings.TrimRight(written[s.line-1+line], "\r"))-len(strings.TrimRight(text[line], "\r")), 0)
}

func (sc *scripts) scriptFile(s scope, d *declaration) (*script, bool) {
	path, ok := sc.stringAttr(s, d, "file")
	if !ok {
		return nil, false
	}
	text, err := sc.folder.text(path)
	if err != nil {
		sc.fault(s, d.attr("file").Expr, "Script cannot be read", sentence(err.Error()), "")
		return nil, false
	}
	shown := filepath.Join(sc.folder.shown, path)
	if IsAbs(path) {
		shown = path
	}
	sc.extra[shown] = []byte(text)
	name := path
	if !IsAbs(path) {
		name = sc.folder.prefix + path
	}
	return &script{in: sc.reporter, title: d.title, text: text, name: name, shown: shown, line: 1, src: []byte(text)}, true
}

// fault reports a mistake of a script at its place in the recipe.
func (s *script) fault(f *policy.ScriptError) {
	column := f.Column + s.indent(max(f.Line-s.line, 0))
	start := hcl.Pos{Line: f.Line, Column: column, Byte: offsetOf(s.src, f.Line, column)}
	end := start
	end.Column++
	end.Byte++
	s.in.report(scope{title: s.title}, hcl.Range{Filename: s.shown, Start: start, End: end},
		Diagnostic{Summary: "Invalid script", Detail: sentence(f.Message), Remedy: f.Remedy})
}

func offsetOf(src []byte, line, column int) int {
	lines := strings.SplitAfterN(string(src), "\n", line+1)
	offset := 0
	for i := range min(line-1, len(lines)) {
		offset += len(lines[i])
	}
	if line-1 < len(lines) {
		offset += bytesOfColumn(strings.TrimRight(lines[line-1], "\r\n"), column)
	}
	return offset
}
