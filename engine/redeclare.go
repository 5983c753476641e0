package engine

import (
	"cmp"

	"github.com/seed47132306/terrarium/engine/internal/sorted"
)

// redeclare gives channels the descriptions and addresses of the current recipe before
// stores are cut, for their first records. The graphs are paused: no description is read.
func (x *change) redeclare() (undo func()) {
	undo = func() {}
	for ch, spec := range x.recipe.redeclared {
		text, place, others := ch.description, ch.place(), undo
		ch.description = spec.Description
		ch.setPlace(spec.Address, spec.Name)
		x.e.setPolicy(ch)
		undo = func() {
			ch.description = text
			ch.setPlace(place.address, place.label)
			x.e.setPolicy(ch)
			others()
		}
	}
	return undo
}

// noteRedeclared logs what redeclare has changed.
func (x *change) noteRedeclared() {
	for _, ch := range sorted.KeysFunc(x.recipe.redeclared, func(a, b *channel) int { return cmp.Compare(a.id, b.id) }) {
		if ch.home.load() != nil {
			x.putChannel(ch)
		}
	}
}
