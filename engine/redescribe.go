package engine

import (
	"cmp"
	"maps"
	"slices"
)

// redescribe gives channels the descriptions of the current recipe before stores are cut,
// so that their first records have them. It returns a function that undoes it. The graphs
// of the channels are paused, so no description is read meanwhile.
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

// noteRedescribed logs what redescribe has changed.
func (x *change) noteRedescribed() {
	byID := func(a, b *channel) int { return cmp.Compare(a.id, b.id) }
	for _, ch := range slices.SortedFunc(maps.Keys(x.recipe.described), byID) {
		if ch.home.load() != nil {
			x.putChannel(ch)
		}
	}
}
