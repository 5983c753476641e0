package engine_test

import (
	"encoding/json"
	"os"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/seed47132306/terrarium/engine/journal"
)

// payloadSchemas are the published schemas of JSON payloads.
var payloadSchemas = sync.OnceValues(func() (map[journal.EventKind]*jsonschema.Resolved, error) {
	b, err := os.ReadFile("../docs/reference/events.schema.json")
	if err != nil {
		return nil, err
	}
	var all jsonschema.Schema
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	out := map[journal.EventKind]*jsonschema.Resolved{}
	for _, k := range journal.EventKinds() {
		if journal.PayloadType(k) == nil {
			continue
		}
		if out[k], err = all.Defs[k.String()].Resolve(nil); err != nil {
			return nil, err
		}
	}
	return out, nil
})

// checkPayload compares the payload of an event with the schema of its kind.
func checkPayload(ev *journal.Event) error {
	schemas, err := payloadSchemas()
	if err != nil || schemas[ev.Kind] == nil || ev.Kind == journal.EventTurnStarted {
		return err
	}
	var payload any
	if err := json.Unmarshal(ev.Payload, &payload); err != nil {
		return err
	}
	return schemas[ev.Kind].Validate(payload)
}
