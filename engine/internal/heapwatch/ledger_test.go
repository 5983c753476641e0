package heapwatch

import (
	"fmt"
	"strings"
	"testing"
)

const mib = 1 << 20

type creature struct{ id string }

func newLedger() ledger[creature] {
	return ledger[creature]{limit: 100 * mib, compare: func(a, b *creature) int { return strings.Compare(a.id, b.id) }}
}

// look is one look of a test: the unaccounted memory in MiB, and the work of a
// and b since the previous look.
type look struct{ unaccounted, a, b int }

func TestLedgerSuspectsTheCreatureThatWorked(t *testing.T) {
	for _, tt := range []struct {
		name    string
		looks   []look
		suspect string // after the last look
		tooMuch bool
	}{
		{"nothing at the first look", []look{{900, 1, 1}}, "", false},
		{"growth within the limit", []look{{10, 1, 1}, {60, 9, 1}, {110, 9, 1}, {110, 9, 1}}, "", false},
		{"one look is not enough", []look{{10, 1, 1}, {200, 9, 1}}, "", false},
		{"twice too much", []look{{10, 1, 1}, {200, 9, 1}, {210, 9, 1}}, "a", true},
		{"gone at the second look", []look{{10, 1, 1}, {200, 9, 1}, {50, 9, 1}}, "", false},
		{"gone and back", []look{{10, 1, 1}, {200, 9, 1}, {50, 9, 1}, {200, 9, 1}}, "", false},
		{"the one that grew it, not the one that works now", []look{{10, 1, 1}, {200, 0, 5}, {200, 900, 0}}, "b", true},
		{"from the least that it was", []look{{500, 1, 1}, {300, 1, 1}, {420, 0, 1}, {420, 0, 1}}, "b", true},
		{"no work", []look{{10, 1, 1}, {200, 0, 0}, {200, 0, 0}}, "", true},
		{"equal work is the first by id", []look{{10, 1, 1}, {200, 5, 5}, {200, 5, 5}}, "a", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := &creature{id: "a"}, &creature{id: "b"}
			l := newLedger()
			var suspect *creature
			var tooMuch bool
			var ofA, ofB uint64
			for _, x := range tt.looks {
				ofA, ofB = ofA+uint64(x.a), ofB+uint64(x.b)
				suspect, tooMuch = l.add(int64(x.unaccounted)*mib, map[*creature]uint64{a: ofA, b: ofB})
			}
			got := ""
			if suspect != nil {
				got = suspect.id
			}
			if got != tt.suspect || tooMuch != tt.tooMuch {
				t.Errorf("suspect %q, too much %v; want %q, %v", got, tooMuch, tt.suspect, tt.tooMuch)
			}
		})
	}
}

// Memory that grows without end and that no creature holds costs each creature an instance now
// and then. It is reported now and then.
func TestLedgerClearsTheInnocent(t *testing.T) {
	l := newLedger()
	var all []*creature
	for i := range 8 {
		all = append(all, &creature{id: fmt.Sprint(i)})
	}
	tried, warned := map[*creature][]int{}, 0
	const looks = 1000
	for i := range looks {
		worked := map[*creature]uint64{}
		for _, c := range all {
			worked[c] = uint64(i)
		}
		suspect, tooMuch := l.add(int64(i)*50*mib, worked)
		switch {
		case suspect != nil:
			tried[suspect] = append(tried[suspect], i)
			l.clear(suspect)
		case tooMuch:
			warned++
			l.acceptGrowth()
		}
	}
	if len(tried) != len(all) {
		t.Errorf("%d of %d creatures were tried", len(tried), len(all))
	}
	for c, at := range tried {
		for i := 1; i < len(at); i++ {
			if at[i]-at[i-1] < clearedLooks {
				t.Errorf("creature %s was tried at the looks %d and %d", c.id, at[i-1], at[i])
			}
		}
	}
	if warned == 0 || warned > looks/restLooks {
		t.Errorf("the growth was reported %d times in %d looks", warned, looks)
	}
}

// A removed creature is forgotten.
func TestLedgerForgetsWhatIsGone(t *testing.T) {
	a, b := &creature{id: "a"}, &creature{id: "b"}
	l := newLedger()
	l.add(0, map[*creature]uint64{a: 1, b: 1})
	l.clear(a)
	l.convict(a, 0)
	l.add(200*mib, map[*creature]uint64{a: 9, b: 2})
	if suspect, tooMuch := l.add(200*mib, map[*creature]uint64{b: 2}); suspect != b || !tooMuch {
		t.Errorf("suspect %v, too much %v; want b", suspect, tooMuch)
	}
	if len(l.worked) != 1 || len(l.blamed) != 1 || len(l.cleared) != 0 || len(l.held) != 0 {
		t.Errorf("the ledger has %v, %v, %v, %v; want nothing about a", l.worked, l.blamed, l.cleared, l.held)
	}
}

// A creature whose instance has held memory is suspected before another creature that works
// more.
func TestLedgerPrefersACreatureThatHeldMemoryBefore(t *testing.T) {
	a, b := &creature{id: "a"}, &creature{id: "b"}
	l := newLedger()
	l.add(0, map[*creature]uint64{a: 1, b: 1})
	l.convict(b, 0)
	l.add(200*mib, map[*creature]uint64{a: 7, b: 4})
	if suspect, _ := l.add(200*mib, map[*creature]uint64{a: 7, b: 4}); suspect != b {
		t.Errorf("suspect %v, want b", suspect)
	}
}
