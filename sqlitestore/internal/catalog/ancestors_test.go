package catalog

import (
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

// TestTotals compares the totals of all sessions with the sums over the ancestors of each,
// also where a forged catalogue has circles, or origins with several authors.
func TestTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "sessions")
		forged := rapid.Bool().Draw(t, "forged")
		name := func(i int) journal.SessionID { return journal.SessionID(fmt.Sprintf("s%03d", i*7919%n)) }
		a := &Ancestors{parents: map[journal.SessionID][]journal.SessionID{}, wrote: map[journal.SessionID]map[journal.Origin]uint64{}}
		for i := range n {
			for range rapid.IntRange(0, 3).Draw(t, "parents") {
				p := rapid.IntRange(0, max(i-1, 0)).Draw(t, "parent")
				if forged {
					p = rapid.IntRange(0, n-1).Draw(t, "any")
				}
				if p != i || forged {
					a.parents[name(i)] = append(a.parents[name(i)], name(p))
				}
			}
			a.wrote[name(i)] = map[journal.Origin]uint64{}
			for j := range rapid.IntRange(0, 2).Draw(t, "origins") {
				of := i
				if forged {
					of = rapid.IntRange(0, n-1).Draw(t, "of")
				}
				a.wrote[name(i)][journal.Origin{byte(of), byte(of >> 8), byte(j)}] = rapid.Uint64Range(1, 1000).Draw(t, "highest")
			}
		}
		for i := range n {
			var want int64
			for _, highest := range a.Inherited(name(i)) {
				want += int64(highest)
			}
			if got := a.Total(name(i)); got != want {
				t.Fatalf("session %s: %d events, want %d", name(i), got, want)
			}
		}
	})
}
