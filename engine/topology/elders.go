package topology

import (
	"cmp"
	"slices"
)

// rank is a group of a graph's members for which the oldest is tracked.
type rank int

const (
	everyone rank = iota
	privileged
	roots
	ranks // how many
)

// elders is a binary heap of creatures, oldest first. Every creature stores
// its position, so that it can be removed in logarithmic time; a new creature
// is added in constant time because it is the youngest.
type elders struct{ items pile[*creature] }

// first returns the oldest, or nil.
func (e *elders) first() *creature {
	if e.items.size == 0 {
		return nil
	}
	return *e.items.at(0)
}

// some describes a limited number of creatures, approximately the oldest.
func (e *elders) some(most int) (found []Creature) {
	for _, c := range slices.SortedFunc(e.items.some(most), byAge) {
		found = append(found, c.describe())
	}
	return found
}

func (e *elders) add(r rank, c *creature) {
	e.items.push(c)
	e.up(r, e.items.size-1)
}

func (e *elders) remove(r rank, c *creature) {
	at, last := c.at[r], e.items.size-1
	moved := *e.items.at(last)
	e.items.pop()
	if moved == c {
		return
	}
	e.put(r, at, moved)
	e.up(r, at)
	e.down(r, moved.at[r])
}

// keep removes the creatures that need not stay, in linear time.
func (e *elders) keep(r rank, stays func(*creature) bool) {
	n := 0
	for c := range e.items.all() {
		if stays(c) {
			*e.items.at(n) = c
			n++
		}
	}
	for e.items.size > n {
		e.items.pop()
	}
	for i := n/2 - 1; i >= 0; i-- {
		e.down(r, i)
	}
	for i := range n {
		(*e.items.at(i)).at[r] = i
	}
}

func (e *elders) up(r rank, i int) {
	c := *e.items.at(i)
	for i > 0 {
		above := (i - 1) / 2
		senior := *e.items.at(above)
		if !elder(c, senior) {
			break
		}
		e.put(r, i, senior)
		i = above
	}
	e.put(r, i, c)
}

func (e *elders) down(r rank, i int) {
	c := *e.items.at(i)
	for {
		below := 2*i + 1
		if below >= e.items.size {
			break
		}
		junior := *e.items.at(below)
		if right := below + 1; right < e.items.size && elder(*e.items.at(right), junior) {
			below, junior = right, *e.items.at(right)
		}
		if !elder(junior, c) {
			break
		}
		e.put(r, i, junior)
		i = below
	}
	e.put(r, i, c)
}

func (e *elders) put(r rank, i int, c *creature) { *e.items.at(i), c.at[r] = c, i }

func elder(a, b *creature) bool { return byAge(a, b) < 0 }

// byAge, byChannelAge and byGraphAge compare by creation number. Numbers from
// several stores may be equal; then the id decides.
func byAge(a, b *creature) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func byChannelAge(a, b *channel) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func byGraphAge(a, b *graph) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}
