package sqlitestore

import (
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestSessionWithoutFile reads a session that was cut and whose file was removed. Its history
// can be read, including the messages of a channel, but its live rows cannot.
func TestSessionWithoutFile(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	_, channel := parted(t, d)
	session := channel.Info().Parents[0]
	settle(t, d)
	if e, err := d.catalog.Entry(t.Context(), "test", session); err != nil || e.File != "" {
		t.Fatalf("the file of the session is %q, %v; want none", e.File, err)
	}
	for name, a := range map[string]journal.Archive{"directory": d, "view": mustView(t, d.dir)} {
		messages, err := a.Messages(t.Context(), session, "c", 40, 0, 0, 0)
		if err != nil || len(messages) != 60 || messages[0].Seq != 41 {
			t.Errorf("%s: %d of 60 messages, %v", name, len(messages), err)
		}
		_, err = a.DeadLetters(t.Context(), session, "", journal.EventID{}, 0)
		wantError(t, name+": dead letters", err, abi.NotFound, "only its history is left")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
