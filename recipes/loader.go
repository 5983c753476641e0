package recipes

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// loader loads a recipe, or one instance of a sub-recipe. It reads the files, gives the
// variables their values, and loads the sub-recipes that the blocks declare.
//
// Each stage of loading is a type that only knows the earlier stages: the [findings] of
// all recipes and the [reporter] of one; the [declarations] in its files; the [evaluator]
// of its expressions; its [variables]; the loader itself. An [assembly] then decodes the
// blocks of all recipes with their evaluators.
type loader struct {
	*shared
	*variables
	underTest *Test // the test that the recipe is loaded for, if this recipe declares it
}

// shared is the state that the loaders of a recipe and of its sub-recipes share.
type shared struct {
	settings  *settings
	findings  *findings
	budget    *budget
	folders   map[string]*folder // by prefix
	loaders   map[string]*loader // of sub-recipes, by the address of the instance
	begun     int                // the number of sub-recipes so far
	underTest *Test              // the test that the recipe is loaded for
}

// settings are the options of the caller, plus one that callers cannot set.
type settings struct {
	Options
	forConsole bool // sensitive variables need values even if the modules are skipped
}

func newShared(o Options) *shared {
	return &shared{
		settings: &settings{Options: o}, findings: &findings{extra: map[string][]byte{}}, budget: &budget{spent: &spending{left: maxSpending}},
		folders: map[string]*folder{}, loaders: map[string]*loader{},
	}
}

func (sh *shared) close() {
	for _, f := range sh.folders {
		f.close()
	}
}

func (sh *shared) newLoader(f *folder, i instantiation) *loader {
	sh.folders[f.prefix] = f
	ev := newEvaluator(newDeclarations(&reporter{findings: sh.findings, instantiation: i, dir: f.prefix}, f), sh.budget)
	l := &loader{shared: sh, variables: &variables{evaluator: ev, opts: sh.settings, inputs: map[string]input{}}}
	ev.kinds = map[string]func(*declaration) (cty.Value, bool){"var": l.variable, "recipe": l.recipe, "output": l.output}
	return l
}

func (l *loader) readFiles(names []string) {
	l.files = filesIn(l.folder, names)
	for _, name := range names {
		l.parse(name, blocksOfRecipe)
	}
	if l.opts.Tests {
		for _, name := range l.folder.testFiles(names) {
			l.parse(name, blocksOfTests)
		}
	}
	l.userFunctions()
	l.hideSensitive()
}

// parse reads a file. kind says which blocks it can have.
func (ds *declarations) parse(name string, kind fileKind) {
	file, diags := ds.folder.parse(name)
	if src, ok := ds.folder.read[name]; ok {
		ds.extra[filepath.Join(ds.folder.shown, name)] = src
	}
	if diags.HasErrors() {
		ds.broken = true
	}
	for _, d := range withoutEchoes(diags) {
		ds.hcl(titleAt(file, d.Subject), d)
	}
	if file != nil && file.Body != nil {
		ds.declare(file.Body, kind)
	}
}

// withoutEchoes removes findings that follow from a quote that was not closed: after it,
// the parser confuses code and text.
func withoutEchoes(diags hcl.Diagnostics) hcl.Diagnostics {
	unclosed := map[string]bool{"Invalid multi-line string": true, "Unterminated template string": true}
	var out hcl.Diagnostics
	seen := false
	for _, d := range diags {
		if unclosed[d.Summary] {
			if seen {
				continue
			}
			seen = true
		}
		out = append(out, d)
	}
	return out
}

// titleAt returns the title of the block around a place, for errors of the parser.
func titleAt(file *hcl.File, at *hcl.Range) string {
	if file == nil || at == nil {
		return ""
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return ""
	}
	for _, b := range body.Blocks {
		if r := b.Range(); r.Start.Byte <= at.Start.Byte && at.Start.Byte < max(r.End.Byte, b.Body.SrcRange.End.Byte) {
			return title(b.Type, b.Labels)
		}
	}
	return ""
}
