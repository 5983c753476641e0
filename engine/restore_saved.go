package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/modules"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/regrow"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/journal"
)

// loadSaved reads the list of graphs in the storage.
func (e locked) loadSaved(ctx context.Context) error {
	if e.storage == nil {
		return nil
	}
	graphs, problems, err := e.storage.Saved(ctx)
	if err != nil {
		return err
	}
	e.problems = problems
	for _, p := range problems {
		e.log.Warn("a store was set aside", "problem", p)
	}
	if err := e.loadSuccessors(ctx); err != nil {
		return err
	}
	for _, g := range graphs {
		regrow.StartAbove(e.topo, &g)
		e.clock.Begin(g.LastTime)
		if len(g.Creatures) == 0 {
			if !journal.IsCutShort(problems, g.Session) { // its members may be in the lost part
				e.retireEmpty(ctx, &g)
			}
			continue
		}
		e.saved[g.Graph] = &g
	}
	return nil
}

// Problems returns the stores that could not be read when the engine was started, and unknown
// files of the session directory. They have been set aside and their contents are missing;
// everything else continues. Then come the present problems of the session directory, such as a
// store that cannot be written. The errors are of the type [abi.Error] and name the path.
func (e *Engine) Problems() []error {
	l := e.core.rlock()
	out := slices.Clone(l.problems)
	l.runlock()
	if e.core.storage != nil {
		out = append(out, e.core.storage.Problems()...)
	}
	return out
}

// reportProblems reports the problems to observers, once.
func (e locked) reportProblems() {
	if e.reported {
		return
	}
	e.reported = true
	for _, p := range e.problems {
		e.observers.Publish(&journal.Event{Time: e.wallClock(), Kind: journal.EventStoreSetAside, Payload: journal.JSON(journal.StoreSetAside(p))}, observe.Source{})
	}
}

// Saved lists the saved graphs that have not been restored, oldest first.
func (e *Engine) Saved() []journal.SavedGraph {
	l := e.core.rlock()
	defer l.runlock()
	return regrow.Rows(l.saved.Sorted())
}

// Restore restores every saved graph as it was, including creatures that no recipe
// declares. A creature whose module cannot be loaded is restored as stopped; the second
// result says why, after the engine's [Engine.Problems].
func (e *Engine) Restore(ctx context.Context) (graphs []journal.GraphID, problems []error, err error) {
	if err := e.takeTurn(ctx); err != nil {
		return nil, nil, err
	}
	defer e.passTurn()
	l := e.core.lock()
	defer l.unlock()
	if l.closed || e.core.isClosing() {
		return nil, nil, errtext.Closed
	}
	l.reportProblems()
	problems = slices.Clone(l.problems)
	waking := &waking{e: l}
	for _, d := range l.saved.Sorted() {
		err := waking.bringBack(ctx, d, func(ctx context.Context, row journal.CreatureRow) (*creature, error) {
			c, err := e.revive(ctx, row, nil)
			if err == nil && c.huskReason != nil {
				problems = append(problems, c.huskReason)
			}
			return c, err
		})
		if err != nil {
			waking.rollBack(ctx)
			return nil, nil, err
		}
		graphs = append(graphs, d.Graph)
	}
	l.restored = true
	waking.commit()
	return graphs, problems, nil
}

// newHusk makes a placeholder for a saved creature that will not run: it keeps its place,
// its cursors and its backlog.
func newHusk(row journal.CreatureRow) *creature {
	spec, err := specs.OfRow(row)
	unread := err != nil
	if unread {
		spec = deploy.CreatureSpec{Name: row.Name, Address: row.Address, Module: row.Module}
	}
	spec.Stopped = true
	c, err := newCreature(row.ID, spec, modules.Absent{SHA256: row.SHA256})
	if err != nil {
		spec.Config = nil // nothing else is left to refuse
		c, _ = newCreature(row.ID, spec, modules.Absent{SHA256: row.SHA256})
		unread = true
	}
	if c.husk = true; unread {
		c.unread = row.Spec
	}
	c.deployment = row.Deployment
	return c
}

// revive makes a saved creature as it was, with the secrets that d has; a creature whose
// module or secret is not available becomes a husk.
func (e *Engine) revive(ctx context.Context, row journal.CreatureRow, d *deploy.Deployment) (*creature, error) {
	if e.core.paused {
		return newHusk(row), nil
	}
	spec, err := specs.OfRow(row)
	if err == nil {
		if spec, _, err = specs.Regrant(spec, d); abi.CodeOf(err) == abi.InvalidArgument {
			return nil, err
		}
	}
	if err == nil {
		var c *creature
		if c, err = prepare(ctx, &e.core, adding, spec, nil); err == nil {
			c.id, c.deployment, c.revived = row.ID, row.Deployment, true
			return c, nil
		}
	}
	husk := newHusk(row)
	husk.huskReason = fmt.Errorf("creature %s stays stopped: %w", row.Name, err)
	e.core.log.Warn("a saved creature stays stopped", "creature", row.ID, "name", row.Name, "error", err)
	return husk, nil
}

// restoreChannels makes the channels of a saved graph.
func (x *change) restoreChannels() {
	for _, row := range x.saved.Channels {
		x.channels[row.ID] = &channel{
			id: row.ID, name: row.Name, description: row.Description, deployment: row.Deployment, inbox: row.Inbox,
		}
		x.channels[row.ID].setPlace(row.Address, row.Name)
	}
	for _, h := range x.saved.Heads {
		if ch := x.channels[h.Channel]; ch != nil {
			ch.head = h.Seq
		}
	}
	for _, p := range x.saved.Producers {
		if ch := x.channels[p.Channel]; ch != nil {
			if ch.producers == nil {
				ch.producers = map[string]uint64{}
			}
			ch.producers[p.Producer] = p.Offset
		}
	}
	for _, c := range x.saved.Cursors {
		if ch := x.channels[c.Channel]; ch != nil && strings.HasPrefix(string(c.Reader), readerPrefix) {
			if ch.cursors == nil {
				ch.cursors = map[journal.ReaderID]uint64{}
			}
			ch.cursors[c.Reader] = c.Seq
		}
	}
}

// known returns a creature's id if the creature exists, in a graph that is being brought back
// or in any other; otherwise it returns none, because a parent may have been in a graph
// without a store.
func (x *change) known(id journal.CreatureID) journal.CreatureID {
	if id == "" || x.e.creatures[id] != nil || x.creatures[id] != nil || x.e.saved.Has(id) {
		return id
	}
	return ""
}
