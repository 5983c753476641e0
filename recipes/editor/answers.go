package editor

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/recipes"
)

// Place is a part of a file.
type Place struct {
	Path string
	Span
}

// Definition returns where the thing at an offset is declared: a block, a local value, or
// the file that a text names.
func (w *Workspace) Definition(path string, offset int) []Place {
	w.begin()
	f, r := w.file(path), w.recipeOf(path)
	if f == nil {
		return nil
	}
	t, _, ok := r.at(f, offset)
	if !ok {
		return w.namedFile(r, f, offset)
	}
	var out []Place
	for _, d := range t.in.declarations[t.key] {
		out = append(out, Place{d.f.path, d.at})
	}
	return out
}

// namedFile returns the file that a text at an offset names, such as the script of a
// policy. Only whether it exists is looked up.
func (w *Workspace) namedFile(r *recipe, f *file, offset int) []Place {
	for _, a := range f.within(offset).attrs {
		text, at, ok := f.literal(a)
		if !ok || !at.touches(offset) || a.name != "file" && a.name != "source" {
			continue
		}
		path := filepath.Join(r.dir, filepath.FromSlash(text))
		if a.name == "source" {
			if sub := r.subOf(f, a.in); sub != nil && len(sub.files) > 0 {
				return []Place{{sub.files[0].path, Span{}}}
			}
			return nil
		}
		if inside(r.dir, path) && exists(path) {
			return []Place{{path, Span{}}}
		}
	}
	return nil
}

// References returns every use of the thing at an offset, and its declarations if they are
// wanted.
func (w *Workspace) References(path string, offset int, declarations bool) []Place {
	w.begin()
	f, r := w.file(path), w.recipeOf(path)
	if f == nil {
		return nil
	}
	t, _, ok := r.at(f, offset)
	if !ok {
		return nil
	}
	var out []Place
	if declarations {
		for _, d := range t.in.declarations[t.key] {
			out = append(out, Place{d.f.path, d.at})
		}
	}
	t.uses(func(f *file, at Span, _ *attr) { out = append(out, Place{f.path, at}) })
	return out
}

// uses calls found for every use of a thing, in its recipe and in those around it.
func (t *target) uses(found func(*file, Span, *attr)) {
	for _, r := range append([]*recipe{t.in}, t.in.parents()...) {
		for _, f := range r.files {
			r.all(f, func(o target, a *attr) {
				if o.key == t.key && o.in.same(t.in) {
					found(f, o.at, a)
				}
			})
		}
	}
}

// Symbol is a block or a local value, for an outline.
type Symbol struct {
	Name   string // such as creature "guard"
	Detail string
	Block  string // the type of the block; "locals" for a local value
	Whole  Span
	At     Span // of the name
	Within []Symbol
}

// maxSymbols bounds an outline.
const maxSymbols = 10_000

// Symbols returns the outline of a file.
func (w *Workspace) Symbols(path string) []Symbol {
	w.begin()
	f := w.file(path)
	if f == nil {
		return nil
	}
	left := maxSymbols
	return f.symbols(f.body, &left)
}

func (f *file) symbols(b *block, left *int) []Symbol {
	var out []Symbol
	for _, n := range b.blocks {
		if *left--; *left < 0 {
			break
		}
		s := Symbol{Name: title(n), Block: n.kind, Whole: n.whole, At: n.name}
		if a := n.attr("description"); a != nil {
			s.Detail, _, _ = f.literal(a)
		}
		if l, ok := n.label(); ok {
			s.At = l.Span
		}
		if n.kind == "locals" {
			for _, a := range n.attrs {
				s.Within = append(s.Within, Symbol{Name: "local." + a.name, Block: "locals", Whole: Span{a.at.Start, a.value.End}, At: a.at})
			}
		}
		s.Within = append(s.Within, f.symbols(n, left)...)
		out = append(out, s)
	}
	return out
}

func title(b *block) string {
	out := b.kind
	for _, l := range b.labels {
		out += fmt.Sprintf(" %q", l.text)
	}
	return out
}

// Hover explains the word at an offset in Markdown. It is not ok if there is nothing to
// say.
func (w *Workspace) Hover(path string, offset int) (text string, at Span, ok bool) {
	w.begin()
	f, r := w.file(path), w.recipeOf(path)
	if f == nil {
		return "", Span{}, false
	}
	if t, declared, ok := r.at(f, offset); ok {
		text = t.described()
		if b := f.headAt(offset); declared && b != nil {
			text += "\n\n" + aboutBlock(b)
		}
		return text, t.at, text != ""
	}
	if b := f.headAt(offset); b != nil {
		if text, at, ok := labelChoice(b, offset); ok {
			return text, at, ok
		}
		text = aboutBlock(b)
		return text, b.name, text != ""
	}
	for _, a := range f.within(offset).attrs {
		if a.at.touches(offset) {
			text = aboutAttribute(a)
			return text, a.at, text != ""
		}
	}
	for _, c := range f.calls {
		if fn := vocabulary.functions[c.name]; c.touches(offset) && fn != nil {
			return aboutFunction(fn), c.Span, true
		}
	}
	return f.aboutWord(offset)
}

