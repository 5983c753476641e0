package editor

import (
	"path/filepath"
	"slices"
	"strings"
)

// key identifies a thing of a recipe, by the first word of references to it.
type key struct{ root, name string }

// Roots of things that references name in another way.
const (
	functionRoot = "function"
	outputRoot   = "output"
)

// declaration is where a thing is declared.
type declaration struct {
	key
	f  *file
	at Span   // of the name
	b  *block // nil for a local value
	a  *attr  // of a local value
}

// recipe is the files of one recipe.
type recipe struct {
	w            *Workspace
	path         string // of the folder, or of the only file
	dir          string
	files        []*file
	declarations map[key][]*declaration
}

// recipeOf returns the recipe that a file belongs to.
func (w *Workspace) recipeOf(path string) *recipe {
	dir := filepath.Dir(path)
	files := w.folder(dir)
	if w.together(files) {
		return w.recipe(dir, dir, files)
	}
	i := slices.IndexFunc(files, func(f *file) bool { return f.path == path })
	if i < 0 {
		return w.recipe(path, dir, nil)
	}
	return w.recipe(path, dir, files[i:i+1])
}

// recipesIn returns the recipes of a folder.
func (w *Workspace) recipesIn(dir string) []*recipe {
	files := w.folder(dir)
	if w.together(files) {
		return []*recipe{w.recipe(dir, dir, files)}
	}
	var out []*recipe
	for i, f := range files {
		out = append(out, w.recipe(f.path, dir, files[i:i+1]))
	}
	return out
}

// recipeAt returns the recipe at a path, which names a folder or a file.
func (w *Workspace) recipeAt(path string) *recipe {
	if !isRecipe(filepath.Base(path)) {
		return w.recipe(path, path, w.folder(path))
	}
	if f := w.file(path); f != nil {
		return w.recipe(path, filepath.Dir(path), []*file{f})
	}
	return w.recipe(path, filepath.Dir(path), nil)
}

// recipe returns a recipe of some files; the same one as before, if they are unchanged.
func (w *Workspace) recipe(path, dir string, files []*file) *recipe {
	if r := w.known[path]; r != nil && slices.Equal(r.files, files) {
		return r
	}
	r := &recipe{w: w, path: path, dir: dir, files: slices.Clone(files), declarations: map[key][]*declaration{}}
	for _, f := range files {
		r.declare(f)
	}
	w.known[path] = r
	return r
}

// together reports whether the files of a folder are one recipe.
func (w *Workspace) together(files []*file) bool {
	switch {
	case w.layout == Folders:
		return true
	case w.layout == Files || len(files) < 2:
		return false
	}
	declared := map[key]int{}
	own := make([]map[key]bool, len(files))
	for i, f := range files {
		own[i] = map[key]bool{}
		for _, d := range declarationsOf(f) {
			if !own[i][d.key] {
				own[i][d.key] = true
				declared[d.key]++
			}
		}
	}
	for i, f := range files {
		if len(f.body.blocks) > 0 && !slices.ContainsFunc(f.body.blocks, func(b *block) bool { return b.kind == "creature" || b.kind == "recipe" }) {
			return true
		}
		for _, ref := range f.refs {
			if len(ref.steps) > 1 {
				if k := (key{ref.steps[0].name, ref.steps[1].name}); declared[k] > 0 && !own[i][k] {
					return true
				}
			}
		}
	}
	return false
}

func (r *recipe) declare(f *file) {
	for _, d := range declarationsOf(f) {
		r.declarations[d.key] = append(r.declarations[d.key], d)
	}
}

// declarationsOf returns what a text declares.
func declarationsOf(f *file) []*declaration {
	var out []*declaration
	for _, b := range f.body.blocks {
		if b.kind == "locals" {
			for _, a := range b.attrs {
				out = append(out, &declaration{key: key{"local", a.name}, f: f, at: a.at, a: a})
			}
			continue
		}
		l, ok := b.label()
		if ok && l.text != "" && topLevel(b.kind) {
			out = append(out, &declaration{key: key{rootOf(b.kind), l.text}, f: f, at: l.Span, b: b})
		}
	}
	return out
}

// names returns the names of the things of a kind, sorted.
func (r *recipe) names(root string) []string {
	var out []string
	for k := range r.declarations {
		if k.root == root {
			out = append(out, k.name)
		}
	}
	slices.Sort(out)
	return out
}

// same reports whether two recipes have the same files: a folder with one file and that
// file are the same recipe.
func (r *recipe) same(o *recipe) bool { return r.path == o.path || slices.Equal(r.files, o.files) }

// maxAlike bounds how many declarations of one sub-recipe are looked at; all but one of
// them are mistakes.
const maxAlike = 4

// sub returns a sub-recipe, or nil if its source is not plain or not to be read.
func (r *recipe) sub(name string) *recipe {
	alike := r.declarations[key{"recipe", name}]
	for _, d := range alike[:min(len(alike), maxAlike)] {
		if s := r.subOf(d.f, d.b); s != nil {
			return s
		}
	}
	return nil
}

