package engine

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/effects"
)

// A guest's last log lines are added to its error, but only once.
func TestLastWordsAreSaidOnce(t *testing.T) {
	said := []effects.Line{{Text: "early"}, {Text: "match is no pattern"}}
	for text, want := range map[string]string{
		"it answered -1":                      "it answered -1 (it logged: match is no pattern)",
		"it answered -1: match is no pattern": "it answered -1: match is no pattern",
	} {
		if got := withLogs(errors.New(text), said).Error(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
