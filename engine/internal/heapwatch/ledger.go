package heapwatch

import (
	"cmp"
	"slices"
)

const (
	// heldLooks is how many looks in a row must find too much.
	heldLooks = 2
	// restLooks is how many looks pass without a trial after all trials have failed.
	restLooks = 16
	// clearedLooks is how many looks pass until a creature may be suspected again
	// whose instance held nothing.
	clearedLooks = 64
	// suspectPart is the part of the growth that must be put down to a creature
	// before it is suspected. There are no more suspects than that at a time.
	suspectPart = 16
)

// ledger shares out what the live heap grows by beyond what is accounted. Each
// look follows a garbage collection. Growth is put down to the creatures that have
// worked since the last look, in proportion. Two that work equally get the same,
// whichever is to blame, so this is a suspicion and no more.
type ledger[T any] struct {
	limit   int64
	compare func(a, b *T) int // of two to which the same is put down
	looks   int
	worked  map[*T]uint64 // in all, as of the last look
	blamed  map[*T]int64  // bytes put down to it
	cleared map[*T]int    // the look from which on it may be suspected again
	held    map[*T]bool   // an instance of it has held memory before
	last    int64         // what was unaccounted at the last look
	floor   int64         // the least that was since settle
	over    int           // looks in a row that found too much
	rest    int           // no trial before this look
}

// add notes what a look has found: the bytes that are unaccounted, and how much every
// creature has worked. It answers whether that is too much and something is to be
// done, and the creature to be tried first, if one stands out.
func (l *ledger[T]) add(unaccounted int64, worked map[*T]uint64) (suspect *T, tooMuch bool) {
	l.looks++
	if l.looks == 1 {
		l.last, l.floor = unaccounted, unaccounted
	}
	l.share(unaccounted-l.last, worked)
	l.last, l.floor = unaccounted, min(l.floor, unaccounted)
	if l.grown() <= l.limit {
		l.over = 0
		return nil, false
	}
	l.over++
	if l.over < heldLooks || l.looks < l.rest {
		return nil, false
	}
	for _, c := range l.most() {
		if l.looks >= l.cleared[c] && l.blamed[c] >= l.grown()/suspectPart {
			return c, true
		}
	}
	return nil, true
}

// share puts growth down to the creatures that have worked, and takes what is gone
// from all alike. It forgets those that are gone.
func (l *ledger[T]) share(grown int64, worked map[*T]uint64) {
	var total float64
	did := func(c *T) float64 { return float64(worked[c] - min(worked[c], l.worked[c])) }
	for c := range worked {
		total += did(c)
	}
	left := 1.0
	if before := l.grown(); grown < 0 && before > 0 {
		left = float64(max(0, before+grown)) / float64(before)
	}
	blamed, cleared, held := map[*T]int64{}, map[*T]int{}, map[*T]bool{}
	for c := range worked {
		bytes := float64(l.blamed[c]) * left
		if grown > 0 && total > 0 {
			bytes += float64(grown) * did(c) / total
		}
		if bytes >= 1 {
			blamed[c] = int64(bytes)
		}
		if look := l.cleared[c]; look > l.looks {
			cleared[c] = look
		}
		if l.held[c] {
			held[c] = true
		}
	}
	l.worked, l.blamed, l.cleared, l.held = worked, blamed, cleared, held
}

// grown is how much more was unaccounted at the last look than at the best one.
func (l *ledger[T]) grown() int64 { return l.last - l.floor }

// most lists the creatures to which something is put down: first those of which an
// instance has held memory before, then those to which the most is.
func (l *ledger[T]) most() []*T {
	out := make([]*T, 0, len(l.blamed))
	for c := range l.blamed {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *T) int {
		if l.held[a] != l.held[b] {
			if l.held[a] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(l.blamed[b], l.blamed[a]), l.compare(a, b))
	})
	return out
}

// clear notes that a creature's instance held nothing worth mentioning.
func (l *ledger[T]) clear(c *T) { l.cleared[c] = l.looks + clearedLooks }

// convict notes that the end of a creature's instance has left so much unaccounted.
func (l *ledger[T]) convict(c *T, unaccounted int64) {
	delete(l.blamed, c)
	l.held[c] = true
	l.last, l.floor, l.over = unaccounted, min(l.floor, unaccounted), 0
}

// acceptGrowth takes what is there for granted, because no trial is left that could change
// it: the next growth is measured from here.
func (l *ledger[T]) acceptGrowth() {
	clear(l.blamed)
	l.floor, l.over, l.rest = l.last, 0, l.looks+restLooks
}
