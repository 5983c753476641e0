package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// Inspector looks into modules without running them.
type Inspector interface {
	// Inspect describes a module, or says with an [abi.Error] why it cannot be
	// a creature.
	Inspect(ctx context.Context, wasm []byte) (*abi.ModuleInfo, error)
}

// Builtins are the creatures that ship with the program, which a recipe names
// builtin:NAME.
type Builtins interface {
	Names() []string
	// Wasm returns the module of that name; an unknown name is an error.
	Wasm(name string) ([]byte, error)
}

// Options say how a recipe is loaded. The zero value loads it without looking
// into its modules.
type Options struct {
	// Vars are the variables given by hand, for example on a command line.
	// They go before VarFiles, and these before Env. For a variable of type
	// string the text is the value; for any other it is an HCL expression.
	Vars map[string]string
	// VarFiles are files of assignments (*.hcl, *.hcl.json, or JSON); later
	// ones go before earlier ones.
	VarFiles []string
	// Env is the environment in the form of os.Environ; what begins with
	// TERRARIUM_VAR_ gives a variable its value.
	Env []string
	// Given are values that were given earlier, as in [engine.Source]; they go
	// after all others, but before defaults.
	Given map[string]json.RawMessage
	// Inspector checks the modules; nil means that they are only read.
	Inspector Inspector
	// Builtins may be nil: then builtin:NAME is left for the engine to find.
	Builtins Builtins
	// Version is the version of the program, for required_version; empty means
	// that it is not checked.
	Version string
	// PolicyProcess is the command, an executable and its arguments, that starts a
	// process for policies with isolation = "process": one that calls
	// [ServePolicies].
	PolicyProcess []string
	// MaxFileBytes bounds every file that is read; 0 means 1 MiB. Modules are
	// bounded by [abi.MaxModuleBytes].
	MaxFileBytes int64
}

const defaultMaxFileBytes = 1 << 20

// Recipe is a loaded recipe. It does not change and may be used from any
// goroutine.
type Recipe struct {
	deployment *engine.Deployment
}

// Deployment is what the recipe says shall exist. The value is shared: do not
// modify it.
func (r *Recipe) Deployment() *engine.Deployment { return r.deployment }

// Load reads, evaluates and checks the recipe at path, a file or a folder of
// files. It reports everything it finds, errors and warnings; the recipe is
// nil if there is an error. It blocks while it reads files.
func Load(ctx context.Context, path string, o Options) (*Recipe, Diagnostics) {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = defaultMaxFileBytes
	}
	f, names, d := openRecipe(path, o.MaxFileBytes)
	if d != nil {
		return nil, Diagnostics{*d}
	}
	return load(ctx, f, names, path, o)
}

// LoadSource is like Load for a copy that was kept of a recipe. Modules are
// looked for where they were.
func LoadSource(ctx context.Context, source engine.Source, o Options) (*Recipe, Diagnostics) {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = defaultMaxFileBytes
	}
	if o.Given == nil {
		o.Given = source.Variables
	}
	f, names, d := openCopy(source, o.MaxFileBytes)
	if d != nil {
		return nil, Diagnostics{*d}
	}
	return load(ctx, f, names, source.Path, o)
}

func load(ctx context.Context, f *folder, names []string, path string, o Options) (*Recipe, Diagnostics) {
	defer f.close()
	l := newLoader(o, f)
	for _, name := range names {
		l.parse(name)
	}
	deployment := l.build(ctx)
	deployment.Source.Path = path
	if err := ctx.Err(); err != nil {
		l.add(Diagnostic{Severity: Error, Summary: "Loading was given up", Detail: sentence(err.Error())})
	}
	diags := l.diags.tidy()
	if diags.HasErrors() {
		return nil, diags
	}
	return &Recipe{deployment: deployment}, diags
}

// loader holds what is known of a recipe while it is loaded.
type loader struct {
	opts      Options
	folder    *folder
	functions map[string]function.Function
	diags     Diagnostics
	broken    bool // a file could not be parsed: what it declares is not known

	singles      map[string]*declaration            // terrarium, session
	decls        map[string]map[string]*declaration // by kind and name
	ordered      map[string][]*declaration          // by kind, as declared
	root         *hcl.Attribute
	values       map[node]*result
	waiting      []node            // nodes being evaluated, outermost first
	tooMany      bool              // waiting nodes were reported
	extra        map[string][]byte // further files that messages may quote, by the name shown
	exprs        map[hcl.Expression]*prepared
	givenLess    bool // a variables file could not be read: what it gives is not known
	inputs       map[string]input
	used         map[string]bool                 // channels that some edge mentions, rightly or not
	wired        map[string]bool                 // addresses of channels with an edge
	channelNames map[string]string               // by address
	contents     map[*hcl.Block]*hcl.BodyContent // of nested blocks
	modules      map[string]*module
	targets      []wireTarget // of output wires, to be checked once the root is known
}

