package editor

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/seed47132306/terrarium/abi"
)

// Edit replaces a part of a file.
type Edit struct {
	Place
	Text string
}

// renamed are the things that can be renamed, with the word for each. The name of a policy
// or a test is used by nothing else in a recipe.
var renamed = map[string]string{"var": "variable", "local": "local value", "channel": "channel", "creature": "creature", "species": "species",
	"predicate": "predicate", "recipe": "sub-recipe", functionRoot: "function", outputRoot: "output"}

// moves reports whether a running session finds its data of a thing by the address of the
// thing.
func (k key) moves() bool { return k.root == "channel" || k.root == "creature" || k.root == "recipe" }

// Renameable returns the name at an offset and its place, or an error that says why it
// cannot be renamed.
func (w *Workspace) Renameable(path string, offset int) (name string, at Span, err error) {
	w.begin()
	t, err := w.renameable(path, offset)
	if err != nil {
		return "", Span{}, err
	}
	return t.name, t.at, nil
}

func (w *Workspace) renameable(path string, offset int) (*target, error) {
	f, r := w.file(path), w.recipeOf(path)
	if f == nil {
		return nil, refused("the file cannot be read", "")
	}
	t, _, ok := r.at(f, offset)
	if !ok || renamed[t.root] == "" {
		return nil, refused("there is no name here that can be changed", "put the cursor on the name of a creature, a channel, a variable or the like")
	}
	switch n := len(t.in.declarations[t.key]); {
	case n == 0:
		return nil, refused(fmt.Sprintf("the recipe declares no %s %q", renamed[t.root], t.name), "declare it first, or correct the name")
	case n > 1:
		return nil, refused(fmt.Sprintf("the %s %q is declared twice", renamed[t.root], t.name), "remove one of the two first")
	}
	for _, r := range append([]*recipe{t.in}, t.in.parents()...) {
		if path := r.inJSON(); path != "" {
			return nil, refused(fmt.Sprintf("%s is JSON, in which names cannot be changed", path), "change the name by hand, or convert the file")
		}
	}
	return &t, nil
}

func refused(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "rename", Message: message, Remedy: remedy}
}

// Rename returns the edits that give the thing at an offset another name, in all files of
// its recipe and of the recipes around it. The state of a creature or channel is found by
// its address, so a block moved is added for it unless keep is false. Texts, such as names
// in scripts, are not changed.
func (w *Workspace) Rename(path string, offset int, name string, keep bool) ([]Edit, error) {
	w.begin()
	t, err := w.renameable(path, offset)
	if err != nil {
		return nil, err
	}
	if !hclsyntax.ValidIdentifier(name) {
		return nil, refused(fmt.Sprintf("%q is not a name", name), "use letters, digits, hyphens and underscores, and start with a letter")
	}
	if name == t.name {
		return nil, nil
	}
	if len(t.in.declarations[key{t.root, name}]) > 0 || t.root == functionRoot && vocabulary.functions[name] != nil {
		return nil, refused(fmt.Sprintf("there is already a %s %q", renamed[t.root], name), "choose another name")
	}
	d := t.in.declarations[t.key][0]
	edits := []Edit{{Place{d.f.path, d.at}, name}}
	t.uses(func(f *file, at Span, a *attr) {
		if a != nil && a.in.kind == "moved" { // it says where things were before this change
			return
		}
		edits = append(edits, Edit{Place{f.path, at}, name})
	})
	if keep && t.moves() {
		edits = append(edits, t.moved(d, name)...)
	}
	return edits, nil
}

// moved returns the edits that make sessions find a thing at its new address: a block is
// added, and one that leads away from the new address, as after the opposite change, is
// removed.
func (t *target) moved(d *declaration, name string) []Edit {
	var edits []Edit
	from, to := t.root+"."+t.name, t.root+"."+name
	for _, f := range t.in.files {
		for _, b := range f.body.blocks {
			if a := b.attr("from"); b.kind == "moved" && a != nil && strings.TrimSpace(f.source(a.value)) == to {
				edits = append(edits, Edit{Place{f.path, f.lines(b.whole)}, ""})
			}
		}
	}
	end := len(d.f.text)
	block := fmt.Sprintf("\nmoved {\n  from = %s\n  to   = %s\n}\n", from, to)
	if end > 0 && d.f.text[end-1] != '\n' {
		block = "\n" + block
	}
	return append(edits, Edit{Place{d.f.path, Span{end, end}}, block})
}

// lines extends a span to whole lines, with an empty line before them.
func (f *file) lines(s Span) Span {
	for s.Start > 0 && f.text[s.Start-1] != '\n' {
		s.Start--
	}
	if s.Start > 1 && f.text[s.Start-2] == '\n' {
		s.Start--
	}
	for s.End < len(f.text) && f.text[s.End] != '\n' {
		s.End++
	}
	if s.End < len(f.text) {
		s.End++
	}
	return s
}
