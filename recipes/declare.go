package recipes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// declaration is one block of a recipe, or one local value.
type declaration struct {
	kind    string // the block's type
	name    string
	event   string // of a policy
	title   string // for messages, for example: creature "reviewer"
	at      hcl.Range
	place   *Diagnostic // the same as at, for later findings; nil until it is needed
	content *hcl.BodyContent
	expr    hcl.Expression // of a local value
	failed  bool           // it has an error
	// refersTo is the kind of thing that a variable refers to, or empty
	refersTo string
	body     hcl.Body
	dynamic  bool // it has dynamic blocks; see blocks

	made     hcl.Blocks // what the dynamic blocks made, for the instance madeFor
	madeFor  *instance
	madeOnce bool

	instances []instance // made by for_each; see expand
	own       *Block     // what it can have, if that depends on its labels; nil: what its type can have
}

func (d *declaration) shape() *Block {
	if d.own != nil {
		return d.own
	}
	return blockNamed[d.kind]
}

func (d *declaration) attr(name string) *hcl.Attribute {
	if d.content == nil {
		return nil
	}
	return d.content.Attributes[name]
}

func title(kind string, labels []string) string {
	for _, l := range labels {
		kind += fmt.Sprintf(" %q", l)
	}
	return kind
}

// declarations are the blocks in the files of a recipe.
type declarations struct {
	*reporter
	folder   *folder
	singles  map[string]*declaration            // terrarium, session
	decls    map[string]map[string]*declaration // by kind and name
	ordered  map[string][]*declaration          // by kind, as declared
	root     *hcl.Attribute
	tests    hcl.Blocks
	funcs    []*declaration
	moved    []*declaration
	contents map[*hcl.Block]*hcl.BodyContent // of nested blocks

	broken bool            // a file could not be parsed, so declarations may be missing
	astray bool            // an edge is wrong or a block is misspelt, so edges may be missing
	used   map[string]bool // channels that an edge mentions, even wrongly
}

func newDeclarations(rep *reporter, f *folder) *declarations {
	return &declarations{
		reporter: rep, folder: f, singles: map[string]*declaration{}, decls: map[string]map[string]*declaration{},
		ordered: map[string][]*declaration{}, contents: map[*hcl.Block]*hcl.BodyContent{}, used: map[string]bool{},
	}
}

// fileKind says which blocks a file can have.
type fileKind bool

const (
	blocksOfRecipe fileKind = false // all
	blocksOfTests  fileKind = true  // only tests
)

func (ds *declarations) declare(body hcl.Body, kind fileKind) {
	content, diags := body.Content(rootSchema)
	for _, d := range diags {
		ds.hcl("", d)
		ds.astray = ds.astray || d.Summary == "Unsupported block type"
	}
	if kind == blocksOfTests {
		content = ds.onlyTests(content)
	}
	if a := content.Attributes["root"]; a != nil {
		if ds.root != nil {
			ds.duplicate("root", "The root", a.NameRange, ds.root.NameRange)
		} else {
			ds.root = a
		}
	}
	// JSON has no order across block types, so sort by position.
	slices.SortStableFunc(content.Blocks, func(a, b *hcl.Block) int { return a.DefRange.Start.Byte - b.DefRange.Start.Byte })
	for _, b := range content.Blocks {
		ds.declareBlock(b)
	}
}

// onlyTests reports what does not belong in a file with tests.
func (ds *declarations) onlyTests(content *hcl.BodyContent) *hcl.BodyContent {
	refuse := func(t string, at hcl.Range) {
		ds.report(scope{title: t}, at, Diagnostic{Summary: "Not in a file with tests", Detail: "A file with the ending " + testEnding + ".hcl has only blocks of the type test.",
			Remedy: "Move it into the recipe."})
	}
	if a := content.Attributes["root"]; a != nil {
		refuse("", a.NameRange)
	}
	out := &hcl.BodyContent{}
	for _, b := range content.Blocks {
		if b.Type == "test" {
			out.Blocks = append(out.Blocks, b)
		} else {
			refuse(title(b.Type, b.Labels), b.DefRange)
		}
	}
	return out
}

