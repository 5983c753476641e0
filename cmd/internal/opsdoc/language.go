package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/recipes"
)

const recipesPage = "docs/reference/recipes.md"

// elsewhere lists the blocks that other tables describe, and content, which has no
// attributes of its own.
var elsewhere = map[string]bool{"limits": true, "restart": true, "content": true}

// languageTables returns the tables of the blocks and functions of recipes.
func languageTables() []table {
	tables := []table{
		{recipesPage, "blocks", blocksTable},
		{recipesPage, "references", referenceTable},
		{recipesPage, "functions", functionTable},
		{"docs/reference/limits.md", "restart", func(b *bytes.Buffer) { attributeTable(b, blockOf("restart")) }},
	}
	for _, block := range recipes.Language() {
		if !elsewhere[block.Name] && len(block.Attributes) > 0 {
			tables = append(tables, table{recipesPage, "block " + block.Name, func(b *bytes.Buffer) { blockTable(b, block) }})
		}
	}
	for _, k := range terrarium.ConnectorKinds() {
		attributes := recipes.SettingAttributes(k.Settings())
		if len(attributes) == 0 {
			continue
		}
		tables = append(tables, table{"docs/reference/connectors.md", string(k.Direction()) + " " + k.Name(), func(b *bytes.Buffer) {
			attributeTable(b, recipes.Block{Attributes: attributes})
		}})
	}
	return tables
}

func blockOf(name string) recipes.Block {
	for _, b := range recipes.Language() {
		if b.Name == name {
			return b
		}
	}
	return recipes.Block{}
}

// blocksTable lists the top-level blocks of a recipe.
func blocksTable(b *bytes.Buffer) {
	b.WriteString("| block | how often | meaning |\n|---|---|---|\n")
	for _, block := range recipes.Language() {
		if block.Within == nil {
			fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s |\n", written(block), block.Name, howOften(block), block.Doc)
		}
	}
}

// written returns the head of a block as a recipe writes it.
func written(block recipes.Block) string {
	head := block.Name
	for _, label := range block.Labels {
		head += ` "` + strings.ToUpper(label) + `"`
	}
	return head
}

func howOften(block recipes.Block) string {
	if block.Repeated {
		return "any number"
	}
	return "at most one"
}

// blockTable lists the attributes and the nested blocks of a block.
func blockTable(b *bytes.Buffer, block recipes.Block) {
	attributeTable(b, block)
	var rows []string
	for _, nested := range recipes.Language() {
		for _, in := range nested.Within {
			if in == block.Name {
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", written(nested), howOften(nested), nested.Doc))
			}
		}
	}
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| block | how often | meaning |\n|---|---|---|\n%s", strings.Join(rows, ""))
	}
}

func attributeTable(b *bytes.Buffer, block recipes.Block) {
	b.WriteString("| attribute | type | default | meaning |\n|---|---|---|---|\n")
	for _, a := range block.Attributes {
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", a.Name, typeText(a), defaultText(a), cell(a.Doc))
		b.WriteString(strings.Replace(row, "|  |", "| |", 1))
	}
	if block.Others != "" {
		fmt.Fprintf(b, "| any other | any | | %s |\n", block.Others)
	}
}

func typeText(a recipes.Attribute) string {
	if a.Type != recipes.ChoiceValue {
		return string(a.Type)
	}
	choices := make([]string, len(a.Choices))
	for i, c := range a.Choices {
		choices[i] = "`" + c + "`"
	}
	return strings.Join(choices, ", ")
}

func defaultText(a recipes.Attribute) string {
	switch {
	case a.Required:
		return "*required*"
	case a.Default != "":
		return "`" + a.Default + "`"
	}
	return a.Without
}

// referenceTable lists the first words of references.
func referenceTable(b *bytes.Buffer) {
	b.WriteString("| reference | stands for |\n|---|---|\n")
	for _, r := range recipes.References() {
		form := "`" + r.Form + "`"
		if r.Name != "path" && r.Name != "event" && r.Members != nil {
			names := make([]string, len(r.Members))
			for i, m := range r.Members {
				names[i] = "`" + r.Name + "." + m.Name + "`"
			}
			form = strings.Join(names, ", ")
		}
		fmt.Fprintf(b, "| %s | %s |\n", form, strings.ReplaceAll(r.Doc, "(recipes.md#", "(#"))
	}
}

// functionTable lists the functions, grouped by the values they work on.
func functionTable(b *bytes.Buffer) {
	b.WriteString("| function | works on | returns |\n|---|---|---|\n")
	for _, f := range recipes.Functions() {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Signature, f.Group, cell(f.Doc))
	}
}
