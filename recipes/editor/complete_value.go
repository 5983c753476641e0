package editor

import (
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/recipes"
)

// value proposes what can be written in the value of an attribute.
func (c *completion) value(a *attr) {
	if a.in.kind == "locals" {
		c.itself = "local." + a.name
	}
	var open []lexemeKind
	last := a.from - 1
	for i := a.from; i < a.to && c.f.lexemes[i].Start < c.offset; i++ {
		l := c.f.lexemes[i]
		switch {
		case l.kind.opens():
			open = append(open, l.kind)
		case l.kind.closes() && len(open) > 0 && l.End <= c.offset:
			open = open[:len(open)-1]
		}
		last = i
	}
	var inside lexemeKind
	if len(open) > 0 {
		inside = open[len(open)-1]
	}
	switch {
	case inside == openHeredoc:
	case inside == openQuote:
		if len(open) == 1 || open[0] == openBracket {
			c.quotedValue(a, last)
		}
	case inside == openBrace && c.atKey(a, last):
		c.keyOf(a, last, len(open))
	default:
		c.expression(a, last)
	}
}

// quotedValue proposes texts.
func (c *completion) quotedValue(a *attr, last int) {
	start := c.offset
	if l := c.f.lexemes[last]; l.kind == text {
		start = l.Start
	}
	c.begin(start)
	d := a.in.attribute(a.name)
	if d == nil {
		return
	}
	for _, choice := range d.Choices {
		c.add(Item{Label: choice, Kind: ValueItem, Doc: describeAttribute(d)})
	}
	if a.name == "module" {
		for _, name := range c.builtins {
			c.add(Item{Label: "builtin:" + name, Kind: ValueItem, Detail: "ships with terrarium"})
		}
	}
}

// atKey reports whether a key of an object can begin at the cursor.
func (c *completion) atKey(a *attr, last int) bool {
	if last > a.from && c.f.lexemes[last].kind == word && c.f.lexemes[last].touches(c.offset) {
		last--
	}
	k := c.f.lexemes[last].kind
	return k == openBrace || k == comma || k == newline
}

// keyOf proposes the variables that a test can set.
func (c *completion) keyOf(a *attr, last, depth int) {
	if a.in.kind != "test" || a.name != "variables" || depth != 1 {
		return
	}
	if l := c.f.lexemes[last]; l.kind == word && l.touches(c.offset) {
		c.begin(l.Start)
	}
	for _, name := range c.r.names("var") {
		c.add(Item{Label: name, Kind: ThingItem, Detail: "variable", Text: name + " = "})
	}
}

// expression proposes references, functions and values.
func (c *completion) expression(a *attr, last int) {
	steps, ok := c.stepsBefore(a, last)
	if !ok {
		return
	}
	if len(steps) > 0 {
		c.continued(a, steps)
		return
	}
	c.wanted(a)
	c.words(a)
	for i := range vocabulary.schema.Functions {
		fn := &vocabulary.schema.Functions[i]
		c.add(Item{Label: fn.Name, Kind: FunctionItem, Detail: fn.Signature, Doc: aboutFunction(fn), Text: fn.Name + "(", Rank: 6})
	}
	for _, name := range c.r.names(functionRoot) {
		c.add(Item{Label: name, Kind: FunctionItem, Doc: (&target{key: key{functionRoot, name}, in: c.r}).described(), Text: name + "(", Rank: 5})
	}
}

// stepsBefore returns the finished steps of the reference that the cursor is in, and sets
// what the proposals replace. It is not ok after a number, a closing bracket or the like.
func (c *completion) stepsBefore(a *attr, last int) ([]step, bool) {
	i := last
	if i >= a.from && c.f.lexemes[i].kind == word && c.f.lexemes[i].touches(c.offset) {
		c.begin(c.f.lexemes[i].Start)
		i--
	}
	if i < a.from || c.f.lexemes[i].kind != dot {
		return nil, i < a.from || c.startsValue(i)
	}
	end := i // the dot before the cursor
	start := i - 1
	for start >= a.from {
		switch c.f.lexemes[start].kind {
		case word:
			if start == a.from || c.f.lexemes[start-1].kind != dot {
				s := scanner{f: c.f} // its steps end before the dot
				return s.steps(start, end), true
			}
			start -= 2
		case closeBracket:
			for depth := 0; start >= a.from; start-- {
				if k := c.f.lexemes[start].kind; k == closeBracket {
					depth++
				} else if k == openBracket {
					if depth--; depth == 0 {
						break
					}
				}
			}
			start--
		default:
			return nil, false
		}
	}
	return nil, false
}

// startsValue reports whether a value can follow a lexeme.
func (c *completion) startsValue(i int) bool {
	switch k := c.f.lexemes[i].kind; k {
	case word, text, closeBrace, closeBracket, closeParen, closeQuote, closeHeredoc, dot:
		return false
	case other: // an operator, or a number
		b := c.f.text[c.f.lexemes[i].Start]
		return b < '0' || b > '9'
	}
	return true
}

// kindsOf returns the first words of the references that an attribute expects.
func kindsOf(ty recipes.ValueType) []string {
	switch ty {
	case "channels", "channel", "channel or list":
		return []string{"channel"}
	case "creature", "creature or `root`", "creature or list":
		return []string{"creature"}
	case "species", "species or list":
		return []string{"species"}
	case "predicate":
		return []string{"predicate"}
	case "address":
		return []string{"creature", "channel", "recipe"}
	}
	return nil
}

