package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/operations"
)

// dialect is what all published schemas are written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// inference makes schemas of Go types: each in one piece, with the members in the
// order of the fields and in the words of their comments. Equal types make equal
// bytes.
type inference struct {
	comments
	// extensible schemas say what the types are as well, and leave room for members that
	// come later.
	extensible bool
}

// schemaOf describes the JSON form of a type.
func (i inference) schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: customSchemas()})
	if err != nil {
		return nil, err
	}
	return s, i.complete(s, t)
}

// complete says in a schema what a type has beyond what is inferred: the comments, and
// the tag bounds of its fields, as in `bounds:"minimum=1,enum=a|b"`. It takes out null, for
// members that are absent are left out.
func (i inference) complete(s *jsonschema.Schema, t reflect.Type) error {
	if n := len(s.Types); n > 0 { // null, and the type if there is one
		s.Type, s.Types = strings.TrimPrefix(s.Types[n-1], "null"), nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if customSchemas()[t] != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return i.completeStruct(s, t)
	case reflect.Slice, reflect.Array:
		return i.complete(s.Items, t.Elem())
	case reflect.Map:
		return i.complete(s.AdditionalProperties, t.Elem())
	}
	return nil
}

func (i inference) completeStruct(s *jsonschema.Schema, t reflect.Type) error {
	if i.extensible {
		s.Description, s.AdditionalProperties = i.typ(t), nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		member := s.Properties[cmp.Or(name, f.Name)]
		if member == nil || f.Anonymous {
			continue
		}
		if err := i.complete(member, f.Type); err != nil {
			return err
		}
		owner := t
		if n := len(f.Index); n > 1 {
			owner = t.FieldByIndex(f.Index[:n-1]).Type
		}
		member.Description = cmp.Or(f.Tag.Get("jsonschema"), i.field(owner, f.Name), member.Description)
		if err := bound(member, f.Tag.Get("bounds")); err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
	}
	return nil
}

// bound adds what a tag says of a value.
func bound(s *jsonschema.Schema, tag string) error {
	if tag == "" {
		return nil
	}
	for part := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		number := float64(n)
		switch name {
		case "type":
			s.Type, err = value, nil
		case "enum":
			for v := range strings.SplitSeq(value, "|") {
				s.Enum = append(s.Enum, v)
			}
			err = nil
		case "minLength":
			s.MinLength = &n
		case "minimum":
			s.Minimum = &number
		case "maximum":
			s.Maximum = &number
		default:
			err = errors.New("there is no such bound")
		}
		if err != nil {
			return fmt.Errorf("bound %q: %w", part, err)
		}
	}
	return nil
}

// customSchemas describe types that have a JSON form of their own.
func customSchemas() map[reflect.Type]*jsonschema.Schema {
	forms := &jsonschema.Schema{OneOf: bytesForms()}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[journal.Payload]():    forms,
		reflect.TypeFor[journal.NotedBytes](): forms,
		reflect.TypeFor[operations.Payload](): {Ref: "#/$defs/" + bytesPayload},
		reflect.TypeFor[journal.EventID]():    {Type: "string", Pattern: "^[0-9a-f]{32}-[0-9]+$"},
		reflect.TypeFor[json.RawMessage]():    {},
	}
}

// bytesForms are the forms of bytes in JSON.
func bytesForms() []*jsonschema.Schema {
	return []*jsonschema.Schema{{Type: "string"}, {
		Type: "object", Properties: map[string]*jsonschema.Schema{"base64": {Type: "string", ContentEncoding: "base64"}},
		Required: []string{"base64"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}}
}

// awarenessSchema is the schema of the awareness document as a file.
func awarenessSchema(c comments) ([]byte, error) {
	s, err := inference{c, true}.schemaOf(reflect.TypeFor[outlook.Awareness]())
	if err != nil {
		return nil, err
	}
	s.Schema, s.Title = dialect, "The awareness document"
	return schemaText(s)
}

// schemaText writes a schema as it is published.
func schemaText(schema any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(schema)
	return b.Bytes(), err
}

// field is what the source says of a field.
func (c comments) field(t reflect.Type, name string) string { return prose(c[typeName(t)+"."+name]) }

// typ is what the source says that a struct is.
func (c comments) typ(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	name := typeName(t)
	doc := prose(c[name])
	if is, ok := strings.CutPrefix(doc, name+" is "); ok {
		return strings.ToUpper(is[:1]) + is[1:]
	}
	return doc
}

// typeName is the name of a type without the arguments of a generic one.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// prose is a comment on one line.
func prose(doc string) string { return strings.Join(strings.Fields(plain(doc)), " ") }
