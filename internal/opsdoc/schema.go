package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// schema is a JSON Schema, as far as the types of this repository need one. The
// order of its members is the order in which they are written.
type schema struct {
	Schema      string      `json:"$schema,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        string      `json:"type"`
	Minimum     *int        `json:"minimum,omitempty"`
	Items       *schema     `json:"items,omitempty"`
	Properties  *properties `json:"properties,omitempty"`
	Required    []string    `json:"required,omitempty"`
	Values      *schema     `json:"additionalProperties,omitempty"` // of an object without fixed members
}

// properties are the members of an object, in the order of the fields.
type properties struct {
	names   []string
	schemas []*schema
}

// MarshalJSON writes an object.
func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.schemas[i])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaPage is the schema of a type as a file.
func schemaPage(c comments, ty reflect.Type, title string) ([]byte, error) {
	s := schemaOf(c, ty)
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// schemaOf is the schema of what a Go type becomes in JSON.
func schemaOf(c comments, ty reflect.Type) *schema {
	switch ty.Kind() {
	case reflect.Pointer:
		return schemaOf(c, ty.Elem())
	case reflect.Struct:
		return objectSchema(c, ty)
	case reflect.Slice:
		return &schema{Type: "array", Items: schemaOf(c, ty.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Values: schemaOf(c, ty.Elem())}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	}
	return &schema{Type: "integer", Minimum: new(int)}
}

func objectSchema(c comments, ty reflect.Type) *schema {
	name, _, _ := strings.Cut(ty.Name(), "[") // of a generic type, without its arguments
	doc := prose(c[name])
	if is, ok := strings.CutPrefix(doc, name+" is "); ok {
		doc = strings.ToUpper(is[:1]) + is[1:]
	}
	s := &schema{Type: "object", Description: doc, Properties: &properties{}}
	for _, f := range reflect.VisibleFields(ty) {
		member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member == "" || member == "-" || f.Anonymous {
			continue
		}
		of := schemaOf(c, f.Type)
		if doc := prose(c[name+"."+f.Name]); doc != "" {
			of.Description = doc
		}
		s.Properties.names = append(s.Properties.names, member)
		s.Properties.schemas = append(s.Properties.schemas, of)
		if !strings.Contains(options, "omit") {
			s.Required = append(s.Required, member)
		}
	}
	return s
}

// prose is a comment on one line.
func prose(doc string) string { return strings.Join(strings.Fields(plain(doc)), " ") }
