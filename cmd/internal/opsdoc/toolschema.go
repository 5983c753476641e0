package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/tools"
)

// Paths of the schemas of the group tools: the published copy, and the one with which
// the engine checks arguments.
const (
	toolsPage      = "docs/reference/tools.md"
	toolsSchema    = "docs/reference/tools.schema.json"
	toolsInTheCode = "engine/tools/tools.schema.json"
	toolsForModels = "plugins/agent/tools.json" // as functions that a model may call
)

// addTools adds the reference of the group tools.
func addTools(ctx context.Context, pages map[string][]byte, root string, c comments) error {
	list, i := tools.List(), inference{comments: c}
	for n := range list {
		t := &list[n]
		args, err := i.schemaOf(t.ArgsType)
		if err == nil {
			t.Args, err = json.Marshal(args)
		}
		if err != nil {
			return err
		}
		result, err := i.schemaOf(t.ResultType)
		if err == nil {
			t.Result, err = json.Marshal(result)
		}
		if err != nil {
			return err
		}
	}
	schemas, err := schemaText(map[string]any{"tools": list})
	if err != nil {
		return err
	}
	pages[toolsSchema], pages[toolsInTheCode] = schemas, schemas
	if pages[toolsForModels], err = functions(list); err != nil {
		return err
	}
	examples, refusals, err := runTools(ctx)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, toolsPage))
	if err != nil {
		return err
	}
	if page, err = fill(page, "tools", func(b *bytes.Buffer) { writeTools(b, list, examples) }); err != nil {
		return fmt.Errorf("%s: %w", toolsPage, err)
	}
	page, err = fill(page, "refusals", func(b *bytes.Buffer) { writeRefusals(b, refusals) })
	pages[toolsPage] = page
	return err
}

// functions describes the group tools as models want it, on one line.
func functions(list []tools.Info) ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	var out []function
	for _, t := range list {
		out = append(out, function{t.Name, t.Doc, t.Args})
	}
	line, err := json.Marshal(out)
	return append(line, '\n'), err
}

func writeTools(b *bytes.Buffer, list []tools.Info, examples map[string]example) {
	b.WriteString("| tool | caller | what it does |\n|---|---|---|\n")
	for _, t := range list {
		fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s |\n", t.Name, t.Name, callers(t), cell(t.Doc))
	}
	for _, t := range list {
		fmt.Fprintf(b, "\n### %s\n\n%s For %s.\n\n", t.Name, t.Doc, callers(t))
		writeFields(b, "argument", t.Args)
		writeFields(b, "result", t.Result)
		if e, ok := examples[t.Name]; ok {
			e.write(b)
		}
	}
}

func callers(t tools.Info) string {
	if t.Privileged {
		return "privileged creatures"
	}
	return "every creature"
}

// field is the part of a schema that describes a member of an object.
type field struct {
	Type        any
	Description string
	Enum        []any
	OneOf       []any `json:"oneOf"`
	Items       *struct {
		Type       string
		Properties json.RawMessage
	}
}

// writeFields writes the members of an object, sorted by name.
func writeFields(b *bytes.Buffer, head string, schema json.RawMessage) {
	var s struct {
		Properties map[string]field
		Required   []string
	}
	if err := json.Unmarshal(schema, &s); err != nil || len(s.Properties) == 0 {
		fmt.Fprintf(b, "It has no %ss.\n\n", head)
		return
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		rx, ry := !slices.Contains(s.Required, x), !slices.Contains(s.Required, y)
		if rx != ry {
			if ry {
				return -1
			}
			return 1
		}
		return strings.Compare(x, y)
	})
	fmt.Fprintf(b, "| %s | type | meaning |\n|---|---|---|\n", head)
	for _, name := range names {
		f := s.Properties[name]
		note := ""
		if !slices.Contains(s.Required, name) {
			note = " (optional)"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", name, note, f.typeName(), cell(cmp.Or(f.about(), usual[name])))
	}
	b.WriteByte('\n')
}

func (f *field) typeName() string {
	switch {
	case f.OneOf != nil:
		return "payload"
	case f.Items != nil:
		return "list of " + f.Items.Type + "s"
	}
	return fmt.Sprint(f.Type)
}

// about returns the description and the possible values.
func (f *field) about() string {
	text := f.Description
	var values []string
	for _, v := range f.Enum {
		values = append(values, fmt.Sprintf("`%v`", v))
	}
	if len(values) > 0 && text != "" {
		text += ": "
	}
	return text + strings.Join(values, ", ")
}
