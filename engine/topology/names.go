package topology

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// free returns name, or the first of name~2, name~3, … that is not taken.
func free(name string, taken func(string) bool) string {
	for n, candidate := firstNumber, name; ; n++ {
		if !taken(candidate) {
			return candidate
		}
		candidate = numberedName(name, n)
	}
}

// firstNumber is the number added to the second use of a name.
const firstNumber = 2

func numberedName(name string, n int) string { return name + "~" + strconv.Itoa(n) }

// names holds the names of the creatures, or of the channels, of a graph. It
// remembers up to which number the numbered forms of a name are taken.
// Otherwise, if a thousand creatures of one name joined one after the other,
// the last would try a thousand names.
type names[V comparable] struct {
	index[string, V]
	full index[string, int] // by name: all numbers below this one are taken
}

// remove frees a name and its number.
func (x *names[V]) remove(name string) {
	x.index.remove(name)
	if x.full.count == 0 {
		return
	}
	at := strings.LastIndexByte(name, '~')
	if at < 0 {
		return
	}
	n, err := strconv.Atoi(name[at+1:])
	if base := name[:at]; err == nil && n < x.full.get(base) {
		x.full.set(base, n)
	}
}

// part moves the names whose values are leaving to the names of another graph.
func (x *names[V]) part(into *names[V], leaves func(V) bool) {
	if x.full.count == 0 {
		x.index.part(&into.index, leaves)
		return
	}
	var gone []entry[string, V]
	for b := range x.buckets.pointers() {
		for _, e := range b.entries {
			if leaves(e.value) {
				gone = append(gone, e)
			}
		}
	}
	for _, e := range gone {
		x.remove(e.key)
		into.put(e)
	}
}

// taken reports whether name with that number is taken, and remembers it if
// all lower numbers are.
func (x *names[V]) taken(name, numbered string, n int) bool {
	var none V
	if x.get(numbered) == none {
		return false
	}
	if n == max(firstNumber, x.full.get(name)) {
		x.full.set(name, n+1)
	}
	return true
}

// freeIn is free for the names of several graphs.
func freeIn[V comparable](name string, all ...*names[V]) string {
	var none V
	used, n := false, firstNumber
	for _, x := range all {
		used = used || x.get(name) != none
		n = max(n, x.full.get(name))
	}
	if !used {
		return name
	}
	for ; ; n++ {
		candidate, used := numberedName(name, n), false
		for _, x := range all {
			used = x.taken(name, candidate, n) || used
		}
		if !used {
			return candidate
		}
	}
}

// freeChannelName finds a channel name that neither graph uses.
func freeChannelName(name string, a, b *graph) string {
	return freeIn(name, &a.channelNames, &b.channelNames)
}

// freeCreatureName finds a creature name that neither graph uses.
func freeCreatureName(name string, a, b *graph) string {
	return freeIn(name, &a.creatureNames, &b.creatureNames)
}

func (e *edit) setNamesOp(op SetNames) *abi.Error {
	wanted := map[*creature]string{}
	for _, n := range op.Names {
		c := e.creatures.get(n.ID)
		switch {
		case c == nil:
			return notFound(aCreature, string(n.ID))
		case n.Name == "":
			return emptyName(aCreature, string(n.ID))
		}
		wanted[c] = n.Name // the last counts, if there are several
	}
	var list []*creature
	for _, n := range op.Names {
		c := e.creatures.get(n.ID)
		if c.name == wanted[c] || slices.Contains(list, c) {
			continue
		}
		if !slices.Contains(e.delta.OldGraphs, c.graph.id) {
			e.within(c.graph)
		}
		list = append(list, c)
	}
	for _, n := range op.Channels {
		switch ch := e.channels.get(n.ID); {
		case ch == nil:
			return notFound(aChannel, string(n.ID))
		case n.Name == "":
			return emptyName(aChannel, string(n.ID))
		}
	}
	e.renameCreatures(list, wanted)
	for _, n := range op.Channels {
		if ch := e.channels.get(n.ID); ch.name != n.Name {
			if !slices.Contains(e.delta.OldGraphs, ch.graph.id) {
				e.within(ch.graph)
			}
			e.renameChannel(ch, freeChannelName(n.Name, ch.graph, ch.graph))
		}
	}
	return nil
}

// renameCreatures gives creatures the wanted names, or else the next free
// ones. All old names are freed first, so that creatures can exchange names.
func (e *edit) renameCreatures(list []*creature, wanted map[*creature]string) {
	old, names := make([]string, len(list)), make([]string, len(list))
	release := func() {
		for _, c := range list {
			c.graph.creatureNames.remove(c.name)
		}
	}
	take := func(c *creature, name string) {
		c.name = name
		c.graph.creatureNames.set(name, c)
	}
	release()
	for i, c := range list {
		old[i], names[i] = c.name, freeCreatureName(wanted[c], c.graph, c.graph)
		take(c, names[i])
	}
	undo := func() {
		release()
		for i, c := range list {
			take(c, old[i])
		}
	}
	for i, c := range list {
		if old[i] == names[i] {
			continue
		}
		e.delta.Renamed = append(e.delta.Renamed, Renaming{Creature: c.id, Old: old[i], New: names[i]})
		e.note(Change{Kind: CreatureRenamed, Creature: c.id, Name: names[i]}, undo)
		undo = func() {} // the first change is undone last, with all others
	}
}
