package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// builtinPrefix is the prefix of references to creatures that ship with the program.
const builtinPrefix = "builtin:"

// module is a module that the recipe names. It is read and inspected once.
type module struct {
	ref  string // an absolute path, builtin:NAME, or SCHEME:NAME of [Options.Modules]
	wasm []byte
	info *abi.ModuleInfo // nil without an inspector
	err  error

	resolved   *jsonschema.Resolved            // see schema
	unresolved bool                            // it is not usable
	parts      map[string]*jsonschema.Resolved // by property; see part
}

// moduleReader reads and inspects the modules that a recipe names.
type moduleReader struct {
	*evaluator
	opts  *settings
	known map[string]*module // the modules of all recipes, by ref
}

// moduleOf sets a creature's own module, or that of its species.
func (dec *decoder) moduleOf(ctx context.Context, s scope, d *declaration, species *ofSpecies, spec *deploy.CreatureSpec) {
	at, owner, instance := d, dec, s
	if d.attr("module") == nil {
		if species == nil {
			if a := d.attr("species"); a == nil && !dec.broken { // otherwise there is already an error
				dec.report(s, d.at, Diagnostic{Summary: "No module", Detail: "The creature has no module and no species.",
					Remedy: `Add module = "FILE.wasm" or module = "builtin:NAME", or a species.`})
			}
			return
		}
		if species.attr("module") == nil && dec.broken {
			return
		}
		if species.attr("module") == nil {
			dec.report(s, d.at, Diagnostic{Summary: "No module", Detail: fmt.Sprintf("Neither the creature nor %s has a module.", species.title),
				Remedy: "Add a module to one of them."})
			return
		}
		at, owner, s = species.declaration, species.in, scope{title: species.title}
	}
	m := owner.modules.of(ctx, s, at)
	if m == nil {
		return
	}
	spec.Module, spec.Wasm = m.ref, m.wasm
	spec.Description = cmp.Or(spec.Description, m.description())
	if m.info == nil || d.failed {
		return
	}
	(&fitting{evaluator: dec.evaluator, scope: instance, d: d, species: species, module: m, spec: spec}).check()
	if m.info.Manifest != nil {
		dec.checkManifest(d, m.info.Manifest, spec)
	}
}

// description is what the module's manifest says that it is for.
func (m *module) description() string {
	if m.info == nil || m.info.Manifest == nil {
		return ""
	}
	text := m.info.Manifest.Description
	return strings.ToValidUTF8(text[:min(len(text), deploy.MaxDescription)], "")
}

// of evaluates a module attribute and inspects the module. It returns nil after reporting
// an error.
func (ms *moduleReader) of(ctx context.Context, s scope, d *declaration) *module {
	text, ok := ms.stringAttr(s, d, "module")
	if !ok {
		return nil
	}
	expr := d.attr("module").Expr
	if text == "" {
		ms.fault(s, expr, "No module", "The path is empty.", `Write a path, or "builtin:NAME".`)
		return nil
	}
	ref := text
	if source, _ := ms.opts.source(ref); source == nil && !strings.HasPrefix(ref, builtinPrefix) {
		ref = filepath.FromSlash(ref)
		if !IsAbs(ref) {
			ref = under(ms.folder.abs, ref)
		}
		if ms.leavesFS(ref) {
			ms.fault(s, expr, "Module outside the recipe", fmt.Sprintf("%q is a file of the machine, and the recipe is in a file system of the program.", text),
				"Add the module to the program's file system, or give the program a source of modules.")
			return nil
		}
	}
	if ms.opts.ShapeOnly {
		return &module{ref: ref}
	}
	m := ms.known[ref]
	if m == nil {
		m = &module{ref: ref}
		ms.known[ref] = m
		m.err = ms.readModule(ctx, m)
	}
	if m.err != nil {
		ms.moduleFault(s, expr, text, m)
		return nil
	}
	return m
}

func (ms *moduleReader) readModule(ctx context.Context, m *module) (err error) {
	name, builtin := strings.CutPrefix(m.ref, builtinPrefix)
	source, own := ms.opts.source(m.ref)
	switch {
	case source != nil:
		m.wasm, err = source(ctx, own)
	case !builtin && !ms.opts.mayRead(m.ref):
		return nil
	case !builtin:
		var at place
		if at, err = ms.opts.at(m.ref); err == nil {
			m.wasm, err = readWasm(at)
		}
	case ms.opts.Builtins == nil:
		return nil
	default:
		m.wasm, err = ms.opts.Builtins.Wasm(name)
	}
	if err != nil || ms.opts.Inspector == nil {
		return err
	}
	m.info, err = ms.opts.Inspector.Inspect(ctx, m.wasm)
	return err
}

// source returns the source of a module with a scheme of its own, and its name there.
func (o *Options) source(ref string) (ModuleSource, string) {
	scheme, name, ok := strings.Cut(ref, ":")
	if !ok || scheme+":" == builtinPrefix || scheme+":" == fsPrefix {
		return nil, ""
	}
	return o.Modules[scheme], name
}

// leavesFS reports whether a recipe in [Options.FS] names a file of the machine.
func (ms *moduleReader) leavesFS(path string) bool {
	_, within := NameInFS(ms.folder.abs)
	_, there := NameInFS(path)
	return within && !there
}

