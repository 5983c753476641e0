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

// firstNumber is the number of the second of a name.
const firstNumber = 2

func numberedName(name string, n int) string { return name + "~" + strconv.Itoa(n) }

// names are what the creatures, or the channels, of a graph are called. They
// remember up to where the numbers behind a name are taken: of a thousand
// creatures of one name that join one after the other, the last would otherwise
// try a thousand names.
type names[V comparable] struct {
	index[string, V]
	full index[string, int] // by name: all numbers below this one are taken
}

// remove makes a name free, and with it its number.
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

// taken reports whether name with that number is taken, and remembers it if all
// below are.
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

// freeIn is free among the names of several graphs.
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
	type place struct {
		in   *graph
		name string
	}
	var list []*creature
	var wanted []string
	taken := map[place]bool{}
	for _, n := range op.Names {
		c := e.creatures.get(n.ID)
		switch {
		case c == nil:
			return notFound(aCreature, string(n.ID))
		case n.Name == "":
			return emptyName(aCreature, string(n.ID))
		case c.name == n.Name:
			continue
		}
		if !slices.Contains(e.delta.OldGraphs, c.graph.id) {
			e.within(c.graph)
		}
		list, wanted = append(list, c), append(wanted, n.Name)
		taken[place{c.graph, n.Name}] = true
	}
	// Those that want a name that another one of them has let it go first.
	for _, c := range list {
		if taken[place{c.graph, c.name}] {
			e.renameCreature(c, freeCreatureName(c.name, c.graph, c.graph))
		}
	}
	for i, c := range list {
		if c.name != wanted[i] {
			e.renameCreature(c, freeCreatureName(wanted[i], c.graph, c.graph))
		}
	}
	return nil
}
