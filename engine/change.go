package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// change is one change of the topology under way: the operations, and what the
// topology does not know of the things they add. It is made and carried out
// under the mutation lock.
type change struct {
	e         *Engine
	name      string
	ops       []topology.Op
	creatures map[journal.CreatureID]*creature
	channels  map[journal.ChannelID]*channel
	// durability and meta are for graphs that the change makes of nothing.
	durability journal.Durability
	meta       map[string]string

	// saved is the graph that the change brings back, with the store that it
	// goes on with; hold keeps its creatures from running.
	saved *dormant
	adopt journal.Store
	hold  bool
	// summary logs only those operations that merged or split.
	summary bool
	// cursors are the saved graph's, by reader and channel.
	cursors  map[cursorKey]journal.CursorRow
	backlogs map[journal.ReaderID][]journal.CursorRow

	// lastTime is the time of the last event in any of the graphs concerned,
	// and wall what the clock shows.
	lastTime int64
	wall     int64

	deltas  []topology.Delta
	undos   []func()
	paused  map[*graph]bool // graphs whose mu is held
	records map[*graph]*journal.Record
	logged  []logged
	wake    waker
	dirty   map[*creature]bool         // their wiring is to be rebuilt
	dropped map[journal.ChannelID]bool // channels whose backlog becomes dead letters
	leaving map[journal.CreatureID]bool
	// again are those who cease to listen and begin again: they have read
	// everything then, but for a backlog.
	again map[cursorKey]bool
	// passed are graphs that something left on the way, wherever it is when the
	// change is done. What steps in between have noted of it is in several
	// records, so such a graph gets a new store, whose first record has it all.
	passed map[journal.GraphID]bool
	// unlinked are creatures whose parent goes, or comes into another graph by a
	// split.
	unlinked []unlinked
	// deployed are the members of the deployment that the change applies, whose
	// stores get meta, and resumed those that go on by what a recipe says of
	// them now.
	deployed []journal.CreatureID
	// metas is the metadata of graphs that get a new store.
	metas   map[journal.GraphID]map[string]string
	resumed []*creature
	// described are the channels that a recipe describes in other words than before.
	described map[*channel]string
	// applying is the deployment that the change applies.
	applying *deploy.Deployment
	wires    wireEdits
	// started are creatures that were told to start, quarantined ones included.
	started []journal.CreatureID
	// burials are what the change makes dead letters of, by source.
	burials map[*source]*burial
	// entry is what changes when graphs that had no log enter one.
	entry logEntry
	// turn is the turn that makes the change, and derived makes the ids of what it
	// adds; nil if a caller from outside makes it.
	turn    *turnChange
	derived *derivedIDs
	// rooting is what the change does about the roots of deployments.
	rooting rooting
	// judging is what policies say of the change.
	judging judging
	// transient are graphs that exist only within the change, with the graph
	// that their members came from, if they came from one.
	transient map[*graph]*graph
}

func (e *Engine) newChange(name string) *change {
	return &change{
		e: e, name: name, durability: e.durability,
		creatures: map[journal.CreatureID]*creature{}, channels: map[journal.ChannelID]*channel{},
		paused: map[*graph]bool{}, records: map[*graph]*journal.Record{}, dirty: map[*creature]bool{},
		dropped: map[journal.ChannelID]bool{}, passed: map[journal.GraphID]bool{}, again: map[cursorKey]bool{}, leaving: map[journal.CreatureID]bool{}, transient: map[*graph]*graph{},
		burials: map[*source]*burial{}, metas: map[journal.GraphID]map[string]string{}, entry: newLogEntry(),
		rooting: newRooting(), described: map[*channel]string{},
	}
}

// stage applies one operation to the topology. What it means for stores and
// environments comes with carryOut; until then it can be taken back.
func (x *change) stage(op topology.Op) (*topology.Delta, error) {
	if err := x.stageAll([]topology.Op{op}); err != nil {
		return nil, err
	}
	return &x.deltas[len(x.deltas)-1], nil
}

func (x *change) stageAll(ops []topology.Op) error {
	deltas, undo, err := x.e.topo.Try(x.ids(), x.withWorkers(ops)...)
	if err != nil {
		return err
	}
	x.deltas = append(x.deltas, deltas...)
	x.undos = append(x.undos, undo)
	for _, op := range ops {
		if s, ok := op.(topology.SetStopped); ok && !s.Stopped {
			x.started = append(x.started, s.ID)
		}
	}
	return nil
}

// undo takes back what was staged.
func (x *change) undo() {
	for _, undo := range slices.Backward(x.undos) {
		undo()
	}
	x.undos, x.deltas = nil, nil
}