// ReadModule reads the module at a path that begins with fs:/ from fsys, or another path
// from the machine.
func ReadModule(fsys fs.FS, path string) ([]byte, error) {
	at, err := (&Options{FS: fsys}).at(path)
	if err != nil {
		return nil, err
	}
	return readWasm(at)
}

func readWasm(at place) ([]byte, error) {
	info, err := at.stat()
	if err != nil {
		if escapes(err) {
			return nil, errors.New("a symbolic link leads out of the catalog's folder")
		}
		return nil, err
	}
	if err := fitsModule(info); err != nil {
		return nil, err
	}
	f, err := at.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, abi.MaxModuleBytes+1)) // the host refuses one that has grown
}

// fitsModule refuses files that are not regular or too large.
func fitsModule(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if info.Size() > abi.MaxModuleBytes {
		return &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("it has %d bytes; at most %d are allowed", info.Size(), int64(abi.MaxModuleBytes))}
	}
	return nil
}

func (ms *moduleReader) moduleFault(s scope, expr hcl.Expression, text string, m *module) {
	name, builtin := strings.CutPrefix(m.ref, builtinPrefix)
	var refused *abi.Error
	source, _ := ms.opts.source(m.ref)
	switch {
	case source != nil && !errors.As(m.err, &refused):
		ms.fault(s, expr, "Module cannot be read", fmt.Sprintf("The program has no module %s: %s", text, sentence(m.err.Error())), "")
	case builtin && !slices.Contains(ms.opts.Builtins.Names(), name):
		names := ms.opts.Builtins.Names()
		d := Diagnostic{Summary: "Unknown builtin creature", Detail: fmt.Sprintf("No creature %q ships with this version.", name), Suggestion: nearest(name, names)}
		if d.Suggestion == "" {
			d.Remedy = fmt.Sprintf("The builtin creatures are %s.", enumerate(names))
		} else {
			d.Suggestion = builtinPrefix + d.Suggestion
		}
		ms.report(s, expr.Range(), d)
	case errors.Is(m.err, fs.ErrNotExist):
		ms.moduleMissing(s, expr, text, m.ref)
	case errors.As(m.err, &refused) && m.wasm == nil:
		ms.fault(s, expr, "Module cannot be read", fmt.Sprintf("%s: %s", text, sentence(refused.Message)), sentence(refused.Remedy))
	case errors.As(m.err, &refused):
		detail := refused.Message
		if refused.Err != nil {
			detail += ": " + refused.Err.Error()
		}
		ms.fault(s, expr, "Module refused", fmt.Sprintf("%s cannot be a creature: %s", text, sentence(detail)), sentence(refused.Remedy))
	default:
		ms.fault(s, expr, "Module cannot be read", fmt.Sprintf("%s: %s", text, sentence(cause(m.err))), "")
	}
}

func (ms *moduleReader) moduleMissing(s scope, expr hcl.Expression, text, path string) {
	at, _ := ms.opts.at(path) // it has been read from there
	d := Diagnostic{Summary: "Module not found", Detail: fmt.Sprintf("There is no file %s.", path)}
	entries, err := at.dir().readDir()
	var files, wasm []string
	for _, e := range entries {
		files = append(files, e.Name())
		if strings.HasSuffix(e.Name(), wasmSuffix) {
			wasm = append(wasm, e.Name())
		}
	}
	d.Suggestion = nearest(filepath.Base(path), files)
	switch {
	case err != nil:
		d.Remedy = "The folder does not exist either. Relative paths start at the recipe's folder."
	case d.Suggestion != "":
	case ms.opts.Builtins != nil && slices.Contains(ms.opts.Builtins.Names(), strings.TrimSuffix(text, wasmSuffix)):
		d.Suggestion = builtinPrefix + strings.TrimSuffix(text, wasmSuffix)
	case len(wasm) > 0:
		d.Remedy = fmt.Sprintf("That folder contains %s.", enumerate(wasm))
	default:
		d.Remedy = "Build the module first. Relative paths start at the recipe's folder."
	}
	f := ms.at(s, expr.Range(), d)
	if p := ms.prepared(expr); p != nil && p.ok {
		f.Values = valuesOf(expr, s.context(p))
	}
	ms.add(f)
}

// checkManifest warns of channels that a module needs and does not get.
func (dec *decoder) checkManifest(d *declaration, m *abi.Manifest, spec *deploy.CreatureSpec) {
	for _, side := range []struct {
		verb  string
		wants []abi.ManifestChannel
		has   []deploy.WireSpec
	}{{"listen", m.Listen, spec.Listen}, {"send", m.Send, spec.Send}} {
		var aliases []string
		for _, w := range side.has {
			alias := w.Alias
			if alias == "" {
				alias = dec.channelNames[w.Channel]
			}
			aliases = append(aliases, alias)
		}
		for _, want := range side.wants {
			if want.Optional || slices.Contains(aliases, want.Alias) {
				continue
			}
			at := d.at
			if a := d.attr(side.verb); a != nil {
				at = a.Expr.Range()
			}
			dec.report(scope{title: d.title}, at, Diagnostic{Severity: Warning, Summary: "Channel not wired",
				Detail: fmt.Sprintf("The module %s needs the alias %q to %s on, but %s does not define it.", m.Name, want.Alias, side.verb, spec.Address),
				Remedy: fmt.Sprintf("Write %s = { %s = channel.NAME }.", side.verb, want.Alias)})
		}
	}
}