func newLoader(o Options, f *folder) *loader {
	return &loader{
		opts: o, folder: f, functions: f.functions(),
		singles: map[string]*declaration{}, decls: map[string]map[string]*declaration{}, ordered: map[string][]*declaration{},
		values: map[node]*result{}, exprs: map[hcl.Expression]*prepared{}, used: map[string]bool{}, wired: map[string]bool{}, contents: map[*hcl.Block]*hcl.BodyContent{}, modules: map[string]*module{}, extra: map[string][]byte{},
	}
}

// parse adds the declarations of one file.
func (l *loader) parse(name string) {
	file, diags := l.folder.parse(name)
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

// build evaluates all declarations.
func (l *loader) build(ctx context.Context) *engine.Deployment {
	d := &engine.Deployment{Name: l.folder.name}
	l.readInputs()
	l.terrarium(d)
	l.session(d)
	l.variables(d)
	for _, local := range l.ordered["locals"] {
		l.value(node{"local", local.name})
	}
	l.channels(d)
	l.allSpecies(ctx, d)
	l.creatures(ctx, d)
	l.checkEdges(d)
	l.rootCreature(d)
	l.checkTargets(d)
	l.policies(d)
	l.predicates(d)
	if len(l.ordered["creature"]) == 0 && len(l.diags) == 0 {
		l.add(Diagnostic{Severity: Error, Summary: "Nothing to run", Range: Range{File: l.folder.shown},
			Detail: "The recipe declares no creature.", Remedy: `Add a block such as: creature "reader" { module = "reader.wasm" }.`})
	}
	d.Source.Files = map[string]string{}
	for name, data := range l.folder.read {
		d.Source.Files[name] = string(data)
	}
	return d
}

// where tells a place by file and line, as it is kept with what the recipe
// declares.
func (l *loader) where(r hcl.Range) string {
	return fmt.Sprintf("%s:%d", filepath.Base(r.Filename), r.Start.Line)
}

// variables evaluates all variables and records those that may be stored.
func (l *loader) variables(d *engine.Deployment) {
	d.Source.Variables = map[string]json.RawMessage{}
	for _, v := range l.ordered["variable"] {
		val, ok := l.value(node{"var", v.name})
		if _, given := l.inputs[v.name]; !given || !ok || l.sensitive(v) {
			continue // a default belongs to the recipe, which may be edited
		}
		if data, err := jsonOf(val); err == nil {
			d.Source.Variables[v.name] = data
		}
	}
	for _, v := range l.ordered["variable"] {
		l.validate(v)
	}
	l.checkInputs()
}

// terrarium reads the block of that name.
func (l *loader) terrarium(d *engine.Deployment) {
	b := l.singles["terrarium"]
	if b == nil {
		return
	}
	s := scope{title: b.title, static: "the terrarium block"}
	if name, ok := l.stringAttr(s, b, "name"); ok {
		if name == "" {
			l.fault(s, b.attr("name").Expr, "Empty name", "A deployment needs a name.", "Leave the attribute out, or give it a text.")
		}
		d.Name = name
	}
	if want, ok := l.stringAttr(s, b, "required_version"); ok && l.opts.Version != "" {
		l.checkVersion(s, b.attr("required_version").Expr, want)
	}
}

// session reads the block of that name.
func (l *loader) session(d *engine.Deployment) {
	b := l.singles["session"]
	if b == nil {
		return
	}
	s := scope{title: b.title}
	if text, ok := l.choiceAttr(s, b, "durability", "full", "normal", "none"); ok {
		if durability, ok := engine.ParseDurability(text); ok {
			d.Session.Durability = &durability
		}
	}
	if text, ok := l.choiceAttr(s, b, "merge", "deny", "allow"); ok {
		d.Session.AllowMerge = text == "allow"
	}
}

// rootCreature evaluates root = creature.x.
func (l *loader) rootCreature(d *engine.Deployment) {
	if l.root == nil {
		return
	}
	s := scope{title: "root"}
	v, ok := l.eval(s, l.root.Expr)
	if !ok {
		return
	}
	address, ok := refAddress(v, "creature")
	if !ok {
		l.wrongReference(s, l.root.Expr, v, "creature")
		return
	}
	d.Root = address
}
