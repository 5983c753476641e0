package editor

import (
	"slices"

	"github.com/seed47132306/terrarium/recipes"
)

// vocabulary is the language of recipes, by name.
var vocabulary = func() (v struct {
	schema     *recipes.Schema
	blocks     map[string]*recipes.SchemaBlock
	references map[string]*recipes.SchemaReference
	functions  map[string]*recipes.SchemaFunction
}) {
	v.schema = recipes.DescribeLanguage("")
	v.blocks, v.references, v.functions = map[string]*recipes.SchemaBlock{}, map[string]*recipes.SchemaReference{}, map[string]*recipes.SchemaFunction{}
	for i := range v.schema.Blocks {
		v.blocks[v.schema.Blocks[i].Name] = &v.schema.Blocks[i]
	}
	for i := range v.schema.References {
		v.references[v.schema.References[i].Name] = &v.schema.References[i]
	}
	for i := range v.schema.Functions {
		v.functions[v.schema.Functions[i].Name] = &v.schema.Functions[i]
	}
	return v
}()

// topLevel reports whether blocks of a type can only be at the top of a recipe.
func topLevel(kind string) bool {
	b := vocabulary.blocks[kind]
	return b != nil && b.Within == nil
}

// The block that makes other blocks, and the one in it with their bodies.
const (
	dynamicBlock = "dynamic"
	contentBlock = "content"
)

// described returns the description of a block; nil for the body of a file, and for a
// block that the language does not have. The content of a dynamic block is like a block of
// the type that it makes.
func (b *block) described() *recipes.SchemaBlock {
	if b.kind == contentBlock && b.parent != nil && b.parent.kind == dynamicBlock {
		if l, ok := b.parent.label(); ok && vocabulary.blocks[l.text] != nil {
			return vocabulary.blocks[l.text]
		}
	}
	return vocabulary.blocks[b.kind]
}

// attributes returns the attributes that a block can have.
func (b *block) attributes() []recipes.SchemaAttribute {
	if b.parent == nil {
		return vocabulary.schema.Attributes
	}
	if d := b.described(); d != nil {
		return d.Attributes
	}
	return nil
}

// attribute returns the description of an attribute, or nil.
func (b *block) attribute(name string) *recipes.SchemaAttribute {
	all := b.attributes()
	if i := slices.IndexFunc(all, func(a recipes.SchemaAttribute) bool { return a.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// nested returns the blocks that a block can contain.
func (b *block) nested() []*recipes.SchemaBlock {
	kind := b.kind
	if d := b.described(); d != nil {
		kind = d.Name
	}
	var out []*recipes.SchemaBlock
	for i := range vocabulary.schema.Blocks {
		n := &vocabulary.schema.Blocks[i]
		if b.parent == nil && n.Within == nil || b.parent != nil && slices.Contains(n.Within, kind) {
			out = append(out, n)
		}
	}
	return out
}

// rootOf returns the first word of references to what a block declares, or the type of
// the block if there is none, as for functions and outputs.
func rootOf(kind string) string {
	for i := range vocabulary.schema.References {
		if r := &vocabulary.schema.References[i]; r.Block == kind {
			return r.Name
		}
	}
	return kind
}
