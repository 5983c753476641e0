package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

// The event of a payload that cannot be encoded says so.
func TestJSONNamesWhatItCannotEncode(t *testing.T) {
	var got struct{ Unencodable string }
	if err := json.Unmarshal(JSON(func() {}), &got); err != nil || !strings.Contains(got.Unencodable, "func()") {
		t.Errorf("the payload is %+v, %v", got, err)
	}
	if got := string(JSON(LaggedPayload{Missed: 2})); !strings.Contains(got, "2") {
		t.Errorf("a payload is %s", got)
	}
}