func (r *recipe) subOf(f *file, b *block) *recipe {
	source := b.attr("source")
	if source == nil {
		return nil
	}
	text, _, ok := f.literal(source)
	if !ok || text == "" || filepath.IsAbs(text) {
		return nil
	}
	path := filepath.Join(r.dir, filepath.FromSlash(text))
	if !inside(r.dir, path) || path == r.path {
		return nil
	}
	return r.w.recipeAt(path)
}

// target is a thing that a step of a reference names.
type target struct {
	key
	in *recipe
	at Span
}

// isMember reports whether things of a kind are members of their recipe, to which the
// recipe around it can refer.
func isMember(root string) bool {
	switch root {
	case "channel", "creature", "predicate", "recipe", "species":
		return true
	}
	return false
}

// maxDepth bounds how many sub-recipes a reference can pass.
const maxDepth = 8

// targets returns the things that a reference names, the outermost first.
func (r *recipe) targets(steps []step) []target {
	var out []target
	for range maxDepth {
		if len(steps) < 2 || steps[1].index || vocabulary.references[steps[0].name] == nil || vocabulary.references[steps[0].name].Block == "" {
			return out
		}
		k := key{steps[0].name, steps[1].name}
		out = append(out, target{k, r, steps[1].Span})
		if k.root != "recipe" {
			return out
		}
		sub := r.sub(k.name)
		if sub == nil {
			return out
		}
		steps = steps[2:]
		if len(steps) > 0 && steps[0].index {
			steps = steps[1:]
		}
		if len(steps) > 0 && !isMember(steps[0].name) && !steps[0].index {
			return append(out, target{key{outputRoot, steps[0].name}, sub, steps[0].Span})
		}
		r = sub
	}
	return out
}

// others calls found for each name of a thing that is not in a reference: the functions
// that are called, and the variables that get a value in a test or in the block of a
// sub-recipe.
func (r *recipe) others(f *file, found func(target)) {
	for _, c := range f.calls {
		if vocabulary.functions[c.name] == nil {
			found(target{key{functionRoot, c.name}, r, c.Span})
		}
	}
	for _, b := range f.body.blocks {
		switch b.kind {
		case "recipe":
			sub := r.subOf(f, b)
			for _, a := range b.attrs {
				if sub != nil && b.attribute(a.name) == nil {
					found(target{key{"var", a.name}, sub, a.at})
				}
			}
		case "test":
			if a := b.attr("variables"); a != nil {
				for _, l := range f.keys(a) {
					found(target{key{"var", l.text}, r, l.Span})
				}
			}
		}
	}
}

// keys returns the keys of an object, as far as they are plain words.
func (f *file) keys(a *attr) []label {
	var out []label
	depth := 0
	for i := a.from; i < a.to; i++ {
		l := f.lexemes[i]
		switch {
		case l.kind.opens():
			depth++
		case l.kind.closes():
			depth--
		case depth == 1 && l.kind == word && i+1 < a.to && (f.lexemes[i+1].kind == equals || f.lexemes[i+1].kind == colon):
			out = append(out, label{f.source(l.Span), l.Span})
		}
	}
	return out
}

// all calls found for every name of a thing in a text.
func (r *recipe) all(f *file, found func(target, *attr)) {
	for _, ref := range f.refs {
		for _, t := range r.targets(ref.steps) {
			found(t, ref.in)
		}
	}
	r.others(f, func(t target) { found(t, nil) })
}

// at returns the thing whose name is at an offset. declared says that it is declared
// there.
func (r *recipe) at(f *file, offset int) (t target, declared, ok bool) {
	for _, ds := range r.declarations {
		for _, d := range ds {
			if d.f == f && d.at.touches(offset) {
				return target{d.key, r, d.at}, true, true
			}
		}
	}
	for _, ref := range f.refs {
		if ref.steps[0].Start > offset || ref.steps[len(ref.steps)-1].End < offset {
			continue
		}
		for _, t := range r.targets(ref.steps) {
			if t.at.touches(offset) {
				return t, false, true
			}
		}
	}
	r.others(f, func(o target) {
		if o.at.touches(offset) {
			t, ok = o, true
		}
	})
	return t, false, ok
}

// parents returns the recipes that may have a recipe as a sub-recipe: those in its own
// folder and in the folders around it, within the folder that the editor has opened.
func (r *recipe) parents() []*recipe {
	top := r.w.Root(r.path)
	var out []*recipe
	for dir := r.dir; inside(top, dir) && len(out) < maxFiles; dir = filepath.Dir(dir) {
		for _, p := range r.w.recipesIn(dir) {
			if !p.same(r) && len(p.names("recipe")) > 0 {
				out = append(out, p)
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return out
}

// parent returns a recipe that has this one as a sub-recipe, or nil.
func (r *recipe) parent() *recipe {
	for _, p := range r.parents() {
		for _, name := range p.names("recipe") {
			if sub := p.sub(name); sub != nil && sub.same(r) {
				return p
			}
		}
	}
	return nil
}

// inJSON returns the path of a file in JSON, whose references are not known.
func (r *recipe) inJSON() string {
	for _, f := range r.files {
		if strings.HasSuffix(f.path, ".json") {
			return f.path
		}
	}
	return ""
}
