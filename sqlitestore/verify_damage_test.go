package sqlitestore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite3"
	"github.com/seed47132306/terrarium/sqlitestore/sqlitetest"
)

// conversed makes a closed directory with one session, in which a creature has handled nine
// messages of channel c and keeps its count. There are three events for each message.
func conversed(t *testing.T) (dir string, session journal.SessionID, origin journal.Origin) {
	t.Helper()
	d := mustOpen(t, t.TempDir())
	s := createStore(t, d)
	for n := uint64(1); n <= 9; n++ {
		turn := journal.EventID{Origin: s.Origin(), Seq: 3*n - 1}
		value := fmt.Append(nil, n)
		s.Append(&journal.Record{
			Events: []journal.Event{
				{ID: journal.EventID{Origin: s.Origin(), Seq: 3*n - 2}, Time: int64(10 * n), Kind: journal.EventChannelMessage, Channel: "c", Seq: n},
				{ID: turn, Time: int64(10*n + 1), Kind: journal.EventTurnEnded, Creature: "a", Turn: turn, Channel: "c", Seq: n},
				{ID: journal.EventID{Origin: s.Origin(), Seq: 3 * n}, Time: int64(10*n + 2), Kind: journal.EventState, Creature: "a", Turn: turn, Payload: append([]byte("n\x00="), value...)},
			},
			Channels: []journal.ChannelRow{{ID: "c"}}, Creatures: []journal.CreatureRow{{ID: "a"}}, Heads: []journal.HeadRow{{Channel: "c", Seq: n}},
			Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: n}}, State: []journal.StateRow{{Creature: "a", Key: "n", Value: value}},
		})
	}
	wantSound(t, d, s.info.Session)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.dir, s.info.Session, s.Origin()
}

// TestVerifyNamesTheDamage damages a store in every way in which a log can be wrong. Each
// finding names the place: the ids of events, or a channel and a number.
func TestVerifyNamesTheDamage(t *testing.T) {
	dir, session, origin := conversed(t)
	id := func(n int) string { return journal.EventID{Origin: origin, Seq: uint64(n)}.String() }
	const at = "(1 << 40 | %d)"
	event := func(n int) string { return fmt.Sprintf(at, n) }
	for name, c := range map[string]struct{ statements, want string }{
		"an event is missing":            {"DELETE FROM event WHERE id = " + event(12), "missing: " + id(12)},
		"several events are missing":     {"DELETE FROM event WHERE id BETWEEN " + event(12) + " AND " + event(14), "missing: " + id(12) + " to " + id(14)},
		"a message is missing":           {"DELETE FROM event WHERE id = " + event(13), "missing: channel c number 5"},
		"the last message is missing":    {"UPDATE event SET kind = 5, channel = NULL WHERE id = " + event(25), "missing: channel c number 9"},
		"a message under another id":     {"INSERT INTO event SELECT id + 15, ts + 50, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum FROM event WHERE id = " + event(13), "duplicate: channel c number 5: " + id(13) + " and " + id(28)},
		"a turn under another id":        {"INSERT INTO event SELECT id + 14, ts + 50, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum FROM event WHERE id = " + event(14), "duplicate: the turn of a on channel c number 5: " + id(14) + " and " + id(28)},
		"numbers are swapped":            {"UPDATE event SET seq = 9 - seq WHERE kind = 1 AND seq IN (4, 5)", "out of order: channel c number 5: " + id(10) + " is not later than " + id(13) + ", number 4"},
		"the head is too low":            {"UPDATE head SET seq = 7; UPDATE cursor SET seq = 7", "damage: the head of channel c is 7, but " + id(25) + " is its message 9"},
		"the head is too high":           {"UPDATE head SET seq = 12", "missing: channel c number 10 to 12"},
		"a cursor is beyond the head":    {"UPDATE cursor SET seq = 11", "damage: the cursor of a in c stands at 11, beyond the head 9"},
		"state is not what was written":  {"UPDATE state_value SET value = x'00'", `damage: a holds another value of the state "n" than ` + id(27) + " says"},
		"state is gone":                  {"DELETE FROM state_value", `damage: a does not hold the state "n", which ` + id(27) + " says it wrote"},
		"state that was deleted is back": {"UPDATE event SET payload = x'6e002d' WHERE id = " + event(27), `damage: a holds the state "n", which ` + id(27) + " says was deleted"},
		"an edge leads nowhere":          {"INSERT INTO edge VALUES ('a', 'x', 1, '', 1)", "damage: the edge of a is to the channel x, which does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := duplicate(t, dir)
			execute(t, filepath.Join(dir, files.Stores, string(session)+files.StoreSuffix), c.statements)
			v := mustView(t, dir)
			r, err := v.Verify(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for kind, list := range map[string][]string{"missing": r.Missing, "duplicate": r.Duplicate, "out of order": r.OutOfOrder, "damage": r.Damage} {
				for _, text := range list {
					found = append(found, kind+": "+text)
				}
			}
			if !slices.Contains(found, c.want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(found, "\n"), c.want)
			}
		})
	}
}

