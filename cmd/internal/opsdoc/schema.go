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

// dialect is the dialect of all published schemas.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// inference generates schemas of Go types. A schema is in one piece; its members follow
// the order of the fields and use their comments. Equal types give equal bytes.
type inference struct {
	comments
	// extensible schemas describe the types too, and allow for members that are added
	// later.
	extensible bool
}

// schemaOf returns the schema of a type's JSON form.
func (i inference) schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: customSchemas()})
	if err != nil {
		return nil, err
	}
	return s, i.complete(s, t)
}

// complete adds to an inferred schema the comments of a type and the bounds in the tags
// of its fields, as in `bounds:"minimum=1,enum=a|b"`. It removes null, because empty
// members are left out.
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
		member.Description = cmp.Or(f.Tag.Get("jsonschema"), i.field(ownerOf(t, f), f.Name), member.Description)
		if err := bound(member, f.Tag.Get("bounds")); err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
	}
	return nil
}

// ownerOf returns the type that declares a visible field of a struct: the struct, or one
// that is embedded in it.
func ownerOf(t reflect.Type, f reflect.StructField) reflect.Type {
	if n := len(f.Index); n > 1 {
		return t.FieldByIndex(f.Index[:n-1]).Type
	}
	return t
}

// bound adds a bound from a tag to a schema.
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
			err = errors.New("unknown bound")
		}
		if err != nil {
			return fmt.Errorf("bound %q: %w", part, err)
		}
	}
	return nil
}

// customSchemas holds the schemas of types with a JSON form of their own.
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

// bytesForms returns the JSON forms of bytes.
func bytesForms() []*jsonschema.Schema {
	return []*jsonschema.Schema{{Type: "string"}, {
		Type: "object", Properties: map[string]*jsonschema.Schema{"base64": {Type: "string", ContentEncoding: "base64"}},
		Required: []string{"base64"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}}
}

// awarenessSchema returns the schema of the awareness document as a file.
func awarenessSchema(c comments) ([]byte, error) {
	s, err := inference{c, true}.schemaOf(reflect.TypeFor[outlook.Awareness]())
	if err != nil {
		return nil, err
	}
	s.Schema, s.Title = dialect, "The awareness document"
	return schemaText(s)
}

// schemaText returns a schema in its published form.
func schemaText(schema any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(schema)
	return b.Bytes(), err
}

// field returns the comment of a field.
func (c comments) field(t reflect.Type, name string) string { return prose(c[typeName(t)+"."+name]) }

// typ returns the description of a struct from its comment.
func (c comments) typ(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	name := typeName(t)
	doc := prose(c[name])
	for _, verb := range []string{" is ", " are "} {
		if is, ok := strings.CutPrefix(doc, name+verb); ok {
			return strings.ToUpper(is[:1]) + is[1:]
		}
	}
	return doc
}

// typeName returns the name of a type without type arguments.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// prose returns a comment on one line.
func prose(doc string) string { return strings.Join(strings.Fields(plain(doc)), " ") }
