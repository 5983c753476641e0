package editor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/recipes"
)

// ItemKind says what a proposal is.
type ItemKind uint8

// The kinds of proposal.
const (
	BlockItem ItemKind = iota + 1
	AttributeItem
	FunctionItem
	ThingItem // a creature, a channel, a variable and the like
	WordItem  // a first word of references, or a name after it
	ValueItem // one of the texts that an attribute can have
)

// Item is a proposal for a place.
type Item struct {
	Label   string
	Kind    ItemKind
	Detail  string
	Doc     string // in Markdown
	Text    string // what is written
	Snippet string // the same as a snippet in the syntax of editors; may be empty
	// Rank orders proposals: lower ones come first.
	Rank int
}

// MaxItems bounds how many proposals there are.
const MaxItems = 500

// Proposals are what can be written at a place.
type Proposals struct {
	Items []Item
	// Replaces is the part that has been written already, up to the place.
	Replaces Span
	// Incomplete says that there are more than MaxItems.
	Incomplete bool
}

// completion is one search for proposals.
type completion struct {
	w        *Workspace
	builtins []string
	f        *file
	r        *recipe
	offset   int
	out      Proposals
	prefix   string
	itself   string // the local value that the cursor is in
}

// Complete returns what can be written at an offset. builtins are the names of the
// creatures that ship with the program.
func (w *Workspace) Complete(path string, offset int, builtins []string) Proposals {
	w.begin()
	f := w.file(path)
	if f == nil || offset > len(f.text) {
		return Proposals{}
	}
	c := &completion{w: w, builtins: builtins, f: f, r: w.recipeOf(path), offset: offset, out: Proposals{Replaces: Span{offset, offset}}}
	c.find()
	slices.SortStableFunc(c.out.Items, func(a, b Item) int {
		if a.Rank != b.Rank {
			return a.Rank - b.Rank
		}
		return strings.Compare(a.Label, b.Label)
	})
	if len(c.out.Items) > MaxItems {
		c.out.Items, c.out.Incomplete = c.out.Items[:MaxItems], true
	}
	return c.out
}

// add adds a proposal that continues what is written.
func (c *completion) add(i Item) {
	if len(c.prefix) > len(i.Label) || !strings.EqualFold(i.Label[:len(c.prefix)], c.prefix) {
		return
	}
	if i.Text == "" {
		i.Text = i.Label
	}
	c.out.Items = append(c.out.Items, i)
}

// begin sets what the proposals replace.
func (c *completion) begin(start int) {
	c.out.Replaces = Span{start, c.offset}
	c.prefix = string(c.f.text[start:c.offset])
}

func (c *completion) find() {
	for _, comment := range c.f.comments {
		if comment.Start < c.offset && c.offset <= comment.End {
			return
		}
	}
	b := c.f.within(c.offset)
	last := c.before()
	if last >= 0 && c.f.lexemes[last].kind == text && c.inHeredoc(last) {
		return
	}
	for _, a := range b.attrs {
		if a.value.touches(c.offset) {
			c.value(a)
			return
		}
	}
	for _, n := range b.blocks {
		for i, l := range n.labels {
			if l.touches(c.offset) {
				c.begin(l.Start)
				c.labels(n, i)
				return
			}
		}
	}
	c.itemOf(b, last)
}

// before returns the last lexeme that begins before the cursor, or -1.
func (c *completion) before() int {
	i, _ := slices.BinarySearchFunc(c.f.lexemes, c.offset, func(l lexeme, offset int) int { return l.Start - offset })
	return i - 1
}

func (c *completion) inHeredoc(i int) bool {
	return i > 0 && c.f.lexemes[i-1].kind == openHeredoc && c.offset <= c.f.lexemes[i].End
}

// itemOf proposes attributes and blocks, if the cursor is where one can begin.
func (c *completion) itemOf(b *block, last int) {
	if last >= 0 {
		l := c.f.lexemes[last]
		switch {
		case l.kind == word && l.touches(c.offset):
			c.begin(l.Start)
			last--
		case l.kind == newline || l.kind == openBrace:
		default:
			c.header(b, last)
			return
		}
	}
	if last >= 0 && c.f.lexemes[last].kind != newline && c.f.lexemes[last].kind != openBrace && c.f.lexemes[last].kind != closeBrace {
		return
	}
	for _, a := range b.attributes() {
		if b.attr(a.Name) == nil {
			c.add(Item{Label: a.Name, Kind: AttributeItem, Detail: string(a.Type), Doc: describeAttribute(&a), Text: a.Name + " = ", Rank: rankOf(a.Required)})
		}
	}
	if b.kind == "recipe" {
		c.inputs(b)
	}
	for _, n := range b.nested() {
		if !n.Repeated && slices.ContainsFunc(b.blocks, func(o *block) bool { return o.kind == n.Name }) {
			continue
		}
		c.add(Item{Label: n.Name, Kind: BlockItem, Detail: "block", Doc: n.Description + ".", Text: plainBlock(n), Snippet: snippetOf(n), Rank: 2})
	}
}

func rankOf(required bool) int {
	if required {
		return 0
	}
	return 1
}

// inputs proposes the variables of a sub-recipe.
func (c *completion) inputs(b *block) {
	sub := c.r.subOf(c.f, b)
	if sub == nil {
		return
	}
	for _, name := range sub.names("var") {
		if b.attr(name) == nil {
			c.add(Item{Label: name, Kind: AttributeItem, Detail: "variable", Doc: (&target{key: key{"var", name}, in: sub}).described(), Text: name + " = "})
		}
	}
}

func plainBlock(b *recipes.SchemaBlock) string {
	return b.Name + strings.Repeat(` ""`, len(b.Labels)) + " {\n}"
}

func snippetOf(b *recipes.SchemaBlock) string {
	var out strings.Builder
	out.WriteString(b.Name)
	for i, l := range b.Labels {
		fmt.Fprintf(&out, ` "${%d:%s}"`, i+1, l.Name)
	}
	out.WriteString(" {\n  $0\n}")
	return out.String()
}

// header proposes the label of a block whose header is not finished.
func (c *completion) header(b *block, last int) {
	start := last
	for start > 0 && c.f.lexemes[start-1].kind != newline && c.f.lexemes[start-1].kind != openBrace && c.f.lexemes[start-1].kind != closeBrace {
		start--
	}
	l := c.f.lexemes[last]
	if c.f.lexemes[start].kind != word || l.kind != text && l.kind != openQuote || l.kind == text && !l.touches(c.offset) {
		return
	}
	at, n := c.offset, 0
	for i := start + 1; i <= last; i++ {
		if c.f.lexemes[i].kind == closeQuote {
			n++
		}
	}
	if l.kind == text {
		at = l.Start
	}
	c.begin(at)
	c.labels(&block{kind: c.f.source(c.f.lexemes[start].Span), parent: b}, n)
}

// labels proposes the values of a label.
func (c *completion) labels(b *block, i int) {
	d := b.described()
	if d == nil || i >= len(d.Labels) {
		return
	}
	for _, choice := range d.Labels[i].Choices {
		c.add(Item{Label: choice.Value, Kind: ValueItem, Doc: choice.Description})
	}
	if b.kind == dynamicBlock && b.parent != nil {
		for _, n := range b.parent.nested() {
			if n.Name != dynamicBlock {
				c.add(Item{Label: n.Name, Kind: BlockItem, Doc: n.Description})
			}
		}
	}
}
