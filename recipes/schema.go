package recipes

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/seed47132306/terrarium/recipes/policy"
)

// SchemaVersion is the version of the form of a [Schema]. It changes when a reader of
// the earlier form could misread the new one; added fields do not change it.
const SchemaVersion = 1

// Schema describes the whole language of recipes as data, for editors and generators. It
// is made from the tables with which recipes are decoded. Texts are Markdown with absolute
// links.
type Schema struct {
	Schema     int               `json:"schema"`    // [SchemaVersion]
	Terrarium  string            `json:"terrarium"` // the version of the program
	Attributes []SchemaAttribute `json:"attributes"`
	Blocks     []SchemaBlock     `json:"blocks"`
	References []SchemaReference `json:"references"`
	Functions  []SchemaFunction  `json:"functions"`
	Types      []SchemaType      `json:"types"`
}

// SchemaBlock describes a type of block.
type SchemaBlock struct {
	Name        string            `json:"name"`
	Labels      []SchemaLabel     `json:"labels,omitempty"`
	Within      []string          `json:"within,omitempty"` // the blocks that can contain it; none: the recipe itself
	Repeated    bool              `json:"repeated,omitempty"`
	Description string            `json:"description"`
	Attributes  []SchemaAttribute `json:"attributes,omitempty"`
	// OtherAttributes describes attributes of any other name; if it is empty, there are
	// none.
	OtherAttributes string `json:"other_attributes,omitempty"`
}

// SchemaLabel describes a label of a block.
type SchemaLabel struct {
	Name    string         `json:"name"`
	Choices []SchemaChoice `json:"choices,omitempty"` // none: any name
}

// SchemaChoice is one of the values that a label can have.
type SchemaChoice struct {
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
}

// SchemaAttribute describes an attribute.
type SchemaAttribute struct {
	Name        string    `json:"name"`
	Type        ValueType `json:"type"`
	Choices     []string  `json:"choices,omitempty"`
	Required    bool      `json:"required,omitempty"`
	Default     string    `json:"default,omitempty"` // as in a recipe
	Without     string    `json:"without,omitempty"` // the same in words
	Description string    `json:"description"`
}

// SchemaReference describes a first word of references.
type SchemaReference struct {
	Name        string         `json:"name"`
	Form        string         `json:"form"`
	Block       string         `json:"block,omitempty"` // that declares what it refers to
	Description string         `json:"description"`
	Members     []SchemaMember `json:"members,omitempty"`
}

// SchemaMember is a fixed name that can follow the first word of a reference.
type SchemaMember struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// SchemaFunction describes a function.
type SchemaFunction struct {
	Name        string            `json:"name"`
	Group       string            `json:"group"`
	Signature   string            `json:"signature"`
	Parameters  []SchemaParameter `json:"parameters,omitempty"`
	Description string            `json:"description"`
}

// SchemaParameter describes a parameter of a function.
type SchemaParameter struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Variadic bool   `json:"variadic,omitempty"` // any number of arguments
}

// SchemaType describes a type of attributes that needs a description.
type SchemaType struct {
	Name        ValueType `json:"name"`
	Description string    `json:"description"`
}

// valueTypes describes the types that are more than their names.
var valueTypes = []SchemaType{
	{SizeValue, "a number of bytes, or a text with a unit such as `\"16MiB\"` or `\"64KiB\"`"},
	{DurationValue, "a text such as `\"200ms\"`, `\"1.5s\"` or `\"2m\"`"},
	{ChoiceValue, "one of the texts in `choices`"},
	{CountValue, "a whole number of at least 1"},
	{TextValue, "a text; a number or a truth value is accepted too"},
	{FlagValue, "`true` or `false`"},
}

// DescribeLanguage returns the language of recipes. version is that of the program.
func DescribeLanguage(version string) *Schema {
	s := &Schema{Schema: SchemaVersion, Terrarium: version, Types: slices.Clone(valueTypes), Attributes: []SchemaAttribute{
		{Name: rootAttribute.Name, Type: rootAttribute.Type, Without: rootAttribute.Without, Description: absoluteLinks(rootAttribute.Doc)},
	}}
	for i := range language {
		s.Blocks = append(s.Blocks, language[i].described())
	}
	for i := range references {
		s.References = append(s.References, references[i].described())
	}
	for _, f := range Functions() {
		s.Functions = append(s.Functions, SchemaFunction{Name: f.Name, Group: f.Group, Signature: f.Signature, Parameters: f.parameters, Description: absoluteLinks(f.Doc)})
	}
	return s
}

// rootAttribute describes the only attribute of a recipe itself.
var rootAttribute = Attribute{Name: "root", Type: "creature", Without: "none", Doc: "[the root](recipes.md#root) of the deployment"}

func (b *Block) described() SchemaBlock {
	out := SchemaBlock{Name: b.Name, Within: b.Within, Repeated: b.Repeated, Description: absoluteLinks(b.Doc), OtherAttributes: absoluteLinks(b.Others)}
	for _, label := range b.Labels {
		l := SchemaLabel{Name: label}
		if label == "event" {
			for _, o := range policy.Occasions {
				l.Choices = append(l.Choices, SchemaChoice{string(o.Kind), absoluteLinks(o.Doc)})
			}
		}
		out.Labels = append(out.Labels, l)
	}
	for _, a := range b.Attributes {
		out.Attributes = append(out.Attributes, SchemaAttribute{Name: a.Name, Type: a.Type, Choices: a.Choices, Required: a.Required,
			Default: a.Default, Without: absoluteLinks(a.Without), Description: absoluteLinks(a.Doc)})
	}
	return out
}

func (r *Reference) described() SchemaReference {
	out := SchemaReference{Name: r.Name, Form: r.Form, Block: r.Block, Description: absoluteLinks(r.Doc)}
	for _, m := range r.Members {
		out.Members = append(out.Members, SchemaMember{m.Name, absoluteLinks(m.Doc)})
	}
	return out
}

// parametersOf describes the parameters of a function.
func parametersOf(fn function.Function) []SchemaParameter {
	var out []SchemaParameter
	for _, p := range fn.Params() {
		out = append(out, SchemaParameter{Name: p.Name, Type: typeName(p.Type)})
	}
	if p := fn.VarParam(); p != nil {
		out = append(out, SchemaParameter{Name: p.Name, Type: typeName(p.Type), Variadic: true})
	}
	return out
}

func typeName(ty cty.Type) string {
	if ty == cty.DynamicPseudoType || ty.IsCapsuleType() { // an expression that is not evaluated first
		return "any"
	}
	return ty.FriendlyName()
}

// manual is the address of docs/reference.
const manual = "https://github.com/seed47132306/terrarium/blob/main/docs/reference/"

// absoluteLinks replaces links relative to docs/reference, which all name a page.
func absoluteLinks(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "](")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("](")
		if target, _, _ := strings.Cut(rest, ")"); !strings.Contains(target, "://") {
			b.WriteString(manual)
		}
		text = rest
	}
}