func (ds *declarations) declareBlock(b *hcl.Block) {
	t := title(b.Type, b.Labels)
	switch {
	case b.Type == "locals":
		ds.declareLocals(b)
	case b.Type == "test":
		ds.tests = append(ds.tests, b)
	case b.Type == "moved":
		ds.moved = append(ds.moved, &declaration{kind: b.Type, title: t, at: b.DefRange, content: ds.content(t, b)})
	case b.Type == "function":
		ds.declareFunction(b, t)
	case len(b.Labels) == 0:
		d := &declaration{kind: b.Type, title: t, at: b.DefRange}
		if first := ds.singles[b.Type]; first != nil {
			ds.duplicate(t, "The block "+b.Type, b.DefRange, first.at)
			return
		}
		d.content = ds.content(t, b)
		ds.singles[b.Type] = d
	default:
		ds.declareNamed(b, t)
	}
}

func (ds *declarations) declareNamed(b *hcl.Block, t string) {
	n := len(b.Labels) - 1
	d := &declaration{kind: b.Type, name: b.Labels[n], title: t, at: b.DefRange}
	if n > 0 {
		d.event = b.Labels[0]
	}
	if !hclsyntax.ValidIdentifier(d.name) {
		ds.report(scope{title: t}, b.LabelRanges[n], Diagnostic{Summary: "Invalid name",
			Detail: fmt.Sprintf("%q cannot be used in a reference.", d.name),
			Remedy: "Use letters, digits, hyphens and underscores, and start with a letter."})
	}
	key := d.name
	if d.event != "" {
		key = d.event + " " + d.name // policies on different events may share a name
	}
	if ds.decls[d.kind] == nil {
		ds.decls[d.kind] = map[string]*declaration{}
	}
	switch {
	case d.kind == "recipe":
		d.content = ds.inputsContent(t, b)
	case isConnector(d.kind):
		d.content, key = ds.openContent(t, b), d.name // names are unique, whatever the kind
	default:
		d.content = ds.content(t, b)
		d.body = b.Body
		d.dynamic = ds.usesDynamic(t, b, d.content.Blocks)
		d.content.Blocks = slices.DeleteFunc(d.content.Blocks, func(n *hcl.Block) bool { return n.Type == dynamic })
	}
	if first := ds.decls[d.kind][key]; first != nil {
		ds.duplicate(t, "A "+t, b.DefRange, first.at)
		return
	}
	ds.decls[d.kind][key] = d
	ds.ordered[d.kind] = append(ds.ordered[d.kind], d)
}

func (ds *declarations) declareLocals(b *hcl.Block) {
	attrs, diags := b.Body.JustAttributes()
	for _, d := range diags {
		ds.hcl("locals", d)
	}
	if ds.decls["local"] == nil {
		ds.decls["local"] = map[string]*declaration{}
	}
	var found []*declaration
	for name, a := range attrs {
		d := &declaration{kind: "local", name: name, title: "local." + name, at: a.NameRange, expr: a.Expr}
		if first := ds.decls["local"][name]; first != nil {
			ds.duplicate("locals", "local."+name, a.NameRange, first.at)
			continue
		}
		ds.decls["local"][name] = d
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b *declaration) int { return a.at.Start.Byte - b.at.Start.Byte })
	ds.ordered["locals"] = append(ds.ordered["locals"], found...)
}

// content decodes the body of a block as far as possible.
func (ds *declarations) content(t string, b *hcl.Block) *hcl.BodyContent {
	content, diags := b.Body.Content(dynamicSchemas[b.Type])
	meant := misspelt(b, content)
	for _, d := range diags {
		if m := required.FindStringSubmatch(d.Detail); m != nil && (ds.broken || content.Attributes[m[1]] != nil) {
			continue
		}
		if m := unexpected.FindStringSubmatch(d.Detail); m != nil && meant[m[1]] != "" {
			d.Detail = fmt.Sprintf("%s Did you mean %q?", didYouMean.ReplaceAllString(d.Detail, ""), meant[m[1]])
		}
		ds.hcl(t, d)
	}
	content.Blocks = ds.distinct(t, content.Blocks)
	return content
}

