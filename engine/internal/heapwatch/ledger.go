package heapwatch

import (
	"cmp"
	"slices"
)

const (
	// heldLooks is how many consecutive looks must find too much.
	heldLooks = 2
	// restLooks is how many looks pass without a trial after all trials have failed.
	restLooks = 16
	// clearedLooks is how many looks pass until a cleared creature may be
	// suspected again.
	clearedLooks = 64
	// suspectPart is the share of the growth, one in so many, that must be
	// attributed to a creature before it is suspected. It also bounds the
	// number of suspects.
	suspectPart = 16
)

// ledger attributes the growth of the live heap that is not accounted for.
// Each look follows a garbage collection. Growth is attributed to the
// creatures that have worked since the last look, in proportion to their work.
// Two creatures that work equally get the same share, whichever is to blame,
// so this is only a suspicion.
type ledger[T any] struct {
	limit   int64
	compare func(a, b *T) int // orders two creatures with the same share
	looks   int
	worked  map[*T]uint64 // in total, as of the last look
	blamed  map[*T]int64  // bytes attributed to it
	cleared map[*T]int    // the look from which it may be suspected again
	held    map[*T]bool   // an instance of it has held memory before
	last    int64         // unaccounted bytes at the last look
	floor   int64         // the least unaccounted since settle
	over    int           // consecutive looks that found too much
	rest    int           // no trial before this look
}

// add records the result of a look: the unaccounted bytes, and how much every
// creature has worked. It returns whether that is too much and requires
// action, and the creature to try first, if one stands out.
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

// share attributes growth to the creatures that have worked, and deducts
// released memory from all in proportion. It forgets removed creatures.
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

// grown returns by how much the unaccounted bytes at the last look exceed the
// minimum.
func (l *ledger[T]) grown() int64 { return l.last - l.floor }

// most lists the creatures with a share of the growth: first those whose
// instances have held memory before, then by the size of the share.
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

// clear records that a creature's instance held no significant memory.
func (l *ledger[T]) clear(c *T) { l.cleared[c] = l.looks + clearedLooks }

// convict records the unaccounted bytes after the end of a convicted
// creature's instance.
func (l *ledger[T]) convict(c *T, unaccounted int64) {
	delete(l.blamed, c)
	l.held[c] = true
	l.last, l.floor, l.over = unaccounted, min(l.floor, unaccounted), 0
}

// acceptGrowth accepts the current growth, because no trial is left that could
// change it: further growth is measured from here.
func (l *ledger[T]) acceptGrowth() {
	clear(l.blamed)
	l.floor, l.over, l.rest = l.last, 0, l.looks+restLooks
}
