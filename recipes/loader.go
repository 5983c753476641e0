package recipes

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/zclconf/go-cty/cty/function"
)

// loader holds what is known of a recipe, or of one instance of a sub-recipe,
// while it is loaded.
type loader struct {
	*shared
	instantiation
	folder    *folder
	functions map[string]function.Function
	broken    bool // a file could not be parsed: what it declares is not known

	singles   map[string]*declaration            // terrarium, session
	decls     map[string]map[string]*declaration // by kind and name
	ordered   map[string][]*declaration          // by kind, as declared
	root      *hcl.Attribute
	values    map[node]*result
	exprs     map[hcl.Expression]*prepared
	constants *prepared // see constant
	givenLess bool      // a variables file could not be read: what it gives is not known
	inputs    map[string]input
	tests     hcl.Blocks
	underTest *Test                           // the same if it is one of these tests
	funcs     []*declaration                  // declared by the recipe
	astray    bool                            // an edge leads elsewhere, or a block is misspelt: what was meant is not known
	used      map[string]bool                 // channels that some edge mentions, rightly or not
	contents  map[*hcl.Block]*hcl.BodyContent // of nested blocks
}

// shared is what the loaders of a recipe and of its sub-recipes have in common.
type shared struct {
	opts         Options
	diags        Diagnostics
	folders      map[string]*folder    // by prefix
	loaders      int                   // of sub-recipes
	waiting      []waiting             // nodes being evaluated, outermost first
	tooMany      bool                  // waiting nodes were reported
	extra        map[string][]byte     // the files that messages may quote, by the name shown
	wired        map[string]bool       // addresses of channels with an edge
	channelNames map[string]string     // by address
	species      map[string]*ofSpecies // by address
	modules      map[string]*module
	targets      []wireTarget // of output wires, to be checked once the root is known
	calls        calls
	spent        *spending
	underTest    *Test                  // that the recipe is loaded for
	described    []deploy.Declaration   // of creatures and output wires
	hidden       []hiddenText           // what the files say of sensitive variables
	places       map[string]*Diagnostic // of creatures by address: where they are declared
	forConsole   bool                   // which needs the values of sensitive variables, though no modules
}

func newShared(o Options) *shared {
	return &shared{
		opts: o, folders: map[string]*folder{}, extra: map[string][]byte{}, wired: map[string]bool{}, channelNames: map[string]string{},
		species: map[string]*ofSpecies{}, modules: map[string]*module{},
		spent: &spending{left: maxSpending},
	}
}

func (sh *shared) close() {
	for _, f := range sh.folders {
		f.close()
	}
}

// newLoader returns a loader of a recipe in a folder.
func (sh *shared) newLoader(f *folder) *loader {
	sh.folders[f.prefix] = f
	return &loader{
		shared: sh, folder: f, functions: f.functions(),
		singles: map[string]*declaration{}, decls: map[string]map[string]*declaration{}, ordered: map[string][]*declaration{},
		values: map[node]*result{}, exprs: map[hcl.Expression]*prepared{}, used: map[string]bool{},
		contents: map[*hcl.Block]*hcl.BodyContent{}, inputs: map[string]input{},
	}
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
func (l *loader) parse(name string) {
	file, diags := l.folder.parse(name)
	if src, ok := l.folder.read[name]; ok {
		l.extra[filepath.Join(l.folder.shown, name)] = src
	}
	if diags.HasErrors() {
		l.broken = true
	}
	for _, d := range withoutEchoes(diags) {
		l.hcl(titleAt(file, d.Subject), d)
	}
	if file != nil && file.Body != nil {
		l.declare(file.Body)
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
