package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Inspector inspects modules without running them.
type Inspector interface {
	// Inspect describes a module, or returns an [abi.Error] that says why it cannot be a
	// creature.
	Inspect(ctx context.Context, wasm []byte) (*abi.ModuleInfo, error)
}

// Builtins are the creatures that ship with the program. Recipes refer to them as
// builtin:NAME.
type Builtins interface {
	Names() []string
	// Wasm returns the module with that name; an unknown name is an error.
	Wasm(name string) ([]byte, error)
}

// ModuleSource returns the module with a name. It may be called from any goroutine.
type ModuleSource func(ctx context.Context, name string) (wasm []byte, err error)

// Options control how a recipe is loaded. The zero value loads a recipe without
// inspecting its modules.
type Options struct {
	// Vars are the variables from a command line or the like. They take precedence over
	// VarFiles, which take precedence over Env. For a variable of type string the text is
	// the value; for any other type it is an HCL expression.
	Vars map[string]string
	// VarFiles are files of assignments (*.hcl, *.hcl.json, or JSON); later files take
	// precedence.
	VarFiles []string
	// Env is the environment in the form of os.Environ; entries that start with
	// TERRARIUM_VAR_ set variables.
	Env []string
	// Given are values from an earlier run, as in [deploy.Source]; they take precedence
	// over defaults only.
	Given map[string]json.RawMessage
	// Shared says that the values are also meant for other recipes: values for variables
	// that this recipe does not declare are ignored.
	Shared bool
	// ShapeOnly skips modules and catalogs: the deployment cannot be applied, but lists
	// creatures, channels, edges and wires.
	ShapeOnly bool
	// Tests reports mistakes in test blocks too, including those of sub-recipes. Nothing
	// else depends on these blocks.
	Tests bool
	// Inspector checks the modules; if it is nil, modules are only read.
	Inspector Inspector
	// Capabilities are the kinds of capabilities that the recipe can grant, besides
	// [OwnCapabilities].
	Capabilities []capability.Kind
	// Connectors are the kinds of sources and sinks that the recipe can declare.
	Connectors []connector.Kind
	// Builtins may be nil: then the engine resolves builtin:NAME.
	Builtins Builtins
	// Modules returns modules by name, for references SCHEME:NAME. It is not called for
	// builtin and fs. Each module is read once in a recipe.
	Modules map[string]ModuleSource
	// FS contains the files with paths that begin with fs:/, such as those that are
	// embedded in the program. A recipe there reads only files of FS. FS may be nil.
	//
	// A path in FS cannot lead out of FS. Whether symbolic links can is up to FS: they
	// can in [os.DirFS], and cannot in [os.Root.FS].
	FS fs.FS
	// Version is the version of the program, for required_version; if it is empty,
	// required_version is not checked.
	Version string
	// PolicyProcess is the command, an executable and its arguments, that starts a
	// process for policies with isolation = "process". The process must call
	// [ServePolicies].
	PolicyProcess []string
	// Isolation selects policies that run in separate processes, in addition to those with
	// isolation = "process" in their recipe: one of [Isolations]. Empty means
	// [IsolateForeign].
	Isolation string
	// Unsaved are texts that take the place of files of the recipe and of its sub-recipes,
	// by path, such as those that an editor has not saved. A file need not exist.
	Unsaved map[string][]byte
	// ReadsUnsaved makes it an error if the recipe does not read one of the Unsaved texts.
	ReadsUnsaved bool
	// Within is the absolute path of a folder, or empty. Modules and catalogs outside it
	// are not read, and nothing is reported about them.
	Within string
	// MaxFileBytes bounds the size of each file; 0 means 1 MiB. Modules are bounded by
	// [abi.MaxModuleBytes].
	MaxFileBytes int64
}

const defaultMaxFileBytes = 1 << 20

// Recipe is a loaded recipe. It is immutable and can be used from any goroutine.
type Recipe struct {
	deployment *deploy.Deployment
	places     map[string]*Diagnostic // of creatures, by address
	secrets    map[string][]byte
	kinds      []capability.Kind
}

// Capabilities returns the kinds of capabilities of [Options.Capabilities].
func (r *Recipe) Capabilities() []capability.Kind { return r.kinds }

// Deployment returns what the recipe declares. The value is shared: do not modify it.
func (r *Recipe) Deployment() *deploy.Deployment { return r.deployment }

// Secrets returns the values of sensitive variables as JSON, by name, those of sub-recipes
// by address and name. No store may keep them. The map is shared: do not modify it.
func (r *Recipe) Secrets() map[string][]byte { return r.secrets }

