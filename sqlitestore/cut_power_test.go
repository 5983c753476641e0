package sqlitestore

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestEndedParentIsDurable cuts two stores of the durability normal. No child continues the
// second store, because the same change has removed all of its creatures. When the cut is
// durable, everything in the second store is too, although its commits were not synced.
func TestEndedParentIsDurable(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds(t, outcomeSeeds)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			p := newPowerProgram(t, journal.Normal, seed)
			p.small = []int64{-1, 12, 40}[seed%3]
			p.disk = losevfs.Mount(p.dir, seed)
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			if err := p.create(1); err != nil {
				t.Fatal(err)
			}
			cut := journal.Cut{Kind: "split", At: 1}
			for i, s := range p.stores {
				a := p.ledger[s.Origin()]
				s.Append(whole(s.Origin(), a.appended, 20, 1000))
				events := a.appended + 20
				p.ended[s.info.Session] = int64(events)
				*a = account{appended: events, acknowledged: events, handedOn: events}
				if i > 0 { // the second store ends, so no live session has its events
					delete(p.ledger, s.Origin())
				}
				cut.Parents = append(cut.Parents, s)
			}
			child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal}, Parents: []journal.SessionID{p.stores[0].info.Session}}
			cut.Children = []journal.CutChild{child, child}
			if _, err := p.d.Cut(t.Context(), cut); err != nil {
				t.Fatal(err)
			}
			if err := p.d.makeFirm(); err != nil {
				t.Fatal(err)
			}
			p.disk.Die()
			_ = p.d.Close() // there is no power, so it fails
			if err := p.disk.PowerOff(); err != nil {
				t.Fatal(err)
			}
			rebooted(t, p.dir)
			p.restart(t, false)
		})
	}
}
