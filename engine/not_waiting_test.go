package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine"
)

// Replays recognize replies without a waiting sender in sessions of this version and of
// earlier ones, by the text of their dead letters.
func TestNotWaiting(t *testing.T) {
	for text, want := range map[string]bool{
		"the sender of the request no longer waits in this graph": true,
		"who asked is not waiting in this graph any more":         true,
		"the mailbox is full": false,
		"":                    false,
	} {
		if got := engine.NotWaiting(text); got != want {
			t.Errorf("NotWaiting(%q) is %t", text, got)
		}
	}
}
