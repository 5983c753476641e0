package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/recipes"
)

func schemaCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "schema [NAME...]",
		Short: "Describe the language of recipes",
		Long: `schema prints the blocks, attributes, references and functions of recipes. With
names, it prints only the blocks, references and functions of these names.

With -o json, the output is for editors and generators. Descriptions are Markdown.
The member schema is the version of this format. The version changes when a reader
of the earlier format could misread the new one.`,
		Example: "  terrarium schema creature limits\n  terrarium schema -o json",
		Args:    arguments(0, 64),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			language := recipes.DescribeLanguage(terrarium.Version)
			if len(args) > 0 {
				if err := selectNames(language, args); err != nil {
					return err
				}
			}
			if format == "json" {
				enc := json.NewEncoder(s.out)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				return failWith(exitFailed, enc.Encode(language))
			}
			_, err := io.WriteString(s.out, schemaText(language))
			return failWith(exitFailed, err)
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

// selectNames leaves only what has one of the names.
func selectNames(l *recipes.Schema, names []string) error {
	known := map[string]bool{}
	drop := func(name string) bool {
		known[name] = true
		return !slices.Contains(names, name)
	}
	l.Blocks = slices.DeleteFunc(l.Blocks, func(b recipes.SchemaBlock) bool { return drop(b.Name) })
	l.References = slices.DeleteFunc(l.References, func(r recipes.SchemaReference) bool { return drop(r.Name) })
	l.Functions = slices.DeleteFunc(l.Functions, func(f recipes.SchemaFunction) bool { return drop(f.Name) })
	l.Attributes, l.Types = []recipes.SchemaAttribute{}, []recipes.SchemaType{}
	for _, name := range names {
		if !known[name] {
			return usage("there is no block, reference or function named %q; terrarium schema lists all", name)
		}
	}
	return nil
}

// schemaText describes the language for people.
func schemaText(l *recipes.Schema) string {
	var parts []string
	for _, a := range l.Attributes {
		parts = append(parts, attributeText(&a, ""))
	}
	for i := range l.Blocks {
		parts = append(parts, blockText(&l.Blocks[i]))
	}
	for _, r := range l.References {
		text := describeLine("", r.Form, r.Description)
		for _, m := range r.Members {
			text += describeLine("  ", m.Name, m.Description)
		}
		parts = append(parts, text)
	}
	for _, f := range l.Functions {
		parts = append(parts, describeLine("", f.Signature, f.Description))
	}
	for _, t := range l.Types {
		parts = append(parts, describeLine("", "type "+string(t.Name), t.Description))
	}
	return strings.Join(parts, "\n")
}

func blockText(b *recipes.SchemaBlock) string {
	head := b.Name
	for _, l := range b.Labels {
		head += ` "` + strings.ToUpper(l.Name) + `"`
	}
	often := "at most one"
	if b.Repeated {
		often = "any number"
	}
	if len(b.Within) > 0 {
		often += ", in " + strings.Join(b.Within, ", ")
	}
	text := describeLine("", head, b.Description+"; "+often)
	for _, l := range b.Labels {
		for _, c := range l.Choices {
			text += describeLine("  ", strings.ToUpper(l.Name)+" "+c.Value, c.Description)
		}
	}
	for i := range b.Attributes {
		text += attributeText(&b.Attributes[i], "  ")
	}
	if b.OtherAttributes != "" {
		text += describeLine("  ", "any other", b.OtherAttributes)
	}
	return text
}

func attributeText(a *recipes.SchemaAttribute, indent string) string {
	ty := string(a.Type)
	if a.Type == recipes.ChoiceValue {
		ty = strings.Join(a.Choices, " | ")
	}
	notes := a.Description
	switch {
	case a.Required:
		notes += "; required"
	case a.Default != "":
		notes += "; default: " + a.Default
	case a.Without != "":
		notes += "; default: " + a.Without
	}
	return describeLine(indent, fmt.Sprintf("%s (%s)", a.Name, ty), notes)
}

// describeLine returns a name and, on a line of its own, what it means.
func describeLine(indent, name, meaning string) string {
	return plainMarkdown(indent+name) + "\n" + indent + "    " + plainMarkdown(meaning) + "\n"
}

// plainMarkdown removes links and code marks.
func plainMarkdown(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "](")
		if !found {
			b.WriteString(text)
			break
		}
		if i := strings.LastIndexByte(before, '['); i >= 0 {
			before = before[:i] + before[i+1:]
		}
		b.WriteString(before)
		_, text, _ = strings.Cut(rest, ")")
	}
	return strings.ReplaceAll(b.String(), "`", "")
}