// wanted proposes what fits the type of an attribute.
func (c *completion) wanted(a *attr) {
	d := a.in.attribute(a.name)
	if d == nil {
		return
	}
	for _, choice := range d.Choices {
		c.add(Item{Label: `"` + choice + `"`, Kind: ValueItem, Doc: describeAttribute(d)})
	}
	switch {
	case d.Type == recipes.FlagValue && a.name != "condition":
		c.add(Item{Label: "true", Kind: ValueItem})
		c.add(Item{Label: "false", Kind: ValueItem})
	case a.name == "module":
		for _, name := range c.builtins {
			c.add(Item{Label: `"builtin:` + name + `"`, Kind: ValueItem, Detail: "ships with terrarium"})
		}
	case d.Type == "creature or `root`":
		c.add(Item{Label: "root", Kind: WordItem, Doc: vocabulary.references["root"].Description})
	}
	for _, root := range kindsOf(d.Type) {
		c.things(c.r, root, root+".", 0)
	}
}

// things proposes everything of a kind that a recipe declares.
func (c *completion) things(r *recipe, root, before string, rank int) {
	for _, name := range r.names(root) {
		if len(c.out.Items) > MaxItems { // so that the result is incomplete
			return
		}
		if root == "local" && before+name == c.itself {
			continue // a value cannot refer to itself
		}
		c.add(Item{Label: before + name, Kind: ThingItem, Detail: root, Rank: rank})
	}
}

// fixedAt says where words can be used that no block declares: in which attribute, of
// which block.
var fixedAt = map[string]struct {
	attr   string
	blocks []string
}{
	"root": {"to", []string{"wire"}}, "event": {"match", []string{"policy", "stop_when"}}, "result": {"condition", []string{"test"}}, "graph": {"condition", []string{"check"}},
}

// words proposes first words of references.
func (c *completion) words(a *attr) {
	for i := range vocabulary.schema.References {
		r := &vocabulary.schema.References[i]
		item := Item{Label: r.Name, Kind: WordItem, Detail: r.Form, Doc: r.Description, Text: r.Name + ".", Rank: 4}
		at, fixed := fixedAt[r.Name]
		switch {
		case r.Name == "root":
			continue // see wanted
		case r.Name == "each" && !a.in.hasForEach():
			continue
		case fixed && (a.name != at.attr || !slices.Contains(at.blocks, a.in.kind) && (a.in.parent == nil || !slices.Contains(at.blocks, a.in.parent.kind))):
			continue
		case r.Block != "" && len(c.r.names(r.Name)) == 0:
			continue
		}
		c.add(item)
	}
	for _, root := range []string{"var", "local"} {
		c.things(c.r, root, root+".", 3)
	}
	for _, name := range a.in.iterators(c.f) {
		c.add(Item{Label: name, Kind: WordItem, Detail: name + ".key, " + name + ".value", Text: name + ".", Rank: 1})
	}
	for _, name := range a.parameters(c.f) {
		c.add(Item{Label: name, Kind: WordItem, Detail: "parameter", Rank: 0})
	}
}

func (b *block) hasForEach() bool {
	for ; b != nil; b = b.parent {
		if b.kind != dynamicBlock && b.attr("for_each") != nil {
			return true
		}
	}
	return false
}

// iterators returns the names by which a block refers to the elements of dynamic blocks
// around it.
func (b *block) iterators(f *file) []string {
	var out []string
	for ; b != nil; b = b.parent {
		if b.kind != dynamicBlock {
			continue
		}
		if a := b.attr("iterator"); a != nil {
			out = append(out, strings.TrimSpace(f.source(a.value)))
		} else if l, ok := b.label(); ok {
			out = append(out, l.text)
		}
	}
	return out
}

// parameters returns the names of the parameters that the result of a function can use.
func (a *attr) parameters(f *file) []string {
	if a.in.kind != "function" || a.name != "result" {
		return nil
	}
	var out []string
	for _, name := range []string{"params", "variadic_param"} {
		if p := a.in.attr(name); p != nil {
			for _, l := range f.lexemes[p.from:p.to] {
				if l.kind == word {
					out = append(out, f.source(l.Span))
				}
			}
		}
	}
	return out
}

// continued proposes what can follow the steps of a reference.
func (c *completion) continued(a *attr, steps []step) {
	first := steps[0].name
	for _, name := range a.in.iterators(c.f) {
		if name == first && len(steps) == 1 {
			c.add(Item{Label: "key", Kind: WordItem})
			c.add(Item{Label: "value", Kind: WordItem})
			return
		}
	}
	d := vocabulary.references[first]
	switch {
	case d == nil:
	case len(steps) == 1 && d.Block != "":
		c.things(c.r, first, "", 0)
	case len(steps) == 1:
		for _, m := range d.Members {
			c.add(Item{Label: m.Name, Kind: WordItem, Doc: m.Description})
		}
	case first == "recipe":
		c.members(steps)
	}
}

// members proposes what a reference can name in a sub-recipe.
func (c *completion) members(steps []step) {
	r := c.r
	for range maxDepth {
		sub := r.sub(steps[1].name)
		if sub == nil {
			return
		}
		rest := steps[2:]
		if len(rest) > 0 && rest[0].index {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0:
			c.things(sub, outputRoot, "", 0)
			for k := range vocabulary.references {
				if isMember(k) && len(sub.names(k)) > 0 {
					c.add(Item{Label: k, Kind: WordItem, Text: k + ".", Rank: 1})
				}
			}
			return
		case len(rest) == 1 && isMember(rest[0].name):
			c.things(sub, rest[0].name, "", 0)
			return
		case rest[0].name != "recipe" || len(rest) < 2:
			return
		}
		r, steps = sub, rest
	}
}
