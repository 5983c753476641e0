package sqlitestore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// odd are texts that are not UTF-8, texts that look like the encoding of such a text, and texts
// that need care in JSON.
var odd = []string{"\xff", "a\x80b", "caf\xe9", "\xed\xa0\x80", "\xc3", "é", "\u00ff", "\ufffd", `\ufffd`, "\u2028<>&", "a\x00b", "\"\\", "\U0001f438", ""}

// oddRecord has a text in every field of every row.
func oddRecord(o journal.Origin, seq uint64, text string) *journal.Record {
	id := journal.EventID{Origin: o, Seq: seq}
	key := fmt.Sprint(seq) // of rows that may exist only once
	return &journal.Record{
		Events:    []journal.Event{{ID: id, Time: int64(seq), Kind: journal.EventTimer, Payload: []byte(text)}},
		Creatures: []journal.CreatureRow{{ID: journal.CreatureID("c" + key), Name: text, Deployment: text, Address: text + key, Module: text, SHA256: text, Spec: []byte(text)}},
		Channels:  []journal.ChannelRow{{ID: journal.ChannelID("n" + key), Name: text, Description: text, Deployment: text, Address: text + key}},
		Edges:     []journal.EdgeRow{{Creature: journal.CreatureID("c" + key), Channel: journal.ChannelID("n" + key), Direction: journal.Listen, Alias: text}},
		Cursors:   []journal.CursorRow{{Reader: journal.ReaderID("c" + key), Channel: journal.ChannelID("n" + key), Alias: text, Until: 1}},
		Producers: []journal.ProducerRow{{Channel: journal.ChannelID("n" + key), Producer: text, Offset: seq}},
		Timers:    []journal.TimerRow{{Creature: journal.CreatureID("c" + key), Name: text, Payload: []byte(text)}},
		Wires:     []journal.OutputWire{{ID: journal.WireID("w" + key), From: journal.CreatureID("c" + key), To: journal.CreatureID("c" + key), Prompt: text, When: text}},
		Letters: []journal.DeadLetterRow{{
			ID: id, Kind: journal.EventTimer, Creature: journal.CreatureID("c" + key), Alias: text, Reason: journal.DeadReason(text), Error: text, LastWords: text, Headers: []byte(text), Payload: []byte(text),
		}},
		Meta: map[string]string{text: text, "of " + key: text},
	}
}

// TestForkAtKeepsBytes forks a session at its last event. Its rows have texts that are not
// UTF-8. The fork must have the same bytes, whether they come from a record or from the base
// of all records.
func TestForkAtKeepsBytes(t *testing.T) {
	for _, based := range []bool{false, true} {
		t.Run(fmt.Sprint("base=", based), func(t *testing.T) {
			dir := t.TempDir()
			d := mustOpen(t, dir)
			s := createStore(t, d)
			session := s.info.Session
			for i, text := range odd {
				s.Append(oddRecord(s.Origin(), uint64(i+1), text))
			}
			if err := s.Wait(t.Context(), uint64(len(odd))); err != nil {
				t.Fatal(err)
			}
			path := s.path()
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if based { // as if an older version had written the file
				execute(t, path, "DELETE FROM change; DELETE FROM store WHERE key = '"+storefile.Based+"'")
			}
			d = mustOpen(t, dir)
			again, err := d.Open(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			again.Append(oddRecord(again.Origin(), 1, "last\xff"))
			if err := again.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "fork")
			if _, _, err := d.ForkAt(t.Context(), session, journal.Mark{Since: 1 << 62}, to); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if got, want := oddRows(t, to), oddRows(t, dir); got != want {
				t.Errorf("the fork has\n%.3000s\nwant\n%.3000s", got, want)
			}
		})
	}
}

// oddRows returns the rows of the only live session of a directory, byte by byte.
func oddRows(t *testing.T, dir string) string {
	t.Helper()
	v, session := mustView(t, dir), liveSessions(t, dir)[0]
	g, err := v.Saved(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	letters, err := v.DeadLetters(t.Context(), session, "", journal.EventID{}, 1<<30)
	if err != nil || len(letters) == 0 || len(g.Creatures) == 0 || len(g.Meta) == 0 {
		t.Fatalf("%d letters, %d creatures, %d metas: %v", len(letters), len(g.Creatures), len(g.Meta), err)
	}
	return fmt.Sprintf("%+q", fmt.Sprint(g.Creatures, g.Channels, g.Edges, g.Cursors, g.Producers, g.Timers, g.Wires, letters, g.Meta))
}
