package engine

import (
	"cmp"
	"maps"
	"slices"
)

// redeclare gives channels the descriptions and addresses of the current recipe before
// stores are cut, so that their first records have them. It returns a function that undoes
// it. The graphs of the channels are paused, so no description is read meanwhile.
func (x *change) redeclare() (undo func()) {
	type declared struct {
		description string
		place       *channelPlace
	}
	before := map[*channel]declared{}
	for ch, spec := range x.recipe.redeclared {
		before[ch] = declared{ch.description, ch.place()}
		ch.description = spec.Description
		if spec.Address != ch.place().address {
			ch.setPlace(spec.Address, spec.Name)
			x.e.setPolicy(ch)
		}
	}
	return func() {
		for ch, was := range before {
			ch.description = was.description
			ch.at.Store(was.place)
			x.e.setPolicy(ch)
		}
	}
}

// noteRedeclared logs what redeclare has changed.
func (x *change) noteRedeclared() {
	byID := func(a, b *channel) int { return cmp.Compare(a.id, b.id) }
	for _, ch := range slices.SortedFunc(maps.Keys(x.recipe.redeclared), byID) {
		if ch.home.load() != nil {
			x.putChannel(ch)
		}
	}
}
