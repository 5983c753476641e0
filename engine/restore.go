package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
)

// waking brings saved graphs back. Nothing of them runs before commit, and rollBack makes
// them dormant again.
type waking struct {
	e       locked
	changes []*change
}

// bringBack brings back one graph. specOf makes the creature of a row.
func (w *waking) bringBack(ctx context.Context, d *journal.SavedGraph, specOf func(context.Context, journal.CreatureRow) (*creature, error)) (err error) {
	x := newChange(w.e, "resume", draft.Options{Unjudged: true, IDs: &savedIDs{w.e, d.Graph}})
	defer func() {
		for _, c := range x.creatures {
			if err != nil && c.revived {
				w.e.discardPrepared(ctx, c)
			}
		}
	}()
	x.summary = true
	x.saved.SavedGraph = d
	slices.SortFunc(d.Creatures, func(a, b journal.CreatureRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	for _, row := range d.Creatures {
		c, err := specOf(ctx, row)
		if err != nil {
			return err
		}
		seen := specs.SeenIn(row.Spec)
		c.id, c.started, c.own = row.ID, row.Started, specs.OwnIn(row.Spec)
		c.sight = sight{revision: seen.Revision, digest: seen.Digest, notified: seen.Notified}
		c.stopped, c.savedStopped, c.paused = row.Stopped || c.husk, row.Stopped, row.State() == journal.Paused
		c.approvals.Restore(specs.ApprovalsIn(row.Spec), func() map[string]bool { return storemeta.MembersIn(d) })
		c.unpark(w.e.core)
		x.add(c)
	}
	x.indexCursors()
	x.restoreAsks()
	x.restoreWires()
	x.restoreChannels()
	stopped := func(c journal.CreatureID) bool { return x.creatures[c].husk }
	x.recipe.ops = append(x.recipe.ops, regrow.Operations(x.saved.SavedGraph, x.known, stopped)...)
	store, err := w.e.storage.Open(ctx, d.Session)
	if err != nil {
		return err
	}
	x.saved.adopt = store
	if err := restoreReaches(ctx, x, store); err != nil {
		return errors.Join(err, store.Close(ctx))
	}
	if x.lastTime, err = storemeta.LastTime(ctx, store); err != nil {
		return errors.Join(err, store.Close(ctx))
	}
	delete(w.e.saved, d.Graph)
	if err := x.bringBack(ctx); err != nil {
		w.e.saved[d.Graph] = d
		if cerr := store.Close(ctx); cerr != nil {
			w.e.log.Error("closing a store", "session", d.Session, "error", cerr)
		}
		return err
	}
	for _, c := range x.creatures {
		w.e.forgetInstance(ctx, c)
	}
	w.changes = append(w.changes, x)
	return nil
}

// bringBack applies the operations that lead to the saved graph, and puts its edges in
// the order in which they were added.
func (x *change) bringBack(ctx context.Context) error {
	if err := x.Stage(x.recipe.ops...); err != nil {
		return err
	}
	place := func(c journal.CreatureID, ch journal.ChannelID) uint64 {
		return x.e.topo.EdgeOrder(c, ch, journal.Listen)
	}
	for _, e := range x.saved.Edges {
		x.e.topo.SetEdgeOrder(e.Creature, e.Channel, e.Direction, e.Order)
	}
	if err := x.carryOut(ctx); err != nil {
		return err
	}
	for id, ch := range x.channels {
		slices.SortFunc(ch.feeds, func(a, b *feed) int {
			return cmp.Compare(place(a.mb.creature.id, id), place(b.mb.creature.id, id))
		})
	}
	return nil
}

// forgetInstance closes the instance that has proved that a creature can start. It
// started without the saved state, so the first turn must make another one.
func (e *core) forgetInstance(ctx context.Context, c *creature) {
	e.discardInstance(ctx, c)
	c.instances.Store(0)
}

// commit lets the graphs that were brought back run.
func (w *waking) commit() {
	var wake waker
	for _, x := range w.changes {
		x.resumeAsks()
		for _, c := range x.creatures {
			if g := c.home.enter(); !g.none() {
				c.wake(g, &wake)
				g.leave()
			}
		}
	}
	wake.flush(w.e.core)
}

// rollBack makes the graphs dormant again.
func (w *waking) rollBack(ctx context.Context) {
	for _, x := range slices.Backward(w.changes) {
		g := x.e.graphs[x.saved.Graph]
		for id := range x.creatures {
			c := x.creatures[id]
			c.home.store(nil)
			x.e.setParent(section{}, c, "")
			x.e.setWires(section{}, c, nil)
			c.root = false
			x.e.noteRoot(c)
			delete(x.e.creatures, id)
			x.e.countSpawned(c, -1)
			if c.revived {
				x.e.discardPrepared(ctx, c)
			}
		}
		for id := range x.channels {
			x.e.noteReport(x.channels[id], true)
			delete(x.e.channels, id)
		}
		delete(x.e.graphs, x.saved.Graph)
		x.Undo()
		x.e.saved[x.saved.Graph] = x.saved.SavedGraph
		if g != nil && g.store != nil {
			if err := g.store.Close(ctx); err != nil {
				x.e.log.Error("closing a store", "session", x.saved.Session, "error", err)
			}
		}
	}
}

// savedIDs lets a saved graph keep its id when it is brought back.
type savedIDs struct {
	locked
	next journal.GraphID
}

func (s *savedIDs) NewGraph() journal.GraphID {
	if id := s.next; id != "" {
		s.next = ""
		return id
	}
	return s.locked.NewGraph()
}
