package main

import (
	"encoding/json"
	"testing"
)

// The engine mentions unaccounted memory only while there is some, anywhere in its object. The
// shown JSON leaves it out.
func TestShownWithoutUnaccountedMemory(t *testing.T) {
	for _, answer := range []string{
		`{"unaccounted_bytes":1}`,
		`{"unaccounted_bytes":1,"graphs":2}`,
		`{"graphs":2,"unaccounted_bytes":1}`,
		`{"graphs":2,"unaccounted_bytes":1,"workers":3}`,
	} {
		shown, err := newShortener().show([]byte(answer))
		var fields map[string]int
		if err == nil {
			err = json.Unmarshal([]byte(shown), &fields)
		}
		if _, left := fields["unaccounted_bytes"]; err != nil || left {
			t.Errorf("%s is shown as %s, %v", answer, shown, err)
		}
	}
}
