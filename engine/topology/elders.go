package topology

import "cmp"

// rank is a group of a graph's members whose eldest is asked for.
type rank int

const (
	everyone rank = iota
	privileged
	roots
	ranks // how many
)

// elders is a binary heap of creatures, eldest first. Every creature knows its
// position, so that it can leave in logarithmic time; a newborn joins in
// constant time because nobody is younger.
type elders struct{ items []*creature }

// first returns the eldest, or nil.
func (e *elders) first() *creature {
	if len(e.items) == 0 {
		return nil
	}
	return e.items[0]
}

func (e *elders) add(r rank, c *creature) {
	e.items = append(e.items, c)
	e.up(r, len(e.items)-1)
}

func (e *elders) remove(r rank, c *creature) {
	at, last := c.at[r], len(e.items)-1
	moved := e.items[last]
	e.items[last] = nil
	e.items = e.items[:last]
	if moved == c {
		return
	}
	e.items[at], moved.at[r] = moved, at
	e.up(r, at)
	e.down(r, moved.at[r])
}

func (e *elders) up(r rank, i int) {
	c := e.items[i]
	for i > 0 {
		above := (i - 1) / 2
		if !elder(c, e.items[above]) {
			break
		}
		e.items[i] = e.items[above]
		e.items[i].at[r] = i
		i = above
	}
	e.items[i], c.at[r] = c, i
}

func (e *elders) down(r rank, i int) {
	c := e.items[i]
	for {
		below := 2*i + 1
		if below >= len(e.items) {
			break
		}
		if right := below + 1; right < len(e.items) && elder(e.items[right], e.items[below]) {
			below = right
		}
		if !elder(e.items[below], c) {
			break
		}
		e.items[i] = e.items[below]
		e.items[i].at[r] = i
		i = below
	}
	e.items[i], c.at[r] = c, i
}

func elder(a, b *creature) bool { return byAge(a, b) < 0 }

// byAge, byChannelAge and byGraphAge compare by creation number. Numbers that
// come from several stores may be equal; the id decides then.
func byAge(a, b *creature) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func byChannelAge(a, b *channel) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}

func byGraphAge(a, b *graph) int {
	return cmp.Or(cmp.Compare(a.born, b.born), cmp.Compare(a.id, b.id))
}
