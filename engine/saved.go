package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/topology"
)

// dormant is a saved graph that has not been brought back yet.
type dormant struct{ SavedGraph }

// loadSaved reads which graphs the storage has.
func (e *Engine) loadSaved(ctx context.Context) error {
	if e.storage == nil {
		return nil
	}
	graphs, problems, err := e.storage.Saved(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		e.log.Warn("a store was set aside", "problem", p)
	}
	for _, g := range graphs {
		e.startAbove(&g)
		if len(g.Creatures) == 0 {
			e.retireEmpty(ctx, &g)
			continue
		}
		e.saved[g.Graph] = &dormant{g}
	}
	return nil
}

// startAbove makes everything that is going to be added younger than a saved
// graph.
func (e *Engine) startAbove(g *SavedGraph) {
	var creature, channel, edge uint64
	for i := range g.Creatures {
		creature = max(creature, g.Creatures[i].Born)
	}
	for i := range g.Channels {
		channel = max(channel, g.Channels[i].Born)
	}
	for i := range g.Edges {
		edge = max(edge, g.Edges[i].Order)
	}
	e.topo.StartAbove(creature, channel, g.Born, edge)
}

// Saved lists the saved graphs that have not been brought back, eldest first.
func (e *Engine) Saved() []SavedGraph {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := []SavedGraph{}
	for _, d := range e.sortedSaved() {
		out = append(out, d.SavedGraph)
	}
	return out
}

func (e *Engine) sortedSaved() []*dormant {
	out := make([]*dormant, 0, len(e.saved))
	for _, d := range e.saved {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *dormant) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.Graph, b.Graph))
	})
	return out
}

// savedWith lists the saved graphs that have members of a deployment.
func (e *Engine) savedWith(deployment string) []*dormant {
	var out []*dormant
	for _, d := range e.sortedSaved() {
		has := slices.ContainsFunc(d.Creatures, func(c CreatureRow) bool { return c.Deployment == deployment })
		if has || slices.ContainsFunc(d.Channels, func(c ChannelRow) bool { return c.Deployment == deployment }) {
			out = append(out, d)
		}
	}
	return out
}