// headAt returns the block whose type or labels are at an offset, or nil.
func (f *file) headAt(offset int) *block {
	for _, b := range f.within(offset).blocks {
		if b.name.touches(offset) {
			return b
		}
		for _, l := range b.labels {
			if l.touches(offset) {
				return b
			}
		}
	}
	return nil
}

// labelChoice explains a label that has a fixed meaning, such as the event of a policy.
func labelChoice(b *block, offset int) (string, Span, bool) {
	d := b.described()
	for i, l := range b.labels {
		if d == nil || i >= len(d.Labels) || !l.touches(offset) {
			continue
		}
		for _, c := range d.Labels[i].Choices {
			if c.Value == l.text {
				return fmt.Sprintf("`%s`: %s", c.Value, c.Description), l.Span, true
			}
		}
	}
	return "", Span{}, false
}

// aboutWord explains the fixed words of references.
func (f *file) aboutWord(offset int) (string, Span, bool) {
	for _, ref := range f.refs {
		for i, s := range ref.steps[:min(2, len(ref.steps))] {
			d := vocabulary.references[ref.steps[0].name]
			if d == nil || !s.touches(offset) {
				continue
			}
			if i == 0 {
				return fmt.Sprintf("`%s`: %s", d.Form, d.Description), s.Span, true
			}
			for _, m := range d.Members {
				if m.Name == s.name {
					return fmt.Sprintf("`%s.%s`: %s", d.Name, m.Name, m.Description), s.Span, true
				}
			}
		}
	}
	return "", Span{}, false
}

func aboutBlock(b *block) string {
	d := b.described()
	if d == nil {
		return ""
	}
	out := fmt.Sprintf("`%s`: %s", head(d), d.Description)
	if !d.Repeated {
		out += ". At most one"
	}
	return out + "."
}

// head returns the head of a block, with names in place of its labels.
func head(d *recipes.SchemaBlock) string {
	out := d.Name
	for _, l := range d.Labels {
		out += ` "` + strings.ToUpper(l.Name) + `"`
	}
	return out
}

func aboutAttribute(a *attr) string {
	d := a.in.attribute(a.name)
	if d == nil {
		if b := a.in.described(); b != nil && b.OtherAttributes != "" {
			return fmt.Sprintf("`%s`: %s.", a.name, b.OtherAttributes)
		}
		return ""
	}
	return describeAttribute(d)
}

func describeAttribute(d *recipes.SchemaAttribute) string {
	ty := string(d.Type)
	if d.Type == recipes.ChoiceValue {
		ty = "`" + strings.Join(d.Choices, "`, `") + "`"
	}
	out := fmt.Sprintf("`%s` (%s): %s.", d.Name, ty, d.Description)
	switch {
	case d.Required:
		out += "\n\n*Required.*"
	case d.Default != "":
		out += fmt.Sprintf("\n\nDefault: `%s`.", d.Default)
	case d.Without != "":
		out += fmt.Sprintf("\n\nDefault: %s.", d.Without)
	}
	return out
}

func aboutFunction(d *recipes.SchemaFunction) string {
	return fmt.Sprintf("`%s`: %s.", d.Signature, d.Description)
}

// maxQuoted bounds the part of a recipe that a hover quotes.
const maxQuoted = 400

// described returns what is known about a thing.
func (t *target) described() string {
	var out []string
	for _, d := range t.in.declarations[t.key] {
		out = append(out, d.described(t.in))
	}
	if t.key.root == "recipe" && len(out) > 0 {
		if sub := t.in.sub(t.key.name); sub != nil {
			if names := sub.names(outputRoot); len(names) > 0 {
				out = append(out, "Outputs: `"+strings.Join(names[:min(len(names), 20)], "`, `")+"`.")
			}
		}
	}
	return strings.Join(out, "\n\n")
}

func (d *declaration) described(in *recipe) string {
	var b strings.Builder
	if d.a != nil {
		fmt.Fprintf(&b, "```hcl\nlocal.%s = %s\n```", d.name, quoted(strings.TrimSpace(d.f.source(d.a.value))))
	} else {
		fmt.Fprintf(&b, "```hcl\n%s", title(d.b))
		for _, name := range []string{"type", "default", "params", "result", "module", "species", "source", "value"} {
			a := d.b.attr(name)
			if a == nil || (name == "default" || name == "value") && d.secret() {
				continue
			}
			fmt.Fprintf(&b, "\n  %s = %s", name, quoted(strings.TrimSpace(d.f.source(a.value))))
		}
		b.WriteString("\n```")
		if a := d.b.attr("description"); a != nil {
			if text, _, ok := d.f.literal(a); ok {
				b.WriteString("\n\n" + text)
			}
		}
	}
	name, err := filepath.Rel(in.dir, d.f.path)
	if err != nil {
		name = d.f.path
	}
	fmt.Fprintf(&b, "\n\nDeclared in %s.", name)
	return b.String()
}

// secret reports whether a variable or an output is, or may be, sensitive.
func (d *declaration) secret() bool {
	a := d.b.attr("sensitive")
	return a != nil && strings.TrimSpace(d.f.source(a.value)) != "false"
}

// quoted bounds a text, and keeps it within its fence.
func quoted(text string) string {
	text = strings.ReplaceAll(text, "```", "'''")
	if len(text) > maxQuoted {
		return strings.ToValidUTF8(text[:maxQuoted], "") + " …"
	}
	return text
}
