package sqlitestore

import (
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// TestRowsAtWhereAFileOnlyNamesTheOrigin reads the topology of a session whose file was
// removed. The file of its youngest descendant names the session's origin, as the cause of an
// event, but has no event of that origin. The file of the descendant before has all of them.
func TestRowsAtWhereAFileOnlyNamesTheOrigin(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	free.Store(1 << 40)
	o := Options{hooks: failpoint.Hooks{Unsynced: true, SmallEvents: 1, Free: free.Load}}
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	grandparent := createStore(t, d)
	grandparent.Append(whole(grandparent.origin, 0, 20, 100))
	cut := splitOf(grandparent)
	cut.Children = cut.Children[:1]
	made, err := d.Cut(t.Context(), cut)
	if err != nil {
		t.Fatal(err)
	}
	parent := made[0].(*Store)
	logged(parent, 1, 20)
	if err := d.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	free.Store(0) // from now on, the background copies nothing
	child := splitStore(t, d, parent)[0]
	rec := whole(child.origin, 1, 1, 100)
	rec.Events[0].Cause = journal.EventID{Origin: grandparent.origin, Seq: 5}
	child.Append(rec)
	if err := child.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if e := entriesOf(t, d.dir); e[grandparent.info.Session].File != "" || child.Info().Complete {
		t.Fatal("the oldest session has its file, or the youngest is complete")
	}
	g, err := d.RowsAt(t.Context(), grandparent.info.Session, journal.Mark{Event: journal.EventID{Origin: grandparent.origin, Seq: 20}, Since: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Channels) != 1 || g.Channels[0].ID != journal.ChannelID("channel-"+grandparent.origin.String()) {
		t.Errorf("the channels are %+v, want the one of the oldest session", g.Channels)
	}
}
