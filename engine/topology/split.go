package topology

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// piece is a connected part of a graph that may have split.
type piece struct {
	creatures []*creature // oldest first
	channels  []*channel  // oldest first
	root      bool
}

// divide recomputes the graphs after removals from g. ends has a node of every
// piece into which g may have split.
func (e *edit) divide(g *graph, ends []*node) *abi.Error {
	walks := distinct(ends)
	if walks == nil {
		e.within(g)
		return nil
	}
	pieces, rest := allButOne(walks)
	remain := g.size()
	for _, p := range pieces {
		remain -= len(p.creatures)
	}
	slices.SortFunc(pieces, bySeniority)
	// The piece not walked to its end keeps the id if it has the most
	// creatures. Otherwise bySeniority must compare it, which needs the
	// complete piece.
	if len(pieces[0].creatures) >= remain {
		for rest.step() {
		}
		pieces = append(pieces, rest.finish())
		slices.SortFunc(pieces, bySeniority)
		pieces = pieces[1:]
	}
	return e.leave(g, pieces)
}

// leave gives every piece its own graph. Everything not in a piece, including
// channels without edges, stays in g.
func (e *edit) leave(g *graph, pieces []piece) *abi.Error {
	e.delta.Kind = Split
	e.delta.OldGraphs = []GraphID{g.id}
	e.delta.NewGraphs = []GraphID{g.id}
	for _, p := range pieces {
		child, err := e.addGraph()
		if err != nil {
			return err
		}
		e.delta.NewGraphs = append(e.delta.NewGraphs, child.id)
		e.part(p, g, child)
	}
	return nil
}

// bySeniority puts the piece first that keeps the id: the one with more
// creatures, then with a root, then with the oldest creature.
func bySeniority(a, b piece) int {
	byRoot := 0
	switch {
	case a.root && !b.root:
		byRoot = -1
	case b.root && !a.root:
		byRoot = 1
	}
	return cmp.Or(
		cmp.Compare(len(b.creatures), len(a.creatures)),
		byRoot,
		byAge(a.creatures[0], b.creatures[0]),
	)
}

// walk visits the nodes of one piece along its tree links. A tour would lead
// there too, but has three more stops for each node, each in another place in
// memory.
type walk struct {
	visits []visit // in the order of visiting
	at     int     // the visit whose links are followed
	arm    int     // the next of these links
	piece
}

type visit struct{ node, from *node }

// distinct returns a walk for each piece that the ends are in, if there are
// two or more. It reads as little as possible, because climbing a large tour
// waits for memory at every step. A channel without edges is not a piece. It
// modifies ends.
func distinct(ends []*node) []*walk {
	ends = slices.DeleteFunc(ends, func(n *node) bool { return n.channel != nil && n.alone() })
	if len(ends) < 2 {
		return nil
	}
	var starts []*node
	seen := map[*stop]bool{}
	for _, n := range ends {
		if tour := n.stop.tour(); !seen[tour] {
			seen[tour] = true
			starts = append(starts, n)
		}
	}
	if len(starts) < 2 {
		return nil
	}
	walks := make([]*walk, len(starts))
	for i, n := range starts {
		walks[i] = &walk{}
		walks[i].visit(n, nil)
	}
	return walks
}

// allButOne advances the walks in turn until all but one have ended, so that
// the largest piece is not walked completely. It returns the pieces of the
// others and that one walk.
func allButOne(walks []*walk) (pieces []piece, rest *walk) {
	for i := 0; len(walks) > 1; i++ {
		if i >= len(walks) {
			i = 0
		}
		if !walks[i].step() {
			pieces = append(pieces, walks[i].finish())
			walks[i] = walks[len(walks)-1]
			walks = walks[:len(walks)-1]
		}
	}
	return pieces, walks[0]
}

// step follows one link and reports whether there was one. A node may have very
// many, so they are not followed all at once.
func (w *walk) step() bool {
	for w.at < len(w.visits) {
		v := w.visits[w.at]
		if w.arm == v.node.trees {
			w.at, w.arm = w.at+1, 0
			continue
		}
		to := v.node.links[w.arm].to
		w.arm++
		if to != v.from {
			w.visit(to, v.node)
		}
		return true
	}
	return false
}

func (w *walk) visit(n, from *node) {
	w.visits = append(w.visits, visit{n, from})
	if n.creature != nil {
		w.creatures = append(w.creatures, n.creature)
		w.root = w.root || n.creature.root
	} else {
		w.channels = append(w.channels, n.channel)
	}
}

func (w *walk) finish() piece {
	slices.SortFunc(w.creatures, byAge)
	slices.SortFunc(w.channels, byChannelAge)
	return w.piece
}
