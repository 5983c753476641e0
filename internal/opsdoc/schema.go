package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/operations"
)

// dialect is what all published schemas are written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// newReflector makes schemas of Go types: each in one piece, with the members in the
// order of the fields and in the words of their comments. Equal types make equal
// bytes.
func newReflector(c comments) *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, Mapper: customSchema,
		LookupComment: func(t reflect.Type, field string) string {
			if field == "" {
				return "" // what a type is says the field that has it
			}
			return c.field(t, field)
		},
	}
}

// schemaOf describes the JSON form of a type.
func schemaOf(r *jsonschema.Reflector, t reflect.Type) *jsonschema.Schema {
	s := r.ReflectFromType(t)
	s.Version = ""
	return s
}

// customSchema describes types that have a JSON form of their own.
func customSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[journal.Payload](), reflect.TypeFor[journal.NotedBytes]():
		return &jsonschema.Schema{OneOf: bytesForms()}
	case reflect.TypeFor[operations.Payload]():
		return &jsonschema.Schema{Ref: "#/$defs/" + bytesPayload}
	case reflect.TypeFor[journal.EventID]():
		return &jsonschema.Schema{Type: "string", Pattern: "^[0-9a-f]{32}-[0-9]+$"}
	}
	if k := t.Kind(); k >= reflect.Uint && k <= reflect.Uint64 {
		return &jsonschema.Schema{Type: "integer", Minimum: "0"}
	}
	return nil
}

// bytesForms are the forms of bytes in JSON.
func bytesForms() []*jsonschema.Schema {
	fields := jsonschema.NewProperties()
	fields.Set("base64", &jsonschema.Schema{Type: "string", ContentEncoding: "base64"})
	return []*jsonschema.Schema{
		{Type: "string"},
		{Type: "object", Properties: fields, Required: []string{"base64"}, AdditionalProperties: jsonschema.FalseSchema},
	}
}

// awarenessSchema is the schema of the awareness document as a file. It says what the
// types are as well, and leaves room for members that come later.
func awarenessSchema(c comments) ([]byte, error) {
	r := newReflector(c)
	r.AllowAdditionalProperties = true
	fields := r.LookupComment
	r.LookupComment = func(t reflect.Type, field string) string {
		if field == "" {
			return c.typ(t)
		}
		f, _ := t.FieldByName(field)
		return cmp.Or(fields(t, field), c.typ(f.Type))
	}
	s := schemaOf(r, reflect.TypeFor[outlook.Awareness]())
	s.Version, s.Title = dialect, "The awareness document"
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
