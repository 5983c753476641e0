package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/internal/storemeta"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// following updates the environments to match a change.
type following struct {
	*change
	plan *storePlan
}

// follow updates the environments step by step.
func (x following) follow() {
	origins := x.plan.readers()
	x.plan.noteSuccessors(x.change)
	for i := range x.sealed.Deltas {
		for _, c := range x.sealed.Deltas[i].Changes {
			x.step(c)
		}
	}
	x.bringBackReaders(origins)
	for _, id := range x.sealed.Stopped {
		if cr := x.e.creatures[id]; cr != nil && cr.stopped && !cr.storedStopped() {
			cr.savedStopped = true
			g := x.home(cr)
			rec := x.record(g)
			x.startOrStop(x.logOf(g), rec, cr)
			putCreature(g, rec, cr)
		}
	}
	for _, id := range x.sealed.Started {
		if cr := x.e.creatures[id]; cr != nil && cr.quarantined && !cr.stopped {
			g := x.logOf(x.home(cr))
			x.startOrStop(g, x.record(g), cr)
		}
	}
	for _, cr := range x.recipe.resumed {
		if g := x.home(cr); !g.none() {
			putCreature(g, x.record(g), cr)
		}
	}
	x.followWires()
	x.noteDeployments()
	for c := range x.dirty {
		if c.removed {
			c.wiring.Store(noWiring)
			continue
		}
		info, _ := x.e.topo.Creature(c.id)
		w := newWiring(c.name, c.deployment, info.Edges, x.e.channels)
		w.outlets = outlets.Of(c.wires, func(name string) deploy.Predicate { return x.Predicate(c.deployment, name) })
		c.wiring.Store(w)
	}
}

