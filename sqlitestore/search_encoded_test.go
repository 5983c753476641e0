package sqlitestore

import (
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
)

// TestSearchWhatIsEncoded finds words in keys and texts that are percent-encoded, both as
// written and as decoded.
func TestSearchWhatIsEncoded(t *testing.T) {
	d := mustOpen(t, t.TempDir())
	defer d.Close()
	s := createStore(t, d)
	s.Append(&journal.Record{Events: []journal.Event{
		{ID: journal.EventID{Origin: s.Origin(), Seq: 1}, Time: 1, Kind: journal.EventState, Creature: "c", Payload: []byte("count/a%20frog\x00=1")},
		{ID: journal.EventID{Origin: s.Origin(), Seq: 2}, Time: 2, Kind: journal.EventChannelMessage, Channel: "h", Seq: 1, Payload: []byte("GET /pond?q=%C3%A9lan+newt")},
	}})
	if err := s.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint64{"frog": 1, `"a frog"`: 1, "20frog": 1, "élan": 2, "newt pond": 2} {
		r, err := d.Search(t.Context(), search.Query{Text: text})
		if err != nil || len(r.Found) != 1 || r.Found[0].ID.Seq != want {
			t.Errorf("%s found %+v, %v; want event %d", text, r.Found, err, want)
		}
	}
}
