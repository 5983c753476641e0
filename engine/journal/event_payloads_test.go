package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

// The event of a payload that cannot be encoded says so.
func TestJSONTellsWhatItCannotEncode(t *testing.T) {
	var told struct{ Unencodable string }
	if err := json.Unmarshal(JSON(func() {}), &told); err != nil || !strings.Contains(told.Unencodable, "func()") {
		t.Errorf("told is %+v, %v", told, err)
	}
	if got := string(JSON(LaggedPayload{Missed: 2})); !strings.Contains(got, "2") {
		t.Errorf("a payload is %s", got)
	}
}