func (x following) step(c topology.Change) {
	switch c.Kind {
	case topology.GraphAdded:
		x.addGraph(c.Graph)
	case topology.GraphEnded:
		g, into := x.graph(c.Graph), x.graph(c.Into)
		x.moveReaders(g, into)
		g.moveLetters(into, "")
		g.ended = true
		delete(x.e.graphs, c.Graph)
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

func (x following) addGraph(id journal.GraphID) {
	born, ok := x.e.topo.Born(id)
	graph := newGraph(x.e.core, id, born)
	g := x.enter(graph)
	g.origin = x.e.ids.Origin()
	g.meta, g.now = x.plan.metaOf(x.change, id), max(g.now, x.lastTime)
	if x.bringsBack() {
		g.meta, g.memory = storemeta.MemoryOf(g.spent.Read(x.saved.Meta))
	}
	if !ok {
		x.transient[graph] = section{}
	} else if s := x.plan.children[id]; s != nil {
		since := int64(0)
		if x.saved.adopt != nil {
			since = x.lastTime
		}
		g.attach(s, since)
		g.seq = uint64(x.plan.first[id])
	}
	x.e.graphs[id] = graph
}

func (x following) addCreature(c topology.Change) {
	cr, g := x.creatures[c.Creature], x.graph(c.Graph)
	info, _ := x.e.topo.Creature(c.Creature)
	cr.name, cr.born, cr.root = c.Name, info.Born, info.Root
	x.e.setParent(g, cr, info.Parent)
	cr.privileged = info.Privileged
	x.e.creatures[cr.id] = cr
	x.e.countSpawned(cr, 1)
	x.e.noteRoot(cr)
	g.join(cr)
	inbox := x.channels[journal.InboxOf(cr.id)]
	if inbox == nil {
		inbox = &channel{id: journal.InboxOf(cr.id), name: "inbox", inbox: cr.id}
	}
	x.e.channels[inbox.id] = inbox
	inbox.home.store(g.graph)
	g.channels[inbox.id] = inbox
	cr.mb.addFeed(inbox, "", x.cursor(cr.id, inbox))
	x.restoreBacklogs(cr)
	x.dirty[cr] = true
	if x.bringsBack() {
		return
	}
	putCreature(g, x.record(g), cr)
	x.putChannel(inbox)
	if rec := x.record(g); rec != nil {
		putCursor(rec, cr.reader(), cr.mb.feed(inbox))
	}
	cr.wake(g, &x.wake)
}

func (g section) join(cr *creature) {
	cr.home.store(g.graph)
	g.creatures[cr.id] = cr
	g.names[cr.name] = cr
	g.watch(cr)
	if cr.root {
		g.roots = append(g.roots, cr)
	}
}

// drop is the opposite of join, except for the home.
func (g section) drop(cr *creature) {
	delete(g.creatures, cr.id)
	g.unwatch(cr)
	if g.names[cr.name] == cr {
		delete(g.names, cr.name)
	}
	g.roots = without(g.roots, cr)
}

func (x following) removeCreature(c topology.Change) {
	cr, g := x.e.creatures[c.Creature], x.graph(c.Graph)
	rec, log := x.record(g), x.logOf(g)
	inbox := x.e.channels[journal.InboxOf(cr.id)]
	for _, s := range slices.Clone(cr.mb.feeds) {
		x.bury(g, rec, &cr.mb, s)
	}
	cr.removed = true
	cr.failJobs(g, errtext.Gone("creature", string(cr.id)))
	x.e.setParent(g, cr, "")
	for _, ev := range cr.approvals.Withdrawals(cr.id, approval.CreatureRemoved, func(*approval.Question) bool { return true }) {
		x.log(log, rec, ev)
	}
	g.silence(cr)
	cr.mb.leaveLoad(g)
	x.forgetChannel(inbox, g)
	g.drop(cr)
	delete(x.e.creatures, cr.id)
	x.e.countSpawned(cr, -1)
	x.e.noteRoot(cr)
	x.dirty[cr] = true
	rec.DropCreature(cr.id)
	x.orphanWires(g, log, rec, cr)
	x.log(log, rec, journal.Event{Kind: journal.EventCreatureStopped, Creature: cr.id, Payload: journal.JSON(journal.CreatureStoppedPayload{Name: cr.name, Reason: journal.StopRemoved})})
	x.discardInstance(cr)
	cr.home.store(nil) // from here on its worker, if any, may retire it
	x.e.releaseModule(context.Background(), cr.module)
}

// discardInstance has a worker close the instance of a creature that needs none.
// Closing runs guest code, and no change should wait for that.
func (x following) discardInstance(cr *creature) {
	if cr.cold(section{}) && !cr.scheduled && cr.hold == nil && cr.instance != nil {
		cr.scheduled = true
		x.wake.Add(cr, &x.e.idle)
	}
	if cr.backingOff {
		cr.backingOff = false
		x.e.countPause(-1)
	}
}

func (x following) addChannel(c topology.Change) {
	ch, g := x.channels[c.Channel], x.graph(c.Graph)
	if ch == nil {
		ch = &channel{id: c.Channel}
	}
	ch.name = c.Name
	if info, ok := x.e.topo.Channel(c.Channel); ok {
		ch.born, ch.report = info.Born, info.Report
	}
	x.e.channels[ch.id] = ch
	x.e.noteReport(ch, false)
	x.e.setPolicy(ch)
	ch.home.store(g.graph)
	g.channels[ch.id] = ch
	x.putChannel(ch)
}

func (x following) removeChannel(c topology.Change) {
	ch, g := x.e.channels[c.Channel], x.graph(c.Graph)
	for _, s := range slices.Clone(ch.feeds) {
		if r := s.mb.reader; r != nil {
			r.seal(g, s)
		}
	}
	x.forgetChannel(ch, g)
}

func (x following) forgetChannel(ch *channel, g section) {
	ch.home.store(nil)
	delete(g.channels, ch.id)
	delete(x.e.channels, ch.id)
	x.e.noteReport(ch, true)
	rec := x.record(g)
	if rec == nil {
		return
	}
	rec.DropChannel(ch.id)
	if ch.inbox != "" {
		return // its only reader is removed with it
	}
	// Creatures that have stopped listening still drain it, even after a restart.
	for _, cr := range g.creatures {
		for _, s := range cr.mb.feeds {
			if s.id == ch.id && s.ch == nil {
				putCursor(rec, cr.reader(), s)
			}
		}
	}
}

func (x following) addEdge(c topology.Change) {
	cr, ch := x.e.creatures[c.Creature], x.e.channels[c.Channel]
	x.dirty[cr] = true
	rec := x.record(x.home(cr))
	if c.Direction == journal.Send {
		ch.senders = append(ch.senders, cr)
	}
	if c.Direction == journal.Listen && cr.mb.feed(ch) == nil {
		s := cr.mb.addFeed(ch, c.Alias, x.cursor(cr.id, ch))
		putCursor(rec, cr.reader(), s)
	}
	if rec != nil {
		place := x.e.topo.EdgeOrder(c.Creature, c.Channel, c.Direction)
		rec.Edges = append(rec.Edges, journal.EdgeRow{Creature: c.Creature, Channel: c.Channel, Direction: c.Direction, Alias: c.Alias, Order: place})
	}
}

func (x following) removeEdge(c topology.Change) {
	cr, ch := x.e.creatures[c.Creature], x.e.channels[c.Channel]
	x.dirty[cr] = true
	g := x.home(cr)
	rec := x.record(g)
	rec.DropEdge(journal.EdgeRow{Creature: c.Creature, Channel: c.Channel, Direction: c.Direction})
	if c.Direction == journal.Send {
		ch.senders = without(ch.senders, cr)
	}
	if c.Direction != journal.Listen || x.leaving[cr.id] {
		return
	}
	s := cr.mb.feed(ch)
	switch {
	case s == nil:
	case x.dropped[ch.id]:
		x.bury(g, rec, &cr.mb, s)
	default:
		rec.DropCursor(journal.CursorRow{Reader: cr.reader(), Channel: ch.id})
		if cr.mb.detach(s) {
			putCursor(rec, cr.reader(), s)
		}
	}
}

func (x following) moveCreature(c topology.Change) {
	cr, from, to := x.e.creatures[c.Creature], x.graph(c.From), x.graph(c.Graph)
	if lender, ok := x.transient[to.graph]; ok && lender.none() {
		x.transient[to.graph] = x.logOf(from)
	}
	cr.mb.leaveLoad(from)
	from.moveLetters(to, cr.id)
	from.drop(cr)
	to.join(cr)
	inbox := x.e.channels[journal.InboxOf(cr.id)]
	delete(from.channels, inbox.id)
	to.channels[inbox.id] = inbox
	inbox.home.store(to.graph)
	if to.store == nil {
		cr.mb.noteLoad(to)
	}
}

// leaveLoad removes a mailbox from the graph's count of full mailboxes.
func (mb *mailbox) leaveLoad(g section) {
	if !mb.over {
		return
	}
	mb.over = false
	if g.over--; g.over == 0 {
		g.admit()
	}
}

func (x following) moveChannel(c topology.Change) {
	ch, from, to := x.e.channels[c.Channel], x.graph(c.From), x.graph(c.Graph)
	delete(from.channels, ch.id)
	to.channels[ch.id] = ch
	ch.home.store(to.graph)
	for _, s := range ch.feeds {
		if r := s.mb.reader; r != nil {
			r.move(from, to)
		}
	}
}

// moveReaders moves the readers that are left in a graph that ends: those whose
// channel has been removed, and which still have to read what it had. If the graph has
// no successor, its store ends, and with it what these readers have not read.
func (x following) moveReaders(g, into section) {
	for _, r := range slices.Clone(g.readers) {
		if !into.none() {
			r.move(g, into)
			continue
		}
		x.mourn(g, x.record(g), r.feed)
		r.mb.lagging = false
		r.signal()
	}
}

// readers are the readers of the graphs whose stores are cut, each with its graph.
func (p *storePlan) readers() map[*Reader]section {
	out := map[*Reader]section{}
	for g := range p.goesOn {
		for _, r := range g.readers {
			out[r] = g
		}
	}
	return out
}

// bringBackReaders moves readers whose channel was removed to the graph that has the rest of the
// history they must read. That need not be the successor of their graph: within the change, all of
// its members may have left the successor, and its id may have passed to others.
func (x following) bringBackReaders(origins map[*Reader]section) {
	for r, g := range origins {
		from, after := x.in(r.home.load()), x.plan.goesOn[g]
		if r.feed.ch != nil || from.none() || slices.Contains(after, from.id) {
			continue
		}
		if to := x.graph(after[0]); !to.none() {
			r.move(from, to)
			r.mb.lagging = r.feed.lastMessage() > r.feed.offered // an intermediate graph clears it when it ends
		}
	}
}

// moveLetters moves the dead letters of one creature, or of all, from one graph
// without a store to another. (A graph with a store has them there.)
func (g section) moveLetters(to section, c journal.CreatureID) {
	if g.store != nil || to.none() || to.store != nil {
		return
	}
	g.letters.MoveTo(&to.letters, c)
}

func (x following) renameCreature(c topology.Change) {
	cr := x.e.creatures[c.Creature]
	g := x.home(cr)
	if g.names[cr.name] == cr {
		delete(g.names, cr.name)
	}
	cr.name = c.Name
	g.names[cr.name] = cr
	x.dirty[cr] = true
	putCreature(g, x.record(g), cr)
}

func (x following) changeFlags(c topology.Change) {
	cr := x.e.creatures[c.Creature]
	g := x.home(cr)
	info, _ := x.e.topo.Creature(c.Creature)
	cr.privileged, cr.root = info.Privileged, info.Root
	if g.roots = without(g.roots, cr); cr.root {
		g.roots = append(g.roots, cr)
	}
	x.e.noteRoot(cr)
	rec := x.record(g)
	if cr.stopped != info.Stopped || cr.paused != info.Paused {
		cr.stopped, cr.savedStopped, cr.paused = info.Stopped, info.Stopped, info.Paused
		x.startOrStop(x.logOf(g), rec, cr)
	}
	putCreature(g, rec, cr)
}

func (x following) startOrStop(log section, rec *journal.Record, cr *creature) {
	g := x.home(cr)
	ev := journal.Event{Kind: journal.EventCreatureStarted, Creature: cr.id, Payload: journal.JSON(journal.CreatureStartedPayload{Name: cr.name})}
	if cr.stopped {
		ev.Kind, ev.Payload = journal.EventCreatureStopped, journal.JSON(journal.CreatureStoppedPayload{Name: cr.name, Reason: map[bool]journal.StopReason{true: journal.StopPaused}[cr.paused]})
		cr.failJobs(g, errtext.NotRunning(string(cr.id), cr.name, "has been "+string(cr.lifecycle.condition())))
		x.discardInstance(cr)
	} else {
		cr.quarantined = false
		cr.attempts = nil
		g.ringHeld(cr)
	}
	x.log(log, rec, ev)
	if g.store == nil {
		cr.mb.noteLoad(g)
	}
	cr.wake(g, &x.wake)
}

func (x *change) putChannel(ch *channel) {
	if rec := x.record(x.in(ch.home.load())); rec != nil {
		rec.Channels = append(rec.Channels, ch.row())
		putHead(rec, ch)
	}
}

func (ch *channel) row() journal.ChannelRow {
	return journal.ChannelRow{
		ID: ch.id, Name: ch.name, Description: ch.description, Deployment: ch.deployment,
		Address: ch.place().address, Born: ch.born, Report: ch.report, Inbox: ch.inbox,
	}
}