// carryOut makes what was staged real: in the stores and in the environments.
// On an error nothing has changed. The caller holds the mutation lock.
func (x *change) carryOut(ctx context.Context) error {
	x.scan()
	x.pause()
	defer x.resume()
	plan := x.planStores()
	x.findUnlinked(plan)
	x.partWires(plan)
	x.level(plan)
	x.turn.advance()
	unsettle, undescribe := x.rooting.settle(x), x.redescribe()
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
		x.undo()
		return storageError(x.name, err)
	}
	x.level(plan)
	x.entry.carryOut(x)
	x.announce(plan)
	x.showWireNotes(plan)
	x.turn.announce(x, plan)
	memories := x.inheritance(plan)
	x.follow(plan)
	for id, memory := range memories {
		x.e.graphs[id].memory = memory
	}
	for id, meta := range x.metas {
		x.e.graphs[id].meta = meta
	}
	x.turn.land(x)
	x.writeDown(plan)
	x.reshape()
	plan.retire(ctx, x)
	return nil
}

// scan notes what the deltas take away, because an edge that goes with its
// channel or creature leaves dead letters, and one that just goes a backlog.
func (x *change) scan() {
	ceased := map[cursorKey]bool{}
	for i := range x.deltas {
		d := &x.deltas[i]
		for _, c := range d.Changes {
			switch c.Kind {
			case topology.ChannelRemoved:
				x.dropped[c.Channel] = true
			case topology.CreatureRemoved:
				x.leaving[c.Creature] = true
			case topology.EdgeRemoved:
				x.noteOwn(c)
				if c.Direction == journal.Listen {
					ceased[cursorKey{journal.ReaderID(c.Creature), c.Channel}] = true
				}
			case topology.EdgeAdded:
				x.noteOwn(c)
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
			delete(x.dropped, u.Absorbed) // it is drained
		}
	}
}

// pause enters the critical sections of all graphs concerned, in the order of
// their ids.
func (x *change) pause() {
	ids := map[journal.GraphID]bool{}
	for i := range x.deltas {
		for _, id := range x.deltas[i].OldGraphs {
			ids[id] = true
		}
	}
	for _, cr := range x.resumed {
		ids[cr.home.load().id] = true
	}
	if x.turn != nil {
		ids[x.turn.c.home.load().id] = true
	}
	for id := range x.wires.lists {
		if cr := x.e.creatures[id]; cr != nil {
			ids[cr.home.load().id] = true
		}
	}
	for ch := range x.described {
		ids[ch.home.load().id] = true
	}
	for id := range x.leaving {
		for _, child := range x.e.children(id) {
			ids[child.home.load().id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if g := x.e.graphs[id]; g != nil {
			x.enter(g)
		}
	}
}

func (x *change) enter(g *graph) {
	g.mu.Lock()
	g.wall = x.e.wallClock()
	if x.turn != nil { // what it causes in other graphs is later than its message
		g.now = max(g.now, x.turn.d.msg.time)
	}
	x.wall = max(x.wall, g.wall)
	x.paused[g] = true
}

// tick returns the time of an event in the first record of a store, which is
// later than everything in the graphs concerned.
func (x *change) tick() int64 {
	x.lastTime = max(x.lastTime+1, x.wall)
	return x.lastTime
}

// resume leaves the critical sections and sets going what the change made
// runnable.
func (x *change) resume() {
	for g := range x.paused {
		g.mu.Unlock()
	}
	x.wake.flush(x.e)
}

// ids hands out ids for what the topology adds by itself; a graph that is
// brought back keeps its own.
func (x *change) ids() topology.IDs {
	switch {
	case x.saved != nil:
		return &savedIDs{x.e.ids, x.saved.Graph}
	case x.derived != nil:
		return x.derived
	}
	return x.e.ids
}

type savedIDs struct {
	*idSource
	next journal.GraphID
}

func (s *savedIDs) NewGraph() journal.GraphID {
	if id := s.next; id != "" {
		s.next = ""
		return id
	}
	return s.idSource.NewGraph()
}

// cursor is where a creature starts to read a channel: where it had got to, if
// it is brought back, else the head.
func (x *change) cursor(c journal.CreatureID, ch *channel) uint64 {
	if row, ok := x.cursors[cursorKey{journal.ReaderID(c), ch.id}]; ok {
		return row.Seq
	}
	return ch.head
}

// restoreBacklogs gives a creature that is brought back what it was draining.
func (x *change) restoreBacklogs(c *creature) {
	for _, row := range x.backlogs[c.reader()] {
		c.mb.addBacklog(row)
	}
}

// cursorKey is the key of a cursor row.
type cursorKey struct {
	reader  journal.ReaderID
	channel journal.ChannelID
}

// indexCursors makes the saved cursors findable.
func (x *change) indexCursors() {
	x.cursors, x.backlogs = map[cursorKey]journal.CursorRow{}, map[journal.ReaderID][]journal.CursorRow{}
	for _, row := range x.saved.Cursors {
		switch {
		case row.Until == 0:
			x.cursors[cursorKey{row.Reader, row.Channel}] = row
		case row.Until > row.Seq:
			x.backlogs[row.Reader] = append(x.backlogs[row.Reader], row)
		}
	}
}

// record returns the record that collects what the change logs in a graph, or
// nil if the graph is volatile, or is only brought back.
func (x *change) record(g *graph) *journal.Record {
	g = x.logOf(g)
	if g.store == nil || x.hold {
		return nil
	}
	rec := x.records[g]
	if rec == nil {
		rec = &journal.Record{}
		x.records[g] = rec
	}
	return rec
}

// logOf returns the graph that logs what the change does in g: g itself or, if
// g is gone when the change is done, the graph that it has become part of or,
// failing that, the one that its members came from.
func (x *change) logOf(g *graph) *graph {
	from, transient := x.transient[g]
	if !transient {
		return g
	}
	if id, ok := x.e.topo.Current(g.id); ok {
		if into := x.e.graphs[id]; into != nil {
			return into
		}
		return g // it is yet to be made, and its first record has it all
	}
	if from != nil {
		return from
	}
	return g
}

// writeDown logs the change in every graph it concerns.
func (x *change) writeDown(plan *storePlan) {
	if x.hold {
		return
	}
	for _, cr := range x.creatures {
		x.noteNew(cr)
	}
	for _, g := range plan.groups {
		x.noteCut(plan, g)
	}
	x.noteUnlinked()
	x.noteWires()
	x.noteRedescribed()
	for _, d := range x.outcomes(plan) {
		for _, id := range d.NewGraphs {
			if g := x.e.graphs[id]; g != nil {
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
		x.logged = append(x.logged, logged{g, g.store, g.seq})
	}
}

// trim takes rows out of the records of graphs with a new store. Its first
// record has every row as the change leaves it; what steps in between wrote may
// be of members that went elsewhere.
func (x *change) trim(plan *storePlan) {
	for g, rec := range x.records {
		if plan.children[g.id] != nil {
			*rec = journal.Record{Events: rec.Events}
		}
	}
}

// outcomes are what topology_changed events tell: what each operation did or,
// of a summary, which graphs became which.
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
	for i := range x.deltas {
		out = append(out, journal.NewDelta(&x.deltas[i]))
	}
	return out
}

// noteNew logs that a creature is there.
func (x *change) noteNew(cr *creature) {
	g := cr.home.load()
	if g == nil {
		return // removed by the same change
	}
	rec := x.record(g)
	if cr.instance != nil {
		x.log(g, rec, cr.instanceStarted("first"))
	}
	if !cr.stopped {
		x.log(g, rec, journal.Event{Kind: journal.EventCreatureStarted, Creature: cr.id, Payload: journal.JSON(journal.CreatureStartedPayload{Name: cr.name})})
	}
	x.noteAttached(g, cr)
}

// noteAttached logs which session the events of a creature go to from now on.
func (x *change) noteAttached(g *graph, cr *creature) {
	if g.store != nil {
		x.log(g, x.record(g), journal.Event{Kind: journal.EventSessionAttached, Creature: cr.id, Payload: journal.JSON(journal.SessionAttachedPayload{Session: g.source.session})})
	}
}

// log logs an event of the change. If a turn makes the change, the message that it
// handles is the cause.
func (x *change) log(g *graph, rec *journal.Record, ev journal.Event) {
	ev.Cause = x.turn.cause(x)
	g.log(rec, ev)
}

// noteCut logs in the children of a cut where they come from, and who has come to them.
func (x *change) noteCut(plan *storePlan, group *storeGroup) {
	kind := journal.EventSessionForked
	if group.kind() == topology.Merge.String() {
		kind = journal.EventSessionMerged
	}
	moved := x.moved()
	for _, id := range group.after {
		store := plan.children[id]
		if store == nil || len(group.before) == 0 {
			continue
		}
		g := x.e.graphs[id]
		info := store.Info()
		x.log(g, x.record(g), journal.Event{Kind: kind, Payload: journal.JSON(journal.SessionCutPayload{Session: info.Session, Parents: orEmpty(info.Parents)})})
		for _, cr := range moved[g] {
			x.noteAttached(g, cr)
		}
	}
}

// moved are the creatures that have come to a graph from another one, by where they are
// now. Who stays in its graph goes along with that, so that a cut costs what moves.
func (x *change) moved() map[*graph][]*creature {
	out, seen := map[*graph][]*creature{}, map[journal.CreatureID]bool{}
	for i := range x.deltas {
		for _, c := range x.deltas[i].Changes {
			cr := x.e.creatures[c.Creature]
			if c.Kind != topology.CreatureMoved || cr == nil || seen[c.Creature] || x.creatures[c.Creature] != nil {
				continue // noteNew tells of new ones
			}
			seen[c.Creature] = true
			g := cr.home.load()
			out[g] = append(out[g], cr)
		}
	}
	return out
}

func byGraphID(a, b *graph) int { return cmp.Compare(a.id, b.id) }
