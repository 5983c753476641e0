package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/engine/deploy"
)

const wasmSuffix = ".wasm"

// catalog makes a species from every module in a folder, named CATALOG/FILE. Names of
// blocks have no slash, so the names cannot collide. most bounds the number of species.
func (dec *decoder) catalog(ctx context.Context, d *declaration, most int) []deploy.SpeciesSpec {
	s := scope{title: d.title}
	base := dec.template(s, d)
	text, ok := dec.stringAttr(s, d, "folder")
	if !ok {
		return nil
	}
	expr := d.attr("folder").Expr
	c := dec.modules.openCatalog(s, expr, text)
	if c == nil {
		return nil
	}
	defer c.close()
	names := dec.modules.catalogFiles(s, expr, c, text)
	if len(names) > most {
		dec.fault(s, expr, "Too many species", fmt.Sprintf("The folder has %s. A recipe can have at most %d spawnable species, so only %d more fit.",
			counted(len(names), "module"), deploy.MaxSpecies, max(most, 0)), "Remove the modules that are never spawned.")
		return nil
	}
	var out []deploy.SpeciesSpec
	for _, name := range names {
		m := dec.modules.catalogModule(ctx, s, expr, c, name)
		if m == nil {
			continue
		}
		species := base
		species.Name = dec.names + d.name + "/" + strings.TrimSuffix(name, wasmSuffix)
		species.Spec.Module, species.Spec.Wasm = m.ref, m.wasm
		species.Description = cmp.Or(base.Description, m.description())
		out = append(out, species)
	}
	return out
}

// catalogFolder is the folder of a catalog. On the machine, all reading goes through the
// root, so that symbolic links cannot lead out of it.
type catalogFolder struct {
	abs   string
	files fs.FS
	root  *os.Root // nil in [Options.FS]
}

func (c *catalogFolder) close() {
	if c.root != nil {
		_ = c.root.Close()
	}
}

// openCatalog opens a folder within the recipe's folder or, by its absolute path, any
// other. It returns nil after reporting an error.
func (ms *moduleReader) openCatalog(s scope, expr hcl.Expression, text string) *catalogFolder {
	path := filepath.FromSlash(text)
	rel, err := ms.folder.relative(path)
	switch {
	case text == "":
		ms.fault(s, expr, "No folder", "The path is empty.", "Write the path of a folder with modules.")
		return nil
	case err == nil:
		path = under(ms.folder.abs, rel)
	case !IsAbs(path), ms.leavesFS(path):
		ms.fault(s, expr, "Folder outside the recipe", fmt.Sprintf("%q is outside the recipe's folder.", text),
			"Copy the modules into the recipe's folder, or use an absolute path.")
		return nil
	}
	if !ms.opts.mayRead(path) {
		return nil
	}
	c, err := ms.openBeneath(rel, path)
	if err != nil {
		ms.catalogFault(s, expr, text, path, err)
		return nil
	}
	return c
}

// openBeneath opens rel within the recipe's folder; if rel is empty, it opens path.
func (ms *moduleReader) openBeneath(rel, path string) (*catalogFolder, error) {
	c := &catalogFolder{abs: path}
	at, err := ms.opts.at(path)
	if err != nil {
		return nil, err
	}
	if rel == "" || at.fsys != nil {
		if c.files, c.root, err = at.files(); err == nil && c.root == nil {
			_, err = fs.Stat(c.files, ".") // a missing folder of an fs.FS is found only here
		}
		return c, err
	}
	top, err := os.OpenRoot(ms.folder.abs)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }()
	if c.root, err = top.OpenRoot(rel); err != nil {
		return nil, err
	}
	c.files = c.root.FS()
	return c, nil
}

func (ms *moduleReader) catalogFault(s scope, expr hcl.Expression, text, path string, err error) {
	at, _ := ms.opts.at(path) // its error is err
	info, serr := at.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var siblings []string
		entries, _ := at.dir().readDir() // without entries there is no suggestion
		for _, e := range entries {
			if e.IsDir() {
				siblings = append(siblings, e.Name())
			}
		}
		d := Diagnostic{Summary: "Folder not found", Detail: fmt.Sprintf("There is no folder %s.", path), Suggestion: nearest(filepath.Base(path), siblings)}
		if d.Suggestion == "" {
			d.Remedy = "Relative paths start at the recipe's folder."
		}
		ms.report(s, expr.Range(), d)
	case serr == nil && !info.IsDir():
		ms.fault(s, expr, "Not a folder", fmt.Sprintf("%q is a file; a catalog is a folder with modules.", text), "To use a single module, declare a species.")
	case escapes(err):
		ms.fault(s, expr, "Folder outside the recipe", fmt.Sprintf("%q leads out of the recipe's folder through a symbolic link.", text),
			"Copy the modules into the recipe's folder, or use an absolute path.")
	default:
		ms.fault(s, expr, "Folder cannot be read", fmt.Sprintf("%s: %s", text, sentence(cause(err))), "")
	}
}

// escapes reports whether an [os.Root] refused a name that leads out of it.
func escapes(err error) bool { return strings.Contains(cause(err), "escapes") }

func (ms *moduleReader) catalogFiles(s scope, expr hcl.Expression, c *catalogFolder, text string) []string {
	entries, err := fs.ReadDir(c.files, ".")
	if err != nil {
		ms.fault(s, expr, "Folder cannot be read", sentence(cause(err)), "")
		return nil
	}
	var wasm, others []string
	for _, e := range entries {
		name := e.Name()
		switch stem, is := strings.CutSuffix(name, wasmSuffix); {
		case strings.HasPrefix(name, "."):
		case !is:
			others = append(others, name)
		case !validKey(stem):
			ms.fault(s, expr, "Invalid name", fmt.Sprintf("A species cannot be named after the file %q.", name), nameRule)
		default:
			wasm = append(wasm, name)
		}
	}
	if len(wasm) == 0 {
		detail := fmt.Sprintf("The folder %q is empty.", text)
		if len(others) > 0 {
			detail = fmt.Sprintf("The folder %q contains %s.", text, enumerate(others))
		}
		ms.fault(s, expr, "No modules in this folder", detail, "Each .wasm file in the folder becomes a species. Build the modules first.")
	}
	return wasm
}

// catalogModule reads and inspects one module of a catalog, once.
func (ms *moduleReader) catalogModule(ctx context.Context, s scope, expr hcl.Expression, c *catalogFolder, name string) *module {
	ref := under(c.abs, name)
	m := ms.known[ref]
	if m == nil {
		m = &module{ref: ref}
		ms.known[ref] = m
		if m.wasm, m.err = readWasm(place{c.files, name}); m.err == nil && ms.opts.Inspector != nil {
			m.info, m.err = ms.opts.Inspector.Inspect(ctx, m.wasm)
		}
	}
	if m.err != nil {
		ms.moduleFault(s, expr, name, m)
		return nil
	}
	return m
}