// Restore brings every saved graph back as it was, creatures that no recipe
// declared included. A creature whose module cannot be loaded comes back
// stopped; the second result says why.
func (e *Engine) Restore(ctx context.Context) (graphs []GraphID, problems []error, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.isClosing() {
		return nil, nil, errClosed
	}
	waking := e.newWaking()
	for _, d := range e.sortedSaved() {
		err := waking.add(ctx, d, func(ctx context.Context, row CreatureRow) (*creature, error) {
			c, err := e.revive(ctx, row)
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
	waking.commit()
	return graphs, problems, nil
}

// newHusk stands for a saved creature that is not going to run: it keeps its
// place, its cursors and what waits for it.
func newHusk(row CreatureRow) *creature {
	spec, err := decodeSpec(row)
	if err != nil {
		spec = CreatureSpec{Name: row.Name, Address: row.Address, Module: row.Module}
	}
	spec.Stopped = true
	c, err := newCreature(row.ID, spec, absentModule{info: abi.ModuleInfo{SHA256: row.SHA256}})
	if err != nil {
		spec.Config = nil
		c, _ = newCreature(row.ID, spec, absentModule{info: abi.ModuleInfo{SHA256: row.SHA256}})
	}
	c.husk = true
	c.deployment = row.Deployment
	return c
}

// absentModule is the module of a husk.
type absentModule struct{ info abi.ModuleInfo }

func (m absentModule) Info() *abi.ModuleInfo { return &m.info }

func (m absentModule) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return nil, &abi.Error{Code: abi.Unavailable, Message: "the module of this creature is not loaded", Remedy: "make the module available and restore the session again"}
}

func (m absentModule) Close(context.Context) error { return nil }

// revive makes a saved creature as it was; one whose module is not to be had
// becomes a husk.
func (e *Engine) revive(ctx context.Context, row CreatureRow) (*creature, error) {
	if e.paused {
		return newHusk(row), nil
	}
	spec, err := decodeSpec(row)
	if err == nil {
		var c *creature
		if c, err = e.prepare(ctx, spec); err == nil {
			c.id, c.deployment, c.revived = row.ID, row.Deployment, true
			return c, nil
		}
	}
	husk := newHusk(row)
	husk.huskReason = fmt.Errorf("creature %s stays stopped: %w", row.Name, err)
	e.log.Warn("a saved creature stays stopped", "creature", row.ID, "name", row.Name, "error", err)
	return husk, nil
}

// waking brings saved graphs back. Until commit nothing of them runs, and
// rollBack makes them dormant again. All under the mutation lock.
type waking struct {
	e       *Engine
	changes []*change
}

func (e *Engine) newWaking() *waking { return &waking{e: e} }

// add brings one graph back. specOf makes the creature of a row.
func (w *waking) add(ctx context.Context, d *dormant, specOf func(context.Context, CreatureRow) (*creature, error)) (err error) {
	x := w.e.newChange("resume")
	defer func() {
		for _, c := range x.creatures {
			if err != nil && c.revived {
				w.e.discardPrepared(ctx, c)
			}
		}
	}()
	x.summary, x.hold = true, true
	x.saved = d
	slices.SortFunc(d.Creatures, func(a, b CreatureRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	for _, row := range d.Creatures {
		c, err := specOf(ctx, row)
		if err != nil {
			return err
		}
		c.id, c.started = row.ID, row.Started
		x.creatures[row.ID] = c
	}
	x.indexCursors()
	x.restoreAsks()
	x.restoreChannels()
	x.restoreOps()
	store, err := w.e.storage.Open(ctx, d.Session)
	if err != nil {
		return err
	}
	x.adopt = store
	if x.lastTime, err = lastTime(ctx, store); err != nil {
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
		w.forgetInstance(ctx, c)
	}
	w.changes = append(w.changes, x)
	return nil
}

// bringBack carries out the operations that lead to the saved graph, and puts
// its edges in the order in which they were once added.
func (x *change) bringBack(ctx context.Context) error {
	if err := x.stageAll(x.ops); err != nil {
		return err
	}
	place := func(c CreatureID, ch ChannelID) uint64 { return x.e.topo.EdgeOrder(c, ch, Listen) }
	for _, e := range x.saved.Edges {
		x.e.topo.SetEdgeOrder(e.Creature, e.Channel, e.Direction, e.Order)
	}
	if err := x.carryOut(ctx); err != nil {
		return err
	}
	for id, ch := range x.channels {
		slices.SortFunc(ch.sources, func(a, b *source) int {
			return compare(place(a.mb.creature.id, id), place(b.mb.creature.id, id))
		})
	}
	return nil
}

// lastTime is the time of the last event of a store. New events have to be
// later, even if the clock has been set back.
func lastTime(ctx context.Context, s Store) (int64, error) {
	events, err := s.History(ctx, HistoryQuery{Newest: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Time, nil
}

// restoreChannels makes the channels of a saved graph.
func (x *change) restoreChannels() {
	for _, row := range x.saved.Channels {
		x.channels[row.ID] = &channel{
			id: row.ID, name: row.Name, label: row.Name, description: row.Description,
			deployment: row.Deployment, address: row.Address, inbox: row.Inbox,
		}
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
		if ch := x.channels[c.Channel]; ch != nil && isOutsideReader(c.Reader) {
			if ch.cursors == nil {
				ch.cursors = map[ReaderID]uint64{}
			}
			ch.cursors[c.Reader] = c.Seq
		}
	}
}

func isOutsideReader(id ReaderID) bool {
	return len(id) > len(readerPrefix) && id[:len(readerPrefix)] == readerPrefix
}

// restoreOps are the operations that lead from nothing to the saved graph: the
// eldest creature makes the graph, the channels are declared in it, and
// everybody else joins by edges to those who are there, so that nothing ever
// merges.
func (x *change) restoreOps() {
	edges := map[CreatureID][]EdgeRow{}
	slices.SortFunc(x.saved.Edges, func(a, b EdgeRow) int { return cmp.Compare(a.Order, b.Order) })
	for _, e := range x.saved.Edges {
		if x.channels[e.Channel] != nil {
			edges[e.Creature] = append(edges[e.Creature], e)
		}
	}
	channels := slices.Clone(x.saved.Channels)
	slices.SortFunc(channels, func(a, b ChannelRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	for i, row := range byNeighbourhood(x.saved.Creatures, edges) {
		op := topology.AddCreature{
			ID: row.ID, Name: row.Name, Parent: x.known(row.Parent), Privileged: row.Privileged,
			Root: row.Root, Stopped: row.Stopped || x.creatures[row.ID].husk,
			Born: row.Born, GraphBorn: x.saved.Born,
		}
		if i > 0 {
			for _, e := range edges[row.ID] {
				op.Edges = append(op.Edges, topology.Wire{Channel: e.Channel, Direction: e.Direction, Alias: e.Alias})
			}
			x.ops = append(x.ops, op)
			continue
		}
		x.ops = append(x.ops, op)
		for _, ch := range channels {
			if ch.Inbox == "" {
				x.ops = append(x.ops, topology.AddChannel{ID: ch.ID, With: row.ID, Name: ch.Name, Report: ch.Report, Born: ch.Born})
			}
		}
		for _, e := range edges[row.ID] {
			x.ops = append(x.ops, topology.SetEdge{Creature: row.ID, Channel: e.Channel, Direction: e.Direction, On: true, Alias: e.Alias})
		}
	}
}

// known returns a creature's id if it exists, in a graph that is being brought
// back or in any other, and else none: a parent may have been in a graph without
// a store.
func (x *change) known(id CreatureID) CreatureID {
	if id == "" || x.e.creatures[id] != nil || x.creatures[id] != nil {
		return id
	}
	for _, d := range x.e.saved {
		if slices.ContainsFunc(d.Creatures, func(c CreatureRow) bool { return c.ID == id }) {
			return id
		}
	}
	return ""
}

// byNeighbourhood orders the creatures of a graph so that each but the first
// shares a channel with one before it.
func byNeighbourhood(creatures []CreatureRow, edges map[CreatureID][]EdgeRow) []CreatureRow {
	members := map[ChannelID][]CreatureRow{}
	for _, row := range creatures {
		for _, e := range edges[row.ID] {
			members[e.Channel] = append(members[e.Channel], row)
		}
	}
	var out []CreatureRow
	seen := map[CreatureID]bool{}
	add := func(row CreatureRow) {
		if !seen[row.ID] {
			seen[row.ID] = true
			out = append(out, row)
		}
	}
	for _, row := range creatures {
		from := len(out)
		for add(row); from < len(out); from++ {
			for _, e := range edges[out[from].ID] {
				for _, neighbour := range members[e.Channel] {
					add(neighbour)
				}
				delete(members, e.Channel)
			}
		}
	}
	return out
}

// forgetInstance closes the instance with which a creature has shown that it
// can start. It began without the saved state, so the first turn has to make
// another one.
func (w *waking) forgetInstance(ctx context.Context, c *creature) {
	if c.instance == nil {
		return
	}
	if err := c.instance.Close(ctx); err != nil {
		w.e.log.Debug("closing an instance", "creature", c.id, "error", err)
	}
	c.instance = nil
	c.instances.Store(0)
}

// commit lets what was brought back run.
func (w *waking) commit() {
	var wake waker
	for _, x := range w.changes {
		x.resumeAsks()
		for _, c := range x.creatures {
			if g := c.home.lock(); g != nil {
				c.wake(&wake)
				g.mu.Unlock()
			}
		}
	}
	wake.flush(w.e.queue)
}

// rollBack makes the graphs dormant again.
func (w *waking) rollBack(ctx context.Context) {
	for _, x := range slices.Backward(w.changes) {
		g := x.e.graphs[x.saved.Graph]
		for id := range x.creatures {
			c := x.creatures[id]
			c.home.store(nil)
			x.e.setParent(c, "")
			delete(x.e.creatures, id)
			if c.revived {
				x.e.discardPrepared(ctx, c)
			}
		}
		for id := range x.channels {
			delete(x.e.channels, id)
		}
		delete(x.e.graphs, x.saved.Graph)
		x.undo()
		x.e.saved[x.saved.Graph] = x.saved
		if g != nil && g.store != nil {
			if err := g.store.Close(ctx); err != nil {
				x.e.log.Error("closing a store", "session", x.saved.Session, "error", err)
			}
		}
	}
}

// sessionOf finds a session by its id, or by the id of a graph, live or saved.
func (e *Engine) sessionOf(name string) (SessionID, Store, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if now, ok := e.topo.Current(GraphID(name)); ok {
		g := e.graphs[now]
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.store == nil {
			return "", nil, &abi.Error{
				Code: abi.Unavailable, Message: "the graph " + name + " has no store, so it has no history",
				Remedy: "run it with durability normal or full", IDs: map[string]string{"graph": name},
			}
		}
		return g.store.Info().Session, g.store, nil
	}
	if d := e.saved[GraphID(name)]; d != nil {
		return d.Session, nil, nil
	}
	return SessionID(name), nil, nil
}

// History returns events of a graph or session, live or ended, in an order
// that respects causes.
func (e *Engine) History(ctx context.Context, graphOrSession string, q HistoryQuery) ([]Event, error) {
	session, store, err := e.sessionOf(graphOrSession)
	if err != nil {
		return nil, err
	}
	if store != nil {
		return store.History(ctx, q)
	}
	if e.storage == nil {
		return nil, gone("session", graphOrSession)
	}
	return e.storage.History(ctx, session, q)
}

// Lineage returns the ancestors of a session or of a graph's session: itself
// first, then generation by generation back to the roots.
func (e *Engine) Lineage(ctx context.Context, graphOrSession string) ([]SessionInfo, error) {
	session, _, err := e.sessionOf(graphOrSession)
	if err != nil {
		return nil, err
	}
	if e.storage == nil {
		return nil, gone("session", graphOrSession)
	}
	return e.storage.Lineage(ctx, session)
}

// Verify checks a session, or a graph's session: the file itself, and that its
// log has every event once and every channel in order. What is still in memory
// is not looked at: it follows what is on disk.
func (e *Engine) Verify(ctx context.Context, graphOrSession string) (VerifyReport, error) {
	session, _, err := e.sessionOf(graphOrSession)
	if err != nil {
		return VerifyReport{}, err
	}
	if e.storage == nil {
		return VerifyReport{}, gone("session", graphOrSession)
	}
	return e.storage.Verify(ctx, session)
}
