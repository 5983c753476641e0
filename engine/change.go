package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// change is a draft while it is applied to graphs, stores, logs and creatures.
type change struct {
	e    locked
	name string
	*draft.Draft
	// sealed is the result of the draft, once it is applied.
	sealed *draft.Change
	// creatures and channels are those that the change adds.
	creatures map[journal.CreatureID]*creature
	channels  map[journal.ChannelID]*channel
	recipe    recipeChange
	saved     broughtBack
	// summary makes the change log only the operations that merged or split.
	summary bool

	steps
	logging
	wake waker
	// turn is the turn that makes the change; nil if an outside caller makes it.
	turn *handledTurn
}

// recipeChange is the part of a change that comes from applying a recipe.
type recipeChange struct {
	ops []topology.Op // to be staged
	// durability and meta are for graphs that the change creates.
	durability journal.Durability
	meta       map[string]string
	// deployed are the members of the deployment that the change applies; their stores
	// get meta. resumed are the members that continue with what the recipe now says of
	// them.
	deployed []journal.CreatureID
	resumed  []*creature
	// described are the channels whose description in the recipe has changed.
	described map[*channel]string
}

// broughtBack is a saved graph that a change brings back, with the store that it
// continues with.
type broughtBack struct {
	*dormant // nil: none
	adopt    journal.Store
	// cursors are the graph's cursors, by reader and channel.
	cursors  map[cursorKey]journal.CursorRow
	backlogs map[journal.ReaderID][]journal.CursorRow
}

// steps are the intermediate results of applying a change.
type steps struct {
	paused  map[*graph]section         // the graphs that the change has entered
	dirty   map[*creature]bool         // their wiring must be rebuilt
	dropped map[journal.ChannelID]bool // channels whose backlog becomes dead letters
	leaving map[journal.CreatureID]bool
	// again are cursors of creatures that stop listening and start again. They have
	// then read everything except for a backlog.
	again map[cursorKey]bool
	// passed are graphs that something left during the change, wherever it ends up.
	// The intermediate steps have recorded it in several records, so such a graph gets
	// a new store, whose first record has everything.
	passed map[journal.GraphID]bool
	// transient are graphs that exist only within the change, each with the graph that
	// its members came from, if any.
	transient map[*graph]section
	// recast are the running creatures that get other settings.
	recast []recasting
	// unlinked are creatures whose parent is removed, or split from them.
	unlinked []unlinked
	// metas is the metadata of graphs that get a new store.
	metas map[journal.GraphID]map[string]string
}

// logging is what a change writes to logs.
type logging struct {
	// lastTime is the time of the last event in any of the graphs concerned, and wall
	// the time that the clock shows.
	lastTime int64
	wall     int64
	records  map[section]*journal.Record
	logged   []logged
	// burials are the deliveries that the change turns into dead letters, by feed.
	burials map[*feed]*burial
	// entry is what changes when graphs without a log become part of a logged one.
	entry logEntry
}

// newChange starts a change.
func newChange(e locked, name string, o draft.Options) *change {
	return &change{
		e: e, name: name, Draft: e.newDraft(o),
		creatures: map[journal.CreatureID]*creature{}, channels: map[journal.ChannelID]*channel{},
		recipe: recipeChange{durability: e.durability, described: map[*channel]string{}},
		steps: steps{
			paused: map[*graph]section{}, dirty: map[*creature]bool{}, dropped: map[journal.ChannelID]bool{}, leaving: map[journal.CreatureID]bool{},
			again: map[cursorKey]bool{}, passed: map[journal.GraphID]bool{}, transient: map[*graph]section{}, metas: map[journal.GraphID]map[string]string{},
		},
		logging: logging{records: map[section]*journal.Record{}, burials: map[*feed]*burial{}, entry: newLogEntry()},
	}
}

