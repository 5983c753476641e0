package errtext_test

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/errtext"
)

// A guest's last log line is added to its error, but only once.
func TestLastWordsAreSaidOnce(t *testing.T) {
	for text, want := range map[string]string{
		"it answered -1":                      "it answered -1 (it logged: match is no pattern)",
		"it answered -1: match is no pattern": "it answered -1: match is no pattern",
	} {
		if got := errtext.WithLog(errors.New(text), "match is no pattern").Error(); got != want {
			t.Errorf("the error says %q, want %q", got, want)
		}
	}
}
