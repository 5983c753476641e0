package lsp

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/recipes/editor"
)

// quiet is how long texts must not change before their recipes are validated.
const quiet = 150 * time.Millisecond

// diagnosis records which recipes are still to be validated, and what was published about
// each.
type diagnosis struct {
	results    chan outcome
	validating sync.WaitGroup
	running    bool
	timer      *time.Timer
	dirty      map[string]bool   // the texts that have changed, by path
	published  map[string]string // the recipe for which there are findings, by the path of the file
}

// outcome is what a validation found.
type outcome struct {
	Validation
	versions map[string]int // of the open texts, by path
	found    recipes.Diagnostics
}

func newDiagnosis() *diagnosis {
	g := &diagnosis{results: make(chan outcome), timer: time.NewTimer(0), dirty: map[string]bool{}, published: map[string]string{}}
	g.timer.Stop()
	return g
}

// changed notes that the recipe of a text has changed.
func (s *server) changed(path string) {
	if !strings.HasSuffix(path, ".hcl") && !strings.HasSuffix(path, ".hcl.json") {
		return
	}
	s.timer.Reset(quiet)
	s.dirty[path] = true
}

// validate begins to validate one of the changed recipes, if nothing is being validated.
func (s *server) validate(ctx context.Context) {
	if s.running || len(s.dirty) == 0 {
		return
	}
	dirty := slices.Sorted(maps.Keys(s.dirty))
	path, recipes := dirty[0], s.ws.Outermost(dirty...)
	v := Validation{Path: recipes[0], Root: s.ws.Root(path), Unsaved: s.ws.Unsaved()}
	for i, other := range dirty {
		if recipes[i] == v.Path {
			delete(s.dirty, other)
		}
	}
	format := s.ws.Format(path)
	versions := map[string]int{}
	for path, d := range s.docs {
		versions[path] = d.version
	}
	s.running = true
	s.validating.Go(func() {
		o := outcome{v, versions, s.findings(ctx, v)}
		prepare(format)
		select {
		case s.results <- o:
		case <-ctx.Done():
		}
	})
}

// prepare formats a text in advance, so that the first request to format it has less to do. It
// ignores a panic: the request will report it.
func prepare(format func() []byte) {
	defer func() { _ = recover() }()
	_ = format()
}

// findings returns the findings of a validation. A panic, for example of a library that gets
// an unusual text, becomes a finding.
func (s *server) findings(ctx context.Context, v Validation) (found recipes.Diagnostics) {
	defer func() {
		if r := recover(); r != nil {
			found = recipes.Diagnostics{{Severity: recipes.Error, Summary: "The recipe cannot be checked", Detail: fmt.Sprintf("The check failed: %v.", r),
				Range: recipes.Range{File: v.Path}}}
		}
	}()
	return s.o.Validate(ctx, v)
}

// publish publishes the findings of a validation. If a text has changed since, they are
// left out: another validation follows.
func (s *server) publish(o outcome) error {
	s.running = false
	texts := map[string]*lines{}
	found := map[string][]diagnostic{}
	open := slices.Sorted(maps.Keys(s.docs))
	recipes := s.ws.Outermost(open...)
	first := o.Path // the first open text of the recipe, else its path
	for i, path := range slices.Backward(open) {
		if recipes[i] == o.Path {
			found[path] = []diagnostic{}
			first = path
		}
	}
	for path := range found {
		if d := s.docs[path]; d.version != o.versions[path] {
			return nil
		}
	}
	for i := range o.found {
		path, d := s.diagnostic(&o, &o.found[i], first, texts)
		found[path] = append(found[path], d)
	}
	for path, recipe := range s.published {
		// A recipe to which no open text belongs has become another: a folder instead
		// of a file, say.
		if _, again := found[path]; !again && (recipe == o.Path || !slices.Contains(recipes, recipe)) {
			found[path] = []diagnostic{}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		p := publishParams{URI: s.uri(path), Diagnostics: found[path]}
		if d := s.docs[path]; d != nil {
			p.Version = &d.version
		}
		if delete(s.published, path); len(found[path]) > 0 {
			s.published[path] = o.Path
		}
		if err := s.out.notify("textDocument/publishDiagnostics", p); err != nil {
			return err
		}
	}
	return nil
}

// diagnostic converts a finding. One about the whole recipe is shown at the start of its
// first open text.
func (s *server) diagnostic(o *outcome, f *recipes.Diagnostic, first string, texts map[string]*lines) (string, diagnostic) {
	d := diagnostic{Severity: severityError, Source: "terrarium", Message: textOf(f)}
	switch {
	case f.Severity == recipes.Warning:
		d.Severity = severityWarning
	case strings.HasPrefix(f.Summary, "No value for variable ") && f.Range.File != "":
		d.Severity = severityInformation // an editor has no values to give
	}
	path := f.Range.File
	if !filepath.IsAbs(path) || path == o.Path && f.Range.Start.Line == 0 || f.Range.Start.Line == 0 && s.docs[path] == nil {
		return first, d
	}
	if f.Range.Start.Line == 0 {
		return path, d
	}
	if l := s.linesOf(path, texts); len(l.text) >= f.Range.End.Byte {
		d.Range = l.span(editor.Span{Start: f.Range.Start.Byte, End: max(f.Range.End.Byte, f.Range.Start.Byte)})
	} else { // a script, whose text is not known
		d.Range = textRange{position{f.Range.Start.Line - 1, f.Range.Start.Column - 1}, position{f.Range.End.Line - 1, max(f.Range.End.Column-1, 0)}}
	}
	return path, d
}

func textOf(f *recipes.Diagnostic) string {
	parts := []string{f.Summary + "."}
	if f.Detail != "" {
		parts = append(parts, f.Detail)
	}
	if f.Suggestion != "" {
		parts = append(parts, "Did you mean \""+f.Suggestion+"\"?")
	}
	if f.Remedy != "" {
		parts = append(parts, f.Remedy)
	}
	return strings.Join(parts, " ")
}