// Load reads, evaluates and checks the recipe at path, a file or a folder of files. It
// reports all errors and warnings; the recipe is nil if there is an error. Load blocks
// while it reads files.
func Load(ctx context.Context, path string, o Options) (*Recipe, Diagnostics) {
	if d := o.checkIsolation(); d != nil {
		return nil, Diagnostics{*d}
	}
	l, d := openLoader(path, o.withDefaults())
	if d != nil {
		return nil, Diagnostics{*d}
	}
	defer l.close()
	if abs, err := AbsPath(path); err == nil {
		path = abs // later users may have another working directory
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

// openLoader opens a recipe and reads its files. The caller closes the loader.
func openLoader(path string, o Options) (*loader, *Diagnostic) {
	unsaved := map[string][]byte{}
	for name, text := range o.Unsaved {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
		unsaved[name] = append([]byte{}, text...) // not nil
	}
	f, names, d := o.openRecipe(path, unsaved)
	if d != nil {
		return nil, d
	}
	l := newShared(o).newLoader(f, instantiation{})
	l.readFiles(names)
	return l, nil
}

// LoadSource is like Load for a stored copy of a recipe. Modules are read from their
// original places.
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

// evaluate evaluates the files that were read; the recipe is nil if there is an error.
func (l *loader) evaluate(ctx context.Context, path string) *Recipe {
	a := l.build(ctx)
	a.deployment.Source.Path = path
	if l.opts.ReadsUnsaved {
		l.checkUnsaved()
	}
	if err := ctx.Err(); err != nil {
		l.add(Diagnostic{Severity: Error, Summary: "Loading was cancelled", Detail: sentence(err.Error())})
	}
	if l.diags = l.diags.tidy(); l.diags.HasErrors() {
		return nil
	}
	return &Recipe{deployment: a.deployment, places: a.places, secrets: a.secrets, kinds: l.opts.Capabilities}
}

// checkUnsaved reports texts that no part of the recipe has read.
func (l *loader) checkUnsaved() {
	used := map[string]bool{}
	for _, f := range l.folders {
		for name := range f.read {
			used[under(f.abs, name)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.folder.unsaved)) {
		if !used[name] && !l.broken {
			l.add(Diagnostic{Severity: Error, Summary: "Not a file of the recipe", Range: Range{File: name},
				Detail: fmt.Sprintf("The recipe %s does not read it.", l.folder.shown), Remedy: "Name a file of the recipe, or of one of its sub-recipes."})
		}
	}
}

func (l *loader) build(ctx context.Context) *assembly {
	d := &deploy.Deployment{Name: l.folder.name}
	l.readInputs()
	l.testInputs()
	l.terrarium(d)
	l.session(d)
	all := l.withSubRecipes()
	a := newAssembly(l.settings, d)
	for _, l := range all {
		l.evaluateAll(d, a.secrets)
		l.locals()
		l.outputs()
		a.add(l.evaluator)
	}
	a.decode(ctx)
	scripts := a.scripts()
	compilePolicies(scripts, d)
	compilePredicates(scripts, d)
	scripts[0].stopWhen(d)
	for _, l := range all {
		if l.opts.Tests {
			(&testReader{l.evaluator, d}).checkTests(l.underTest, l.shared.underTest != nil)
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
		for question, answer := range f.answers.known {
			d.Source.Files[f.prefix+answerMark+question] = answer
		}
	}
	return a
}

func (vs *variables) locals() {
	for _, local := range vs.ordered["locals"] {
		vs.value(node{"local", local.name})
	}
}

// evaluateAll evaluates all variables. It records the values that may be stored in d, and
// the sensitive ones apart.
func (vs *variables) evaluateAll(d *deploy.Deployment, secrets map[string][]byte) {
	if vs.parent == nil {
		d.Source.Variables = map[string]json.RawMessage{}
	}
	for _, v := range vs.ordered["variable"] {
		val, ok := vs.value(node{"var", v.name})
		_, given := vs.inputs[v.name]
		secret := vs.sensitive(v)
		if !ok || !secret && (vs.parent != nil || !given) {
			continue // a default, or the input of a sub-recipe, belongs to the recipe, which may be edited
		}
		switch data, err := jsonOf(val); {
		case err != nil: // references, for example
		case secret:
			secrets[strings.TrimPrefix(vs.place+"."+v.name, ".")] = data
		default:
			d.Source.Variables[v.name] = data
		}
	}
	for _, v := range vs.ordered["variable"] {
		vs.checkDescription(scope{title: v.title, static: "a variable block"}, v)
		vs.validate(v)
	}
	vs.checkInputs()
}

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
	if every, ok := l.durationAttr(s, b, "sync_every"); ok {
		l.syncEvery(s, b, d, every)
	}
	if text, ok := l.choiceAttr(s, b, "merge"); ok {
		d.Session.AllowMerge = text == "allow"
	}
}

// syncEvery sets the time after which sessions are synced, if it has an effect.
func (l *loader) syncEvery(s scope, b *declaration, d *deploy.Deployment, every time.Duration) {
	at := b.attr("sync_every").Expr
	switch durability := d.Session.Durability; {
	case every < journal.MinSyncEvery || every > journal.MaxSyncEvery:
		l.fault(s, at, "Time out of range", fmt.Sprintf("sync_every must be from %s to %s; this is %v.", plainDuration(journal.MinSyncEvery), plainDuration(journal.MaxSyncEvery), every), "")
	case durability != nil && *durability == journal.Full:
		l.fault(s, at, "sync_every without effect", "With the durability full, every group of writes is synced before it is acknowledged.",
			`Remove sync_every, or use the durability "normal".`)
	case durability != nil && *durability == journal.Volatile:
		l.fault(s, at, "sync_every without effect", "With the durability none, nothing is kept.", `Remove sync_every, or use the durability "normal".`)
	default:
		d.Session.SyncEvery = every
	}
}
