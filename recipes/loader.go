package recipes

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// loader loads a recipe, or one instance of a sub-recipe. It reads the files, gives
// the variables their values, and loads the sub-recipes that the blocks declare.
//
// Each stage of loading is a type that knows only the stages before it: the [findings]
// of all recipes and the [reporter] of one; the [declarations] in its files; the
// [evaluator] of its expressions; its [variables]. The loader comes after these. An
// [assembly] then decodes the blocks of all recipes, with their evaluators.
type loader struct {
	*shared
	*variables
	underTest *Test // the test that the recipe is loaded for, if it is one of this recipe
}

// shared is what the loaders of a recipe and of its sub-recipes have in common.
type shared struct {
	settings  *settings
	findings  *findings
	budget    *budget
	folders   map[string]*folder // by prefix
	loaders   map[string]*loader // of sub-recipes, by the address of the instance
	begun     int                // how many sub-recipes were begun
	underTest *Test              // the test that the recipe is loaded for
}

// settings are the options of the caller, and one that callers cannot set.
type settings struct {
	Options
	forConsole bool // sensitive variables need their values, although modules are left alone
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

// newLoader returns a loader of a recipe in a folder.
func (sh *shared) newLoader(f *folder, i instantiation) *loader {
	sh.folders[f.prefix] = f
	ev := newEvaluator(newDeclarations(&reporter{findings: sh.findings, instantiation: i, dir: f.prefix}, f), sh.budget)
	l := &loader{shared: sh, variables: &variables{evaluator: ev, opts: sh.settings, inputs: map[string]input{}}}
	ev.kinds = map[string]func(*declaration) (cty.Value, bool){"var": l.variable, "recipe": l.recipe}
	return l
}

// readFiles takes in the files of the recipe.
func (l *loader) readFiles(names []string) {
	l.files = filesIn(l.folder, names)
	for _, name := range names {
		l.parse(name)
	}
	l.userFunctions()
	l.hideSensitive()
}

// parse adds the declarations of one file.
func (ds *declarations) parse(name string) {
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
		ds.declare(file.Body)
	}
}

// withoutEchoes leaves out what follows from a quote that was not closed: from
// there on the parser takes code for text and text for code.
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

// titleAt names the block around a place, for errors from the parser.
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