// blockBody is the content of a nested block.
type blockBody struct {
	*hcl.BodyContent
	block *Block
}

func (b blockBody) shape() *Block { return b.block }

func (b blockBody) attr(name string) *hcl.Attribute { return b.Attributes[name] }

func (ds *declarations) blockContent(t string, b *hcl.Block) blockBody {
	c, ok := ds.contents[b]
	if !ok {
		c = ds.content(t, b)
		ds.contents[b] = c
	}
	return blockBody{c, blockNamed[b.Type]}
}

// The HCL library gives these names only in the texts of its errors.
var (
	required   = regexp.MustCompile(`^The argument "([^"]*)" is required`)
	unexpected = regexp.MustCompile(`^(?:An argument|No argument or block type is) named "([^"]*)"`)
)

// misspelt accepts attributes whose names resemble those of missing attributes, so that
// one slip is reported once. It returns the intended names.
func misspelt(b *hcl.Block, content *hcl.BodyContent) map[string]string {
	var missing []string
	known := map[string]bool{}
	for _, a := range dynamicSchemas[b.Type].Attributes {
		known[a.Name] = true
		if content.Attributes[a.Name] == nil {
			missing = append(missing, a.Name)
		}
	}
	meant := map[string]string{}
	written, _ := b.Body.JustAttributes() // other mistakes in the body have been reported
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if near := nearest(name, missing); !known[name] && isSlip(name, near) && content.Attributes[near] == nil {
			// Look it up by name, so that a metered body returns a metered expression.
			one, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
			if one.Attributes[name] != nil {
				content.Attributes[near] = one.Attributes[name]
				meant[name] = near
			}
		}
	}
	return meant
}

// distinct returns the nested blocks without duplicates.
func (rep *reporter) distinct(t string, blocks hcl.Blocks) hcl.Blocks {
	var kept hcl.Blocks
	seen := map[string]*hcl.Block{}
	for _, nested := range blocks {
		first := seen[title(nested.Type, nested.Labels)]
		switch {
		case nested.Type == dynamic:
			kept = append(kept, nested) // any number is allowed
			continue
		case first != nil:
			rep.duplicate(t, "The block "+title(nested.Type, nested.Labels), nested.DefRange, first.DefRange)
			continue
		}
		if len(nested.Labels) > 0 || !blockNamed[nested.Type].Repeated {
			seen[title(nested.Type, nested.Labels)] = nested
		}
		kept = append(kept, nested)
	}
	return kept
}

// inputsContent decodes the block of a sub-recipe, whose attributes are the variables of
// that recipe.
func (ds *declarations) inputsContent(t string, b *hcl.Block) *hcl.BodyContent {
	attributes, diags := b.Body.JustAttributes()
	for _, d := range diags {
		ds.hcl(t, d)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if attributes["source"] == nil && nearest(name, []string{"source"}) != "" {
			attributes["source"] = attributes[name]
			delete(attributes, name)
			ds.report(scope{title: t}, attributes["source"].NameRange, Diagnostic{Summary: "Unsupported argument",
				Detail: fmt.Sprintf("An argument named %q is not expected here.", name), Suggestion: "source"})
		}
	}
	if attributes["source"] == nil && !ds.broken {
		ds.report(scope{title: t}, b.DefRange, Diagnostic{Summary: "Missing required argument",
			Detail: `The argument "source" is required, but no definition was found.`, Remedy: `Add source = "./FOLDER".`})
	}
	return &hcl.BodyContent{Attributes: attributes}
}

func (rep *reporter) duplicate(t, what string, at, first hcl.Range) {
	rep.report(scope{title: t}, at, Diagnostic{Summary: "Declared twice",
		Detail: fmt.Sprintf("%s was already declared at %s.", capital(what), rep.where(first)), Remedy: "Remove or rename one of the two."})
}

// capital writes the first letter of a sentence in upper case, unless the sentence begins with
// a name that has to be spelled exactly.
func capital(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if s == "" || strings.HasPrefix(s, "local.") || strings.Contains(word, "_") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
