package letterbox_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/letterbox"
	"github.com/seed47132306/terrarium/engine/journal"
)

func letter(n uint64, of journal.CreatureID, bytes int) journal.DeadLetterRow {
	return journal.DeadLetterRow{ID: journal.EventID{Seq: n}, Creature: of, Payload: make([]byte, bytes)}
}

// A box keeps the newest letters, up to 1,000 letters and 2 MiB, but always at least one.
func TestTheOldestAreDropped(t *testing.T) {
	var b letterbox.Box
	for n := range uint64(1003) {
		b.Keep(letter(n+1, "ann", 0))
	}
	if rows := b.Rows(); len(rows) != 1000 || rows[0].ID.Seq != 4 {
		t.Errorf("the box has %d letters, from number %d on", len(rows), rows[0].ID.Seq)
	}
	b.Keep(letter(2000, "ann", 3<<20))
	if rows := b.Rows(); len(rows) != 1 || rows[0].ID.Seq != 2000 {
		t.Errorf("beside a letter of more than 2 MiB, the box has %d letters, want none", len(rows)-1)
	}
	b.DropOne(journal.EventID{Seq: 2000})
	for n := range uint64(3) {
		b.Keep(letter(n+1, "ann", 600<<10)) // they fit, because dropped letters do not count
	}
	if n := len(b.Rows()); n != 3 {
		t.Errorf("%d letters fit into 2 MiB, want 3", n)
	}
}

func TestPagesAndMoves(t *testing.T) {
	var from, to letterbox.Box
	for n, of := range []journal.CreatureID{"ann", "bob", "ann", "bob", "ann"} {
		from.Keep(letter(uint64(n+1), of, 0))
	}
	if page := from.Page("ann", journal.EventID{Seq: 1}, 1); len(page) != 1 || page[0].ID.Seq != 3 {
		t.Errorf("after its first letter, ann has %v", page)
	}
	if page := from.Page("", journal.EventID{}, 9); len(page) != 5 {
		t.Errorf("there are %d letters in all, want 5", len(page))
	}
	from.MoveTo(&to, "bob")
	if len(from.Rows()) != 3 || len(to.Rows()) != 2 || to.Rows()[1].ID.Seq != 4 {
		t.Errorf("%d letters stay and %v move; want 3, and the two of bob", len(from.Rows()), to.Rows())
	}
	from.MoveTo(&to, "")
	if len(from.Rows()) != 0 || len(to.Rows()) != 5 {
		t.Errorf("%d letters stay, and %d have moved; want all", len(from.Rows()), len(to.Rows()))
	}
}
