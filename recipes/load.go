package recipes

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
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
	// Given are values that were given earlier, as in [deploy.Source]; they go
	// after all others, but before defaults.
	Given map[string]json.RawMessage
	// Shared says that the values are meant for other recipes too: what is for
	// variables that this one does not declare is left.
	Shared bool
	// ShapeOnly leaves modules and catalogs alone: the deployment cannot be
	// applied, but says which creatures, channels, edges and wires there were.
	ShapeOnly bool
	// Tests has mistakes in test blocks reported too, those of sub-recipes included.
	// Otherwise nothing depends on them.
	Tests bool
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
	// Isolation says which policies run in processes of their own, besides those that say
	// so themselves: one of [Isolations]. Empty means [IsolateForeign].
	Isolation string
	// MaxFileBytes bounds every file that is read; 0 means 1 MiB. Modules are
	// bounded by [abi.MaxModuleBytes].
	MaxFileBytes int64
}

const defaultMaxFileBytes = 1 << 20

// Recipe is a loaded recipe. It does not change and may be used from any
// goroutine.
type Recipe struct {
	deployment *deploy.Deployment
	places     map[string]*Diagnostic // of creatures, by address
}

// Deployment is what the recipe says shall exist. The value is shared: do not
// modify it.
func (r *Recipe) Deployment() *deploy.Deployment { return r.deployment }

// Load reads, evaluates and checks the recipe at path, a file or a folder of
// files. It reports everything it finds, errors and warnings; the recipe is
// nil if there is an error. It blocks while it reads files.
func Load(ctx context.Context, path string, o Options) (*Recipe, Diagnostics) {
	if d := o.checkIsolation(); d != nil {
		return nil, Diagnostics{*d}
	}
	l, d := openLoader(path, o.withDefaults())
	if d != nil {
		return nil, Diagnostics{*d}
	}
	defer l.close()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // whoever goes on with it may stand somewhere else
	}
	r := l.evaluate(ctx, path)
	return r, l.diags
}

func (o Options) withDefaults() Options {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = defaultMaxFileBytes
	}
	return o
}

// openLoader opens a recipe and takes in its files. The caller closes the loader.
func openLoader(path string, o Options) (*loader, *Diagnostic) {
	f, names, d := openRecipe(path, o.MaxFileBytes)
	if d != nil {
		return nil, d
	}
	l := newShared(o).newLoader(f, instantiation{})
	l.readFiles(names)
	return l, nil
}

// LoadSource is like Load for a copy that was kept of a recipe. Modules are
// looked for where they were.
func LoadSource(ctx context.Context, source deploy.Source, o Options) (*Recipe, Diagnostics) {
	o = o.withDefaults()
	if o.Given == nil {
		o.Given = source.Variables
	}
	f, names, d := openCopy(source, o.MaxFileBytes)
	if d != nil {
		return nil, Diagnostics{*d}
	}
	l := newShared(o).newLoader(f, instantiation{})
	defer l.close()
	l.readFiles(names)
	r := l.evaluate(ctx, source.Path)
	return r, l.diags
}

// evaluate evaluates what was taken in; the recipe is nil if there is an error.
func (l *loader) evaluate(ctx context.Context, path string) *Recipe {
	a := l.build(ctx)
	a.deployment.Source.Path = path
	if err := ctx.Err(); err != nil {
		l.add(Diagnostic{Severity: Error, Summary: "Loading was cancelled", Detail: sentence(err.Error())})
	}
	if l.diags = l.diags.tidy(); l.diags.HasErrors() {
		return nil
	}
	return &Recipe{deployment: a.deployment, places: a.places}
}

// build evaluates all declarations.
func (l *loader) build(ctx context.Context) *assembly {
	d := &deploy.Deployment{Name: l.folder.name}
	l.readInputs()
	l.testInputs()
	l.terrarium(d)
	l.session(d)
	all := l.withSubRecipes()
	a := newAssembly(l.settings, d)
	for _, l := range all {
		l.evaluateAll(d)
		l.locals()
		a.add(l.evaluator)
	}
	a.decode(ctx)
	scripts := a.scripts()
	compilePolicies(scripts, d)
	compilePredicates(scripts, d)
	for _, l := range all {
		if l.opts.Tests {
			(&testReader{l.evaluator}).checkTests(l.underTest, l.shared.underTest != nil)
		}
	}
	if len(d.Creatures) == 0 && len(l.diags) == 0 {
		l.add(Diagnostic{Severity: Error, Summary: "Nothing to run", Range: Range{File: l.folder.shown},
			Detail: "The recipe declares no creature.", Remedy: `Add a block such as: creature "reader" { module = "reader.wasm" }.`})
	}
	if !l.diags.HasErrors() && ctx.Err() == nil {
		declareAll(scripts, d)
		d.Declared = append(d.Declared, a.described...)
	}
	d.Source.Files = map[string]string{}
	for _, f := range l.folders {
		for name, data := range f.read {
			d.Source.Files[f.prefix+name] = l.stored(f, name, data)
		}
	}
	return a
}

// locals evaluates all local values.
func (vs *variables) locals() {
	for _, local := range vs.ordered["locals"] {
		vs.value(node{"local", local.name})
	}
}

// evaluateAll evaluates all variables and records those that may be stored.
func (vs *variables) evaluateAll(d *deploy.Deployment) {
	if vs.parent == nil {
		d.Source.Variables = map[string]json.RawMessage{}
	}
	for _, v := range vs.ordered["variable"] {
		val, ok := vs.value(node{"var", v.name})
		if _, given := vs.inputs[v.name]; vs.parent != nil || !given || !ok || vs.sensitive(v) {
			continue // a default, or what a sub-recipe is given, belongs to the recipe, which may be edited
		}
		if data, err := jsonOf(val); err == nil {
			d.Source.Variables[v.name] = data
		}
	}
	for _, v := range vs.ordered["variable"] {
		vs.checkDescription(scope{title: v.title, static: "a variable block"}, v)
		vs.validate(v)
	}
	vs.checkInputs()
}

// terrarium reads the block of that name.
func (l *loader) terrarium(d *deploy.Deployment) {
	b := l.singles["terrarium"]
	if b == nil {
		return
	}
	s := scope{title: b.title, static: "the terrarium block"}
	if l.parent != nil && b.attr("name") != nil {
		l.outermostOnly(b.title, b.attr("name").NameRange, "The name")
	} else if name, ok := l.stringAttr(s, b, "name"); ok {
		if name == "" {
			l.fault(s, b.attr("name").Expr, "Empty name", "A deployment needs a name.", "Remove the attribute, or give it a text.")
		}
		d.Name = name
	}
	if want, ok := l.stringAttr(s, b, "required_version"); ok && l.opts.Version != "" {
		l.checkVersion(s, b.attr("required_version").Expr, want)
	}
}

// session reads the block of that name.
func (l *loader) session(d *deploy.Deployment) {
	b := l.singles["session"]
	if b == nil {
		return
	}
	s := scope{title: b.title}
	if text, ok := l.choiceAttr(s, b, "durability"); ok {
		if durability, ok := journal.ParseDurability(text); ok {
			d.Session.Durability = &durability
		}
	}
	if text, ok := l.choiceAttr(s, b, "merge"); ok {
		d.Session.AllowMerge = text == "allow"
	}
}
