package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/topology"
)

// change is one change of the topology under way: the operations, and what the
// topology does not know of the things they add. It is made and carried out
// under the mutation lock.
type change struct {
	e         *Engine
	name      string
	ops       []topology.Op
	creatures map[CreatureID]*creature
	channels  map[ChannelID]*channel
	// durability and meta are for graphs that the change makes of nothing.
	durability Durability
	meta       map[string]string

	// saved is the graph that the change brings back, with the store that it
	// goes on with; hold keeps its creatures from running.
	saved *dormant
	adopt Store
	hold  bool
	// summary logs only those operations that merged or split.
	summary bool
	// cursors are the saved graph's, by reader and channel.
	cursors  map[cursorKey]CursorRow
	backlogs map[ReaderID][]CursorRow

	deltas  []topology.Delta
	undos   []func()
	paused  map[*graph]bool // graphs whose mu is held
	records map[*graph]*Record
	wake    waker
	dirty   map[*creature]bool // their wiring is to be rebuilt
	dropped map[ChannelID]bool // channels whose backlog becomes dead letters
	leaving map[CreatureID]bool
	idle    []closing
}

// closing is an instance to be closed once the change is done.
type closing struct {
	c        *creature
	instance abi.Instance
}

func (e *Engine) newChange(name string) *change {
	return &change{
		e: e, name: name, durability: e.durability,
		creatures: map[CreatureID]*creature{}, channels: map[ChannelID]*channel{},
		paused: map[*graph]bool{}, records: map[*graph]*Record{}, dirty: map[*creature]bool{},
		dropped: map[ChannelID]bool{}, leaving: map[CreatureID]bool{},
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
	deltas, undo, err := x.e.topo.Try(x.ids(), ops...)
	if err != nil {
		return err
	}
	x.deltas = append(x.deltas, deltas...)
	x.undos = append(x.undos, undo)
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
	defer x.resume(ctx)
	plan := x.planStores()
	if err := plan.carryOut(ctx, x); err != nil {
		x.undo()
		return err
	}
	x.follow()
	plan.settle(x)
	x.writeDown(plan)
	plan.retire(ctx, x)
	return nil
}

// stageAndCarryOut carries out the operations that were put together in ops.
func (x *change) stageAndCarryOut(ctx context.Context) error {
	if err := x.stageAll(x.ops); err != nil {
		return err
	}
	return x.carryOut(ctx)
}

// scan notes what the deltas take away, because an edge that goes with its
// channel or creature leaves dead letters, and one that just goes a backlog.
func (x *change) scan() {
	for i := range x.deltas {
		d := &x.deltas[i]
		for _, c := range d.Changes {
			switch c.Kind {
			case topology.ChannelRemoved:
				x.dropped[c.Channel] = true
			case topology.CreatureRemoved:
				x.leaving[c.Creature] = true
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
	ids := map[GraphID]bool{}
	for i := range x.deltas {
		for _, id := range x.deltas[i].OldGraphs {
			ids[id] = true
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
	x.paused[g] = true
}

// resume leaves the critical sections and sets going what the change made
// runnable.
func (x *change) resume(ctx context.Context) {
	for g := range x.paused {
		g.mu.Unlock()
	}
	x.wake.flush(x.e.queue)
	if len(x.idle) == 0 {
		return
	}
	var t turn
	t.e = x.e
	for _, i := range x.idle {
		stopInstance(ctx, &t, i.c, i.instance)
	}
}

// ids hands out ids for what the topology adds by itself; a graph that is
// brought back keeps its own.
func (x *change) ids() topology.IDs {
	if x.saved != nil {
		return &savedIDs{x.e.ids, x.saved.Graph}
	}
	return x.e.ids
}

type savedIDs struct {
	*idSource
	next GraphID
}

func (s *savedIDs) NewGraph() GraphID {
	if id := s.next; id != "" {
		s.next = ""
		return id
	}
	return s.idSource.NewGraph()
}

// cursor is where a creature starts to read a channel: where it had got to, if
// it is brought back, else the head.
func (x *change) cursor(c CreatureID, ch *channel) uint64 {
	if row, ok := x.cursors[cursorKey{ReaderID(c), ch.id}]; ok && row.Until == 0 {
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
	reader  ReaderID
	channel ChannelID
}

// indexCursors makes the saved cursors findable.
func (x *change) indexCursors() {
	x.cursors, x.backlogs = map[cursorKey]CursorRow{}, map[ReaderID][]CursorRow{}
	for _, row := range x.saved.Cursors {
		x.cursors[cursorKey{row.Reader, row.Channel}] = row
		if row.Until > row.Seq {
			x.backlogs[row.Reader] = append(x.backlogs[row.Reader], row)
		}
	}
}

// record returns the record that collects what the change logs in a graph, or
// nil if the graph is volatile, or is only brought back.
func (x *change) record(g *graph) *Record {
	if g.store == nil || x.hold {
		return nil
	}
	rec := x.records[g]
	if rec == nil {
		rec = &Record{}
		x.records[g] = rec
	}
	return rec
}

// follow takes the environments along, step by step.
func (x *change) follow() {
	for i := range x.deltas {
		for _, c := range x.deltas[i].Changes {
			x.step(c)
		}
	}
	for c := range x.dirty {
		if c.removed {
			c.wiring.Store(noWiring)
			continue
		}
		info, _ := x.e.topo.Creature(c.id)
		c.wiring.Store(newWiring(c.name, info.Edges, x.e.channels))
	}
}

func (x *change) step(c topology.Change) {
	switch c.Kind {
	case topology.GraphAdded:
		x.addGraph(c.Graph)
	case topology.GraphEnded:
		g := x.e.graphs[c.Graph]
		g.ended = true
		delete(x.e.graphs, c.Graph)
		x.e.noteSuccessor(c.Graph, c.Into)
	case topology.CreatureAdded:
		x.addCreature(c)
	case topology.CreatureRemoved:
		x.removeCreature(c)
	case topology.ChannelAdded:
		x.addChannel(c)
	case topology.ChannelRemoved:
		x.removeChannel(c)
	case topology.EdgeAdded:
		x.addEdge(c)
	case topology.EdgeRemoved:
		x.removeEdge(c)
	case topology.CreatureMoved:
		x.moveCreature(c)
	case topology.ChannelMoved:
		x.moveChannel(c)
	case topology.CreatureRenamed:
		x.renameCreature(c)
	case topology.ChannelRenamed:
		ch := x.e.channels[c.Channel]
		ch.name = c.Name
		x.putChannel(ch)
	case topology.FlagsChanged:
		x.changeFlags(c)
	}
}

func (x *change) addGraph(id GraphID) {
	info, ok := x.e.topo.Graph(id)
	if !ok {
		info.Born = 0 // it ended within the same change
	}
	g := newGraph(x.e, id, info.Born)
	g.origin = x.e.ids.origin()
	if x.saved != nil {
		g.meta = x.saved.Meta
	}
	x.enter(g)
	x.e.graphs[id] = g
}

func (x *change) addCreature(c topology.Change) {
	cr, g := x.creatures[c.Creature], x.e.graphs[c.Graph]
	info, _ := x.e.topo.Creature(c.Creature)
	cr.born, cr.root, cr.parent = info.Born, info.Root, info.Parent
	x.e.creatures[cr.id] = cr
	x.join(cr, g)
	inbox := x.channels[InboxOf(cr.id)]
	if inbox == nil {
		inbox = &channel{id: InboxOf(cr.id), name: "inbox", inbox: cr.id}
	}
	x.e.channels[inbox.id] = inbox
	inbox.home.store(g)
	g.channels[inbox.id] = inbox
	cr.mb.add(inbox, "", x.cursor(cr.id, inbox))
	x.restoreBacklogs(cr)
	x.dirty[cr] = true
	if x.hold {
		return
	}
	x.record(g).putCreature(cr)
	x.putChannel(inbox)
	if rec := x.record(g); rec != nil {
		rec.putCursor(cr.reader(), cr.mb.source(inbox))
	}
	cr.wake(&x.wake)
}

func (x *change) join(cr *creature, g *graph) {
	cr.home.store(g)
	g.creatures[cr.id] = cr
	g.names[cr.name] = cr
}

func (x *change) removeCreature(c topology.Change) {
	cr, g := x.e.creatures[c.Creature], x.e.graphs[c.Graph]
	rec := x.record(g)
	inbox := x.e.channels[InboxOf(cr.id)]
	for _, s := range slices.Clone(cr.mb.sources) {
		x.bury(g, rec, &cr.mb, s, "creature_removed")
	}
	cr.removed = true
	x.leaveLoad(cr, g)
	x.forgetChannel(inbox, g)
	delete(g.creatures, cr.id)
	delete(g.names, cr.name)
	delete(x.e.creatures, cr.id)
	cr.home.store(nil)
	x.dirty[cr] = true
	if rec != nil {
		rec.Drop.Creatures = append(rec.Drop.Creatures, cr.id)
	}
	g.log(rec, Event{Kind: EventCreatureStopped, Creature: cr.id, Payload: mustJSON(map[string]string{"reason": "removed", "name": cr.name})})
	x.giveUpInstance(cr)
	x.e.releaseModule(cr)
}

// giveUpInstance closes the instance of a creature that no longer runs, unless
// a worker has it, which then does the same.
func (x *change) giveUpInstance(cr *creature) {
	if !cr.scheduled && cr.instance != nil {
		x.idle = append(x.idle, closing{cr, cr.instance})
		cr.instance = nil
	}
	if cr.backingOff {
		cr.backingOff = false
		x.e.idle.add(-1)
	}
}

func (x *change) addChannel(c topology.Change) {
	ch, g := x.channels[c.Channel], x.e.graphs[c.Graph]
	if ch == nil {
		ch = &channel{id: c.Channel}
	}
	ch.name = c.Name
	if info, ok := x.e.topo.Channel(c.Channel); ok {
		ch.born, ch.report = info.Born, info.Report
	}
	x.e.channels[ch.id] = ch
	ch.home.store(g)
	g.channels[ch.id] = ch
	x.putChannel(ch)
}

func (x *change) removeChannel(c topology.Change) {
	ch, g := x.e.channels[c.Channel], x.e.graphs[c.Graph]
	for _, s := range slices.Clone(ch.sources) {
		if r := s.mb.reader; r != nil {
			r.end(s)
		}
	}
	x.forgetChannel(ch, g)
}

func (x *change) forgetChannel(ch *channel, g *graph) {
	ch.home.store(nil)
	delete(g.channels, ch.id)
	delete(x.e.channels, ch.id)
	if rec := x.record(g); rec != nil {
		rec.Drop.Channels = append(rec.Drop.Channels, ch.id)
	}
}

func (x *change) addEdge(c topology.Change) {
	cr, ch := x.e.creatures[c.Creature], x.e.channels[c.Channel]
	x.dirty[cr] = true
	rec := x.record(cr.home.load())
	if c.Direction == Listen && cr.mb.source(ch) == nil {
		s := cr.mb.add(ch, c.Alias, x.cursor(cr.id, ch))
		rec.putCursor(cr.reader(), s)
	}
	if rec != nil {
		x.e.edgeOrder++
		rec.Edges = append(rec.Edges, EdgeRow{c.Creature, c.Channel, c.Direction, c.Alias, x.e.edgeOrder})
	}
}

func (x *change) removeEdge(c topology.Change) {
	cr, ch := x.e.creatures[c.Creature], x.e.channels[c.Channel]
	x.dirty[cr] = true
	g := cr.home.load()
	rec := x.record(g)
	if rec != nil {
		rec.Drop.Edges = append(rec.Drop.Edges, EdgeRow{Creature: c.Creature, Channel: c.Channel, Direction: c.Direction})
	}
	if c.Direction != Listen || x.leaving[cr.id] {
		return
	}
	s := cr.mb.source(ch)
	switch {
	case s == nil:
	case x.dropped[ch.id]:
		x.bury(g, rec, &cr.mb, s, "channel_removed")
	default:
		if rec != nil {
			rec.Drop.Cursors = append(rec.Drop.Cursors, CursorRow{Reader: cr.reader(), Channel: ch.id})
		}
		if cr.mb.detach(s) {
			rec.putCursor(cr.reader(), s)
		}
	}
}

// bury makes dead letters of everything that a source has waiting.
func (x *change) bury(g *graph, rec *Record, mb *mailbox, s *source, reason string) {
	for _, d := range mb.remove(s) {
		g.deadLetter(rec, deadLetter{
			Message: d.msg.id, Reason: reason, Channel: d.msg.channel, Seq: d.msg.seq,
			reader: mb, payload: d.msg.payload, headers: d.msg.headers,
		})
		d.msg.release()
	}
	if cr := mb.creature; cr != nil && cr.retry != nil && cr.retry.src == s {
		g.deadLetter(rec, deadLetter{
			Message: cr.retry.msg.id, Reason: reason, Channel: s.id, Seq: cr.retry.msg.seq, reader: mb,
		})
		cr.retry.msg.release()
		cr.retry = nil
	}
	if end := s.end(); end > s.offered && g.store != nil {
		x.buryStored(g, rec, mb, s, reason, end)
	}
	if s.ch != nil {
		s.ch.forget(s)
		s.ch = nil
	}
	s.until, s.cursor, s.offered = s.end(), s.end(), s.end()
	mb.forget(s)
}

// buryChunk is how many messages are read at a time to become dead letters.
const buryChunk = 1024

// buryStored makes dead letters of what a source has waiting in the store.
func (x *change) buryStored(g *graph, rec *Record, mb *mailbox, s *source, reason string, end uint64) {
	ctx := context.Background() // the change is past the point of giving up
	for after := s.offered; after < end; {
		events, err := g.store.Messages(ctx, s.id, after, end, buryChunk)
		if err != nil {
			x.e.log.Error("dead letters of a removed backlog could not be listed", "channel", s.id, "after", after, "error", err)
			return
		}
		if len(events) == 0 {
			return
		}
		for i := range events {
			ev := &events[i]
			if mb.creature == nil || ev.Creature != mb.creature.id {
				g.deadLetter(rec, deadLetter{Message: ev.ID, Reason: reason, Channel: ev.Channel, Seq: ev.Seq, reader: mb})
			}
			after = ev.Seq
		}
	}
}

func (x *change) moveCreature(c topology.Change) {
	cr, from, to := x.e.creatures[c.Creature], x.e.graphs[c.From], x.e.graphs[c.Graph]
	x.leaveLoad(cr, from)
	delete(from.creatures, cr.id)
	if from.names[cr.name] == cr {
		delete(from.names, cr.name)
	}
	x.join(cr, to)
	inbox := x.e.channels[InboxOf(cr.id)]
	delete(from.channels, inbox.id)
	to.channels[inbox.id] = inbox
	inbox.home.store(to)
	if to.store == nil {
		cr.mb.noteLoad(to)
	}
}

// leaveLoad takes a creature's mailbox out of the count of full ones.
func (x *change) leaveLoad(cr *creature, g *graph) {
	if !cr.mb.over {
		return
	}
	cr.mb.over = false
	if g.over--; g.over == 0 {
		g.admit()
	}
}

func (x *change) moveChannel(c topology.Change) {
	ch, from, to := x.e.channels[c.Channel], x.e.graphs[c.From], x.e.graphs[c.Graph]
	delete(from.channels, ch.id)
	to.channels[ch.id] = ch
	ch.home.store(to)
	for _, s := range ch.sources {
		if r := s.mb.reader; r != nil {
			r.move(from, to)
		}
	}
}

func (x *change) renameCreature(c topology.Change) {
	cr := x.e.creatures[c.Creature]
	g := cr.home.load()
	if g.names[cr.name] == cr {
		delete(g.names, cr.name)
	}
	cr.name = c.Name
	g.names[cr.name] = cr
	x.dirty[cr] = true
	x.record(g).putCreature(cr)
}

func (x *change) changeFlags(c topology.Change) {
	cr := x.e.creatures[c.Creature]
	g := cr.home.load()
	info, _ := x.e.topo.Creature(c.Creature)
	cr.privileged, cr.root = info.Privileged, info.Root
	rec := x.record(g)
	if cr.stopped != info.Stopped {
		cr.stopped = info.Stopped
		x.startOrStop(g, rec, cr)
	}
	rec.putCreature(cr)
}

func (x *change) startOrStop(g *graph, rec *Record, cr *creature) {
	kind := EventCreatureStarted
	if cr.stopped {
		kind = EventCreatureStopped
		x.giveUpInstance(cr)
	} else {
		cr.quarantined = false
		cr.attempts = nil
	}
	g.log(rec, Event{Kind: kind, Creature: cr.id, Payload: mustJSON(map[string]string{"name": cr.name})})
	if g.store == nil {
		cr.mb.noteLoad(g)
	}
	cr.wake(&x.wake)
}

func (x *change) putChannel(ch *channel) {
	if rec := x.record(ch.home.load()); rec != nil {
		rec.Channels = append(rec.Channels, ch.row())
		rec.putHead(ch)
	}
}

func (ch *channel) row() ChannelRow {
	return ChannelRow{
		ID: ch.id, Name: ch.name, Description: ch.description, Deployment: ch.deployment,
		Address: ch.address, Born: ch.born, Report: ch.report, Inbox: ch.inbox,
	}
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
	for i := range x.deltas {
		d := &x.deltas[i]
		for _, id := range d.NewGraphs {
			if g := x.e.graphs[id]; g != nil && (!x.summary || d.Kind != topology.None) {
				g.log(x.record(g), Event{Kind: EventTopologyChanged, Payload: mustJSON(NewDelta(d))})
			}
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(x.records), byGraphID) {
		if g.store != nil {
			g.append(x.records[g])
		}
	}
}

// noteNew logs that a creature is there.
func (x *change) noteNew(cr *creature) {
	g := cr.home.load()
	if g == nil {
		return // removed by the same change
	}
	rec := x.record(g)
	if !cr.stopped {
		g.log(rec, Event{Kind: EventCreatureStarted, Creature: cr.id, Payload: mustJSON(map[string]string{"name": cr.name})})
	}
	if g.store != nil {
		g.log(rec, Event{Kind: EventSessionAttached, Creature: cr.id, Payload: mustJSON(map[string]SessionID{"session": g.store.Info().Session})})
	}
}

// noteCut logs in the children of a cut where they come from.
func (x *change) noteCut(plan *storePlan, group *storeGroup) {
	kind := EventSessionForked
	if group.kind() == topology.Merge.String() {
		kind = EventSessionMerged
	}
	for _, id := range group.after {
		store := plan.children[id]
		if store == nil || len(group.before) == 0 {
			continue
		}
		g := x.e.graphs[id]
		info := store.Info()
		g.log(x.record(g), Event{Kind: kind, Payload: mustJSON(map[string]any{"session": info.Session, "parents": info.Parents})})
	}
}

func byGraphID(a, b *graph) int { return cmp.Compare(a.id, b.id) }