// carryOut applies what was staged to the stores and the environments. On an error
// nothing has changed.
func (x *change) carryOut(ctx context.Context) error {
	x.sealed = x.Seal()
	x.addChannels()
	x.scan()
	x.pause()
	defer x.resume()
	plan := x.planStores()
	x.findUnlinked(plan)
	x.partWires(plan)
	x.level(plan)
	x.turn.advance(x)
	unsettle, undescribe := x.comeIntoDeployments(), x.redescribe()
	unremember, err := x.remember()
	if err == nil {
		err = x.foresee(ctx, plan)
	}
	if err == nil {
		err = plan.drain(ctx)
	}
	if err == nil {
		err = plan.carryOut(ctx, x)
	}
	if err != nil {
		unremember()
		unsettle()
		undescribe()
		x.turn.goBack()
		x.Undo()
		return storageError(x.name, err)
	}
	x.level(plan)
	x.enterLog()
	x.announce(plan)
	x.showWireNotes(plan)
	if x.turn != nil {
		x.turn.rest.announce(x, plan)
	}
	memories := x.inheritance(plan)
	following{x, plan}.follow()
	for id, memory := range memories {
		x.graph(id).memory = memory
	}
	for id, meta := range x.metas {
		x.graph(id).meta = meta
	}
	if x.turn != nil {
		x.turn.rest.land(x)
	}
	x.writeDown(plan)
	x.reshape()
	plan.retire(ctx, x)
	return nil
}

// addChannels makes the channels that the draft has added, except those of a saved
// graph that is brought back: they exist already.
func (x *change) addChannels() {
	for id, ch := range x.sealed.Channels {
		if x.channels[id] == nil {
			x.channels[id] = &channel{id: id, label: ch.Label, description: ch.Description, deployment: ch.Deployment, address: ch.Address}
		}
	}
}

// creature returns a creature that exists or is added.
func (x *change) creature(id journal.CreatureID) *creature {
	if c := x.e.creatures[id]; c != nil {
		return c
	}
	return x.creatures[id]
}

// scan records what the deltas remove. An edge that is removed with its channel or
// creature leaves dead letters; an edge that is removed alone leaves a backlog.
func (x *change) scan() {
	ceased := map[cursorKey]bool{}
	for i := range x.sealed.Deltas {
		d := &x.sealed.Deltas[i]
		for _, c := range d.Changes {
			switch c.Kind {
			case topology.ChannelRemoved:
				x.dropped[c.Channel] = true
			case topology.CreatureRemoved:
				x.leaving[c.Creature] = true
			case topology.EdgeRemoved:
				if c.Direction == journal.Listen {
					ceased[cursorKey{journal.ReaderID(c.Creature), c.Channel}] = true
				}
			case topology.EdgeAdded:
				if key := (cursorKey{journal.ReaderID(c.Creature), c.Channel}); c.Direction == journal.Listen && ceased[key] {
					x.again[key] = true
				}
			case topology.CreatureMoved, topology.ChannelMoved:
				if x.e.graphs[c.From] != nil {
					x.passed[c.From], x.passed[c.Graph] = true, true
				}
			}
		}
		for _, u := range d.Unified {
			delete(x.dropped, u.Absorbed) // it will be drained
		}
	}
}

