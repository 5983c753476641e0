package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

const (
	eventsPage   = "docs/reference/events.md"
	eventsSchema = "docs/reference/events.schema.json"
)

// bytesPayload is the JSON form of bytes; see terrarium.Payload.
const bytesPayload = "payload"

// schemaOfEvents describes an event of every kind, as subscriptions, history and
// the command line show them.
func schemaOfEvents(c comments) (*jsonschema.Schema, error) {
	out := &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "An event of terrarium",
		Defs: map[string]*jsonschema.Schema{
			bytesPayload: {
				Description: "bytes: a string if they are UTF-8, else in base64",
				AnyOf: []*jsonschema.Schema{{Type: "string"}, {
					Type: "object", Required: []string{"base64"}, Properties: map[string]*jsonschema.Schema{"base64": {Type: "string", ContentEncoding: "base64"}},
					AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
				}},
			},
		},
	}
	for _, k := range engine.EventKinds() {
		payload, err := payloadSchema(c, k)
		if err != nil {
			return nil, fmt.Errorf("the payload of %s: %w", k, err)
		}
		record, err := structSchema(c, reflect.TypeFor[terrarium.EventRecord]())
		if err != nil {
			return nil, err
		}
		var name any = k.String()
		record.Properties["kind"] = &jsonschema.Schema{Const: &name}
		record.Properties["payload"] = &jsonschema.Schema{Ref: "#/$defs/" + k.String()}
		out.Defs[k.String()] = payload
		out.OneOf = append(out.OneOf, record)
	}
	return out, nil
}

// payloadSchema describes the payload of events of a kind.
func payloadSchema(c comments, k engine.EventKind) (*jsonschema.Schema, error) {
	switch t := engine.PayloadType(k); {
	case t != nil:
		return structSchema(c, t)
	case k == engine.EventState:
		return structSchema(c, reflect.TypeFor[terrarium.StateRecord]())
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + bytesPayload}, nil
}

// structSchema describes the JSON form of a struct, in the words of its comments.
func structSchema(c comments, t reflect.Type) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[engine.EventID]():    {Type: "string", Pattern: "^[0-9a-f]{32}-[0-9]+$"},
		reflect.TypeFor[terrarium.Payload](): {Ref: "#/$defs/" + bytesPayload},
	}})
	if err != nil {
		return nil, err
	}
	describe(s, c, t)
	return s, nil
}

// describe adds what the source says of the fields. Lists are never null.
func describe(s *jsonschema.Schema, c comments, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		p.Description = strings.Join(strings.Fields(c[t.Name()+"."+f.Name]), " ")
		if f.Type.Kind() == reflect.Slice && p.Items != nil {
			p.Type, p.Types = "array", nil
			if f.Type.Elem().Kind() == reflect.Struct {
				describe(p.Items, c, f.Type.Elem())
			}
		}
	}
}

// schemaFile is the schema as it is published.
func schemaFile(c comments) ([]byte, error) {
	s, err := schemaOfEvents(c)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// payloadTables fills in the tables of the page of events.
func payloadTables(page []byte, c comments) ([]byte, error) {
	for _, k := range engine.EventKinds() {
		t := engine.PayloadType(k)
		if k == engine.EventState {
			t = reflect.TypeFor[terrarium.StateRecord]()
		}
		if t == nil {
			continue
		}
		var err error
		if page, err = fill(page, "payload "+k.String(), func(b *bytes.Buffer) { payloadTable(b, c, t) }); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func payloadTable(b *bytes.Buffer, c comments, t reflect.Type) {
	b.WriteString("| payload | |\n|---|---|\n")
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		about := strings.Join(strings.Fields(c[t.Name()+"."+f.Name]), " ")
		if strings.Contains(rest, "omit") {
			about += " (optional)"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.TrimSpace(about))
	}
}
