package sqlitestore

import (
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// TestLowSpace cuts a store while there is no room for copies of its history. The history is
// read where it is, and writing continues. Once there is room, the history is copied.
func TestLowSpace(t *testing.T) {
	var free atomic.Int64
	d, err := Open(t.Context(), t.TempDir(), Options{hooks: failpoint.Hooks{Free: free.Load}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := createStore(t, d)
	logged(s, 1, 100)
	children, err := d.Cut(t.Context(), splitOf(s))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "copying without room", d.Settle(t.Context()), abi.Storage, "no space", "0 are free")
	problems := d.Problems()
	if len(problems) != 1 {
		t.Fatalf("problems %v, want one", problems)
	}
	wantError(t, "the problem", problems[0], abi.Storage, "no space")
	for _, c := range children {
		child := c.(*Store)
		chatter(child, "c", 1, 10, 10)
		if err := child.Wait(t.Context(), 10); err != nil {
			t.Error(err)
		}
		events, err := child.History(t.Context(), journal.HistoryQuery{})
		if err != nil || len(events) != 110 {
			t.Errorf("%d events, want 110; %v", len(events), err)
		}
		wantSound(t, d, child.info.Session)
	}
	free.Store(1 << 40)
	settle(t, d)
	for _, c := range children {
		if !c.Info().Complete {
			t.Errorf("%s is not complete", c.Info().Session)
		}
		wantSound(t, d, c.Info().Session)
	}
	if problems := d.Problems(); len(problems) > 0 {
		t.Errorf("problems %v, although there is room", problems)
	}
}
