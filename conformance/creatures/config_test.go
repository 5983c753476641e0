package creatures

import (
	"encoding/json"
	"testing"
)

// A small schema can demand ten values in each of ten values, and so on.
func TestSampleIsBounded(t *testing.T) {
	schema := map[string]any{"type": "string", "minLength": 1000.0}
	for range 8 {
		schema = map[string]any{"type": "array", "minItems": 10.0, "items": schema}
	}
	text, err := json.Marshal(newSampler().sample(schema, true, 0))
	if err != nil || len(text) > 2_000_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
