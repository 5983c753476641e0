package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

const (
	eventsPage   = "docs/reference/events.md"
	eventsSchema = "docs/reference/events.schema.json"
)

// bytesPayload is the JSON form of bytes; see terrarium.Payload.
const bytesPayload = "payload"

// schemaOfEvents returns the schema of events as subscriptions, history and the command
// line show them.
func schemaOfEvents(c comments) (*jsonschema.Schema, error) {
	i := inference{comments: c}
	out := &jsonschema.Schema{
		Schema: dialect, Title: "An event of terrarium",
		Defs: map[string]*jsonschema.Schema{
			bytesPayload: {Description: "bytes: a string if they are UTF-8, else in base64", AnyOf: bytesForms()},
		},
	}
	for _, k := range journal.EventKinds() {
		record, err := i.schemaOf(reflect.TypeFor[operations.EventRecord]())
		if err != nil {
			return nil, err
		}
		record.Properties["kind"] = &jsonschema.Schema{Const: jsonschema.Ptr[any](k.String())}
		record.Properties["payload"] = &jsonschema.Schema{Ref: "#/$defs/" + k.String()}
		out.OneOf = append(out.OneOf, record)
		if out.Defs[k.String()], err = i.payloadSchema(k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// payloadSchema returns the schema of the payload of events of a kind.
func (i inference) payloadSchema(k journal.EventKind) (*jsonschema.Schema, error) {
	switch t := journal.PayloadType(k); {
	case t != nil:
		return i.schemaOf(t)
	case k == journal.EventState:
		return i.schemaOf(reflect.TypeFor[operations.StateRecord]())
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + bytesPayload}, nil
}

// payloadTables fills in the tables of the events page.
func payloadTables(page []byte, c comments) ([]byte, error) {
	for _, k := range journal.EventKinds() {
		t := journal.PayloadType(k)
		if k == journal.EventState {
			t = reflect.TypeFor[operations.StateRecord]()
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
	b.WriteString("| payload | meaning |\n|---|---|\n")
	payloadRows(b, c, t)
}

// payloadRows writes a line for each member of the JSON form of a struct, including
// those of embedded structs.
func payloadRows(b *bytes.Buffer, c comments, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			payloadRows(b, c, f.Type)
			continue
		}
		if name == "-" {
			continue
		}
		about := strings.Join(strings.Fields(c[t.Name()+"."+f.Name]), " ")
		if strings.Contains(rest, "omit") {
			about += " (optional)"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.TrimSpace(about))
	}
}