// pause enters the critical sections of all graphs concerned, in order of id.
func (x *change) pause() {
	ids := map[journal.GraphID]bool{}
	for i := range x.sealed.Deltas {
		for _, id := range x.sealed.Deltas[i].OldGraphs {
			ids[id] = true
		}
	}
	for _, cr := range x.recipe.resumed {
		ids[cr.home.load().id] = true
	}
	if x.turn != nil {
		ids[x.turn.c.home.load().id] = true
	}
	for id := range x.sealed.Wires.Lists {
		if cr := x.e.creatures[id]; cr != nil {
			ids[cr.home.load().id] = true
		}
	}
	for ch := range x.recipe.described {
		ids[ch.home.load().id] = true
	}
	for id := range x.leaving {
		for _, child := range x.e.children(id) {
			ids[child.home.load().id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		x.graph(id)
	}
}

// in returns the critical section of a graph, or none for no graph. The change enters it
// the first time and leaves it at the end. It may do so in any order, because no other
// change is in progress, and nothing else enters two sections.
func (x *change) in(g *graph) section {
	s, entered := x.paused[g]
	if !entered && g != nil {
		s = x.enter(g)
	}
	return s
}

// graph and home return the section of a graph by its id, and that of a creature's graph.
func (x *change) graph(id journal.GraphID) section { return x.in(x.e.graphs[id]) }

func (x *change) home(cr *creature) section { return x.in(cr.home.load()) }

func (x *change) enter(graph *graph) section {
	g := graph.enterAt(x.e.wallClock())
	if x.turn != nil { // its consequences in other graphs are later than its message
		g.now = max(g.now, x.turn.d.msg.Time)
	}
	x.wall = max(x.wall, g.wall)
	x.paused[graph] = g
	return g
}

// tick returns the time of an event in the first record of a store. It is later than
// everything in the graphs concerned.
func (x *change) tick() int64 {
	x.lastTime = max(x.lastTime+1, x.wall)
	return x.lastTime
}

// resume leaves the critical sections and wakes what the change made runnable.
func (x *change) resume() {
	for _, g := range x.paused {
		g.leave()
	}
	x.wake.flush(x.e.core)
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

// cursor is where a creature starts to read a channel: its saved cursor if it is
// brought back, otherwise the head.
func (x *change) cursor(c journal.CreatureID, ch *channel) uint64 {
	if row, ok := x.saved.cursors[cursorKey{journal.ReaderID(c), ch.id}]; ok {
		return row.Seq
	}
	return ch.head
}

// restoreBacklogs restores the backlogs that a creature was draining.
func (x *change) restoreBacklogs(c *creature) {
	for _, row := range x.saved.backlogs[c.reader()] {
		c.mb.addBacklog(row)
	}
}

// bringsBack reports whether the change brings a saved graph back.
func (x *change) bringsBack() bool { return x.saved.dormant != nil }

// cursorKey is the key of a cursor row.
type cursorKey struct {
	reader  journal.ReaderID
	channel journal.ChannelID
}

// indexCursors indexes the saved cursors.
func (x *change) indexCursors() {
	x.saved.cursors, x.saved.backlogs = map[cursorKey]journal.CursorRow{}, map[journal.ReaderID][]journal.CursorRow{}
	for _, row := range x.saved.Cursors {
		switch {
		case row.Until == 0:
			x.saved.cursors[cursorKey{row.Reader, row.Channel}] = row
		case row.Until > row.Seq:
			x.saved.backlogs[row.Reader] = append(x.saved.backlogs[row.Reader], row)
		}
	}
}

// record returns the record that collects what the change logs in a graph. It is nil
// if the graph is volatile or is only brought back.
func (x *change) record(g section) *journal.Record {
	g = x.logOf(g)
	if g.store == nil || x.bringsBack() {
		return nil
	}
	rec := x.records[g]
	if rec == nil {
		rec = &journal.Record{}
		x.records[g] = rec
	}
	return rec
}

// logOf returns the graph that logs what the change does in g. That is g itself if it
// exists after the change; otherwise the graph that it has become part of; failing
// that, the graph that its members came from.
func (x *change) logOf(g section) section {
	from, transient := x.transient[g.graph]
	if !transient {
		return g
	}
	if id, ok := x.e.topo.Current(g.id); ok {
		if into := x.graph(id); !into.none() {
			return into
		}
		return g // it is not made yet, and its first record will have everything
	}
	if !from.none() {
		return from
	}
	return g
}

// writeDown logs the change in every graph concerned.
func (x *change) writeDown(plan *storePlan) {
	if x.bringsBack() {
		return
	}
	for _, cr := range x.creatures {
		x.noteNew(cr)
	}
	for _, g := range plan.groups {
		x.noteCut(plan, g)
	}
	x.noteReplaced()
	x.noteUnlinked()
	x.noteWires()
	x.noteRedescribed()
	for _, d := range x.outcomes(plan) {
		for _, id := range d.NewGraphs {
			if g := x.graph(id); !g.none() {
				x.log(g, x.record(g), journal.Event{Kind: journal.EventTopologyChanged, Payload: journal.JSON(d)})
			}
		}
	}
	x.logWords()
	x.writeMemories()
	x.trim(plan)
	x.rememberNew()
	x.answerBuried()
	x.putMeta()
	for _, g := range slices.SortedFunc(maps.Keys(x.records), byGraphID) {
		if g.store == nil {
			continue
		}
		g.append(x.records[g])
		x.logged = append(x.logged, logged{g.graph, g.store, g.seq})
	}
}

// trim removes rows from the records of graphs with a new store. The first record has
// every row as the change leaves it. Rows written by intermediate steps may be of
// members that have moved elsewhere.
func (x *change) trim(plan *storePlan) {
	for g, rec := range x.records {
		if plan.children[g.id] != nil {
			*rec = journal.Record{Events: rec.Events}
		}
	}
}

// outcomes are the contents of topology_changed events: what each operation did or, in
// a summary, which graphs became which.
func (x *change) outcomes(plan *storePlan) []journal.Delta {
	var out []journal.Delta
	if x.summary {
		for _, g := range plan.groups {
			if d, ok := g.delta(x); ok {
				out = append(out, d)
			}
		}
		return out
	}
	for i := range x.sealed.Deltas {
		out = append(out, journal.NewDelta(&x.sealed.Deltas[i]))
	}
	return out
}

// noteNew logs that a creature has been added.
func (x *change) noteNew(cr *creature) {
	g := x.home(cr)
	if g.none() {
		return // removed by the same change
	}
	rec := x.record(g)
	if cr.instance != nil {
		x.log(g, rec, cr.instanceStarted(journal.StartFirst))
	}
	if !cr.stopped {
		x.log(g, rec, journal.Event{Kind: journal.EventCreatureStarted, Creature: cr.id, Payload: journal.JSON(journal.CreatureStartedPayload{Name: cr.name})})
	}
	x.noteAttached(g, cr)
}

// noteAttached logs which session will have the events of a creature from now on.
func (x *change) noteAttached(g section, cr *creature) {
	if g.store != nil {
		x.log(g, x.record(g), journal.Event{Kind: journal.EventSessionAttached, Creature: cr.id, Payload: journal.JSON(journal.SessionAttachedPayload{Session: g.source.Session})})
	}
}

// log logs an event of the change. If a turn makes the change, the message that the
// turn handles is the cause.
func (x *change) log(g section, rec *journal.Record, ev journal.Event) {
	ev.Cause = x.turn.cause(x)
	g.log(rec, ev)
}

// noteCut logs in the children of a cut which graphs they come from and which
// creatures have moved to them.
func (x *change) noteCut(plan *storePlan, group *storeGroup) {
	kind := journal.EventSessionForked
	if group.kind() == journal.CutMerge {
		kind = journal.EventSessionMerged
	}
	moved := x.moved()
	for _, id := range group.after {
		store := plan.children[id]
		if store == nil || len(group.before) == 0 {
			continue
		}
		g := x.graph(id)
		info := store.Info()
		x.log(g, x.record(g), journal.Event{Kind: kind, Payload: journal.JSON(journal.SessionCutPayload{Session: info.Session, Parents: orEmpty(info.Parents)})})
		for _, cr := range moved[g.graph] {
			x.noteAttached(g, cr)
		}
	}
}

// moved are the creatures that have come from another graph, by their present graph.
// Creatures that stay are left out, so that a cut costs only what moves.
func (x *change) moved() map[*graph][]*creature {
	out, seen := map[*graph][]*creature{}, map[journal.CreatureID]bool{}
	for i := range x.sealed.Deltas {
		for _, c := range x.sealed.Deltas[i].Changes {
			cr := x.e.creatures[c.Creature]
			if c.Kind != topology.CreatureMoved || cr == nil || seen[c.Creature] || x.creatures[c.Creature] != nil {
				continue // noteNew logs new creatures
			}
			seen[c.Creature] = true
			g := cr.home.load()
			out[g] = append(out[g], cr)
		}
	}
	return out
}

func byGraphID(a, b section) int { return cmp.Compare(a.id, b.id) }
