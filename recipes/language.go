package recipes

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Block describes a type of block and its meaning. Recipes are decoded with these
// descriptions, and the reference is generated from them. Texts are Markdown, with links
// relative to docs/reference.
type Block struct {
	Name       string
	Labels     []string // what each label is; empty for most blocks
	Within     []string // the blocks that can contain it; nil: the recipe itself
	Repeated   bool     // it can occur more than once
	Doc        string
	Attributes []Attribute
	// Others describes attributes of any other name; empty: there are none.
	Others string
}

// Attribute describes an attribute of a block.
type Attribute struct {
	Name     string
	Type     ValueType
	Choices  []string // of a [ChoiceValue]
	Required bool
	Default  string // the value if it is absent, as in a recipe
	Without  string // or what its absence means, in words
	// Sensitive hides the value in plans, whatever it is made of.
	Sensitive bool
	Doc       string
}

// ValueType is the type of an attribute's value. Types without a constant are read by the
// code that needs them.
type ValueType string

// The types that are read in the same way everywhere.
const (
	TextValue     ValueType = "text"
	FlagValue     ValueType = "true or false"
	CountValue    ValueType = "whole number from 1"
	SizeValue     ValueType = "size"     // a number of bytes, or a text such as "16MiB"
	DurationValue ValueType = "duration" // a text such as "200ms"
	ChoiceValue   ValueType = "choice"
	TextsValue    ValueType = "list of texts"
	TextMapValue  ValueType = "object of texts"
	WholeValue    ValueType = "whole number"
)

// converted are the types to which the values of attributes are converted.
var converted = map[ValueType]cty.Type{
	TextValue: cty.String, FlagValue: cty.Bool, CountValue: cty.Number, SizeValue: cty.String, DurationValue: cty.String,
	ChoiceValue: cty.String, WholeValue: cty.Number, TextsValue: cty.List(cty.String), TextMapValue: cty.Map(cty.String),
}

// Language returns the descriptions of all blocks.
func Language() []Block { return slices.Clone(language) }

// References returns the descriptions of all first words of references.
func References() []Reference { return slices.Clone(references) }

var blockNamed = func() map[string]*Block {
	out := map[string]*Block{}
	for i := range language {
		out[language[i].Name] = &language[i]
	}
	return out
}()

// attribute finds the description of an attribute. Every attribute that the loader reads
// has one.
func (b *Block) attribute(name string) *Attribute {
	for i := range b.Attributes {
		if b.Attributes[i].Name == name {
			return &b.Attributes[i]
		}
	}
	panic("recipes: a block " + b.Name + " has no attribute " + name)
}

// nestedIn returns the blocks that a block can contain; "" is the recipe itself.
func nestedIn(name string) []*Block {
	var out []*Block
	for i := range language {
		b := &language[i]
		if b.Within == nil && name == "" || slices.Contains(b.Within, name) {
			out = append(out, b)
		}
	}
	return out
}

// dynamic blocks make other blocks; the HCL extension decodes them.
const dynamic = "dynamic"

// schemas are the descriptions in the form that the parser needs; dynamicSchemas also
// allow dynamic blocks everywhere.
var schemas, dynamicSchemas, rootSchema = schemasOf()

func schemasOf() (plain, withDynamic map[string]*hcl.BodySchema, root *hcl.BodySchema) {
	plain, withDynamic = map[string]*hcl.BodySchema{}, map[string]*hcl.BodySchema{}
	for i := range language {
		b := &language[i]
		s := b.schema()
		plain[b.Name] = s
		withDynamic[b.Name] = &hcl.BodySchema{Attributes: s.Attributes, Blocks: append(slices.Clone(s.Blocks), header(dynamic, blockNamed[dynamic].Labels))}
	}
	root = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: rootAttribute.Name}}}
	for _, b := range nestedIn("") {
		root.Blocks = append(root.Blocks, header(b.Name, b.Labels))
	}
	return plain, withDynamic, root
}

func (b *Block) schema() *hcl.BodySchema {
	out := &hcl.BodySchema{}
	for _, a := range b.Attributes {
		out.Attributes = append(out.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required})
	}
	for _, nested := range nestedIn(b.Name) {
		if nested.Name != dynamic {
			out.Blocks = append(out.Blocks, header(nested.Name, nested.Labels))
		}
	}
	return out
}

func header(name string, labels []string) hcl.BlockHeaderSchema {
	return hcl.BlockHeaderSchema{Type: name, LabelNames: labels}
}
