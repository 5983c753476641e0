package engine

import (
	"cmp"
	"maps"
	"slices"
)

// redescribe gives channels the descriptions that the recipe has of them now, before
// stores are cut: their first records have it so. It returns what takes that back. The
// graphs of the channels are paused, so nobody reads a description meanwhile.
func (x *change) redescribe() (undo func()) {
	before := map[*channel]string{}
	for ch, text := range x.recipe.described {
		before[ch] = ch.description
		ch.description = text
	}
	return func() {
		for ch, text := range before {
			ch.description = text
		}
	}
}

// noteRedescribed writes down what redescribe has changed.
func (x *change) noteRedescribed() {
	byID := func(a, b *channel) int { return cmp.Compare(a.id, b.id) }
	for _, ch := range slices.SortedFunc(maps.Keys(x.recipe.described), byID) {
		if ch.home.load() != nil {
			x.putChannel(ch)
		}
	}
}
