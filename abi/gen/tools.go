package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A toolSpec describes a group tool, for the typed functions of the kits.
type toolSpec struct {
	Name, Doc  string
	Privileged bool
	Args       []toolArg // those that are required first, in the order of the schema
}

// A toolArg is one argument of a group tool. Type is string, payload, object, integer,
// boolean or wires: a list of objects with channel and alias.
type toolArg struct {
	Name, Doc, Type string
	Required        bool
	Enum            []string
}

// schema is the part of a JSON Schema that tools.schema.json uses.
type schema struct {
	Type, Description string
	Enum              []string
	Required          []string
	OneOf             []json.RawMessage
	Properties        properties
}

// properties are the members of an object, in their order.
type properties []property

type property struct {
	name string
	schema
}

// UnmarshalJSON reads the members of an object in their order.
func (p *properties) UnmarshalJSON(text []byte) error {
	var values map[string]schema
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	names, err := memberNames(text)
	if err != nil {
		return err
	}
	for _, name := range names {
		*p = append(*p, property{name, values[name]})
	}
	return nil
}

// memberNames returns the names of the members of a JSON object, in their order.
func memberNames(object []byte) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		names = append(names, name.(string))
	}
	return names, nil
}

// toolSpecs reads the group tools from their published schemas.
func toolSpecs(root string) ([]toolSpec, error) {
	const path = "docs/reference/tools.schema.json"
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return nil, err
	}
	var file struct {
		Tools []struct {
			Name, Doc  string
			Privileged bool
			Args       schema
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var specs []toolSpec
	for _, t := range file.Tools {
		spec := toolSpec{Name: t.Name, Doc: t.Doc, Privileged: t.Privileged}
		for _, p := range t.Args.Properties {
			kind, err := argType(&p.schema)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %s: %w", path, t.Name, p.name, err)
			}
			spec.Args = append(spec.Args, toolArg{
				Name: p.name, Doc: p.Description, Type: kind, Enum: p.Enum,
				Required: slices.Contains(t.Args.Required, p.name),
			})
		}
		slices.SortStableFunc(spec.Args, func(a, b toolArg) int {
			switch {
			case a.Required == b.Required:
				return 0
			case a.Required:
				return -1
			}
			return 1
		})
		specs = append(specs, spec)
	}
	return specs, nil
}

func argType(s *schema) (string, error) {
	switch {
	case len(s.OneOf) > 0:
		return "payload", nil
	case s.Type == "array":
		return "wires", nil
	case s.Type == "string", s.Type == "object", s.Type == "integer", s.Type == "boolean":
		return s.Type, nil
	}
	return "", fmt.Errorf("no kit has an argument of the type %q", s.Type)
}