// TestVerifySaysOnceWhatIsDamaged damages a page that several checks read.
func TestVerifySaysOnceWhatIsDamaged(t *testing.T) {
	dir, session, _ := conversed(t)
	path := filepath.Join(dir, files.Stores, string(session)+files.StoreSuffix)
	page, size := rootPage(t, path, "event")
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := mustView(t, dir).Verify(t.Context(), session)
	if err != nil || len(r.Damage) < 2 {
		t.Fatalf("Verify: %+v, %v", r, err)
	}
	said := map[string]bool{}
	for _, line := range r.Damage {
		if said[line] {
			t.Errorf("Verify reports the same damage twice: %s", line)
		}
		said[line] = true
	}
}

// rootPage returns the number of a table's first page, and the size of a page.
func rootPage(t *testing.T, path, table string) (page, size int64) {
	t.Helper()
	db := sqlitetest.Open(t, path)
	defer db.Close()
	if err := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", table).Scan(&page); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("PRAGMA page_size").Scan(&size); err != nil {
		t.Fatal(err)
	}
	return page, size
}

// TestAClosedStorePromisesNothing is about the error if the disk is still full when a store is
// closed: from then on, nothing is written by itself.
func TestAClosedStorePromisesNothing(t *testing.T) {
	full := sqlite3.Error{Code: sqlite3.ErrFull}
	var open, closed *abi.Error
	if !errors.As(storageError("append", "S/a.db", full), &open) || !strings.Contains(open.Remedy, "written by itself") {
		t.Fatalf("the error of an open store is %+v", open)
	}
	if !errors.As(unwritten("S/a.db", full), &closed) || closed.Code != abi.Storage || closed.IDs["path"] != "S/a.db" {
		t.Fatalf("the error of a closed store is %+v", closed)
	}
	if !strings.Contains(closed.Message, "the disk is full") || strings.Contains(closed.Remedy, "by itself") || !errors.Is(closed, full) {
		t.Errorf("the error of a closed store is %v", closed)
	}
}

// TestMissingParentIsNamed removes the file of an ended session that a live session still
// needs. Calls that need the whole history name that file, and everything else can be read.
func TestMissingParentIsNamed(t *testing.T) {
	dir := handedOn(t, false)
	var child, parent catalog.Entry
	all := entriesOf(t, dir)
	for _, e := range all {
		if e.Live && !e.Complete {
			child = e
		}
	}
	for _, e := range all {
		if slices.Contains(child.Parents, e.Session) && e.File != "" {
			parent = e
		}
	}
	if child.Session == "" || parent.Session == "" {
		t.Fatalf("no incomplete session with a parent that has a file: %+v", all)
	}
	if err := os.Remove(parent.Path); err != nil {
		t.Fatal(err)
	}
	v := mustView(t, dir)
	report, err := v.Verify(t.Context(), child.Session)
	if err != nil || !strings.Contains(strings.Join(report.Damage, "\n"), "the file of session "+string(parent.Session)) || len(report.Missing) == 0 {
		t.Errorf("Verify: %+v, %v", report, err)
	}
	if events, err := v.History(t.Context(), child.Session, journal.HistoryQuery{}); err != nil || len(events) == 0 {
		t.Errorf("History: %d events, %v", len(events), err)
	}
	exported := v.Export(t.Context(), child.Session, filepath.Join(t.TempDir(), "x.db"))
	_, forked := v.Fork(t.Context(), child.Session, filepath.Join(t.TempDir(), "x"))
	_, _, at := v.ForkAt(t.Context(), child.Session, journal.Mark{Since: 1 << 60}, filepath.Join(t.TempDir(), "y"))
	for what, err := range map[string]error{"Export": exported, "Fork": forked, "ForkAt": at} {
		if err == nil || !strings.Contains(err.Error(), "the file of session "+string(parent.Session)+" is missing or damaged") {
			t.Errorf("%s: %v", what, err)
		}
	}
	d := mustOpen(t, dir)
	defer d.Close()
	if _, err := d.Open(t.Context(), child.Session); err != nil {
		t.Error(err)
	}
	if problems := fmt.Sprint(d.Problems()); !strings.Contains(problems, string(parent.Session)) {
		t.Errorf("problems: %s", problems)
	}
}
