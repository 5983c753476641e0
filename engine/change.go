package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/cursors"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/recall"
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
	// attribution is the encoded [journal.Attribution] of the change.
	attribution []byte
}

// recipeChange is the part of a change that comes from applying a recipe.
type recipeChange struct {
	ops []topology.Op // to be staged
	// durability and meta are for graphs that the change creates.
	durability journal.Durability
	meta       map[string]string
	// deployed are the members of the deployment that the change applies; their stores get meta.
	// resumed are the members that continue with what the recipe now says of them.
	deployed []journal.CreatureID
	resumed  []*creature
	// redeclared are channels with another description or address in the recipe.
	redeclared map[*channel]deploy.ChannelSpec
}

// broughtBack is a saved graph that a change brings back, with the store that it continues with.
type broughtBack struct {
	*journal.SavedGraph // nil: none
	adopt               journal.Store
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
	// movers are the creatures whose graph id changes, oldest first, and present tells where
	// the members of each paused graph are after the change.
	movers  []*creature
	present map[*graph]map[journal.GraphID]bool
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
	// late are events in graphs that the change has ended, without a log of their own.
	late []lateEvent
	// unasked are creatures whose questions about such deliveries are withdrawn.
	unasked []*creature
	// entry is what changes when graphs without a log become part of a logged one.
	entry logEntry
}

// creature returns a creature that exists or is added.
func (x *change) creature(id journal.CreatureID) *creature {
	if c := x.e.creatures[id]; c != nil {
		return c
	}
	return x.creatures[id]
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
func (x *change) bringsBack() bool { return x.saved.SavedGraph != nil }

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

// noteAttached logs which session will have the events of a creature from now on.
func (x *change) noteAttached(g section, cr *creature) {
	if g.store != nil {
		x.log(g, x.record(g), journal.Event{Kind: journal.EventSessionAttached, Creature: cr.id, Payload: journal.JSON(journal.SessionAttachedPayload{Session: g.source.Session})})
	}
}

// lateEvent is an event in a graph that the change ends.
type lateEvent struct {
	g  section
	ev journal.Event
}

// log logs an event of the change. If a turn makes the change, the message that the turn
// handles is the cause of an event without one. An event in a graph that the change ends
// waits for the graph that takes its place, if the log is not there: a cut has closed it.
func (x *change) log(g section, rec *journal.Record, ev journal.Event) {
	ev.Cause = cmp.Or(ev.Cause, x.turn.cause(x))
	ev.Attribute(x.attribution)
	if _, lives := x.e.topo.Born(g.id); rec == nil && !lives {
		x.late = append(x.late, lateEvent{g, ev})
		return
	}
	g.log(rec, ev)
}

// logLate logs the events of graphs that the change has ended, where their members are now.
func (p *storePlan) logLate(x *change) {
	for _, l := range x.late {
		g := x.logOf(l.g)
		for _, group := range p.groups {
			if slices.Contains(group.before, g) && len(group.After) > 0 {
				g = x.graph(x.successor(g, l.ev.Creature, group))
				break
			}
		}
		g.log(x.record(g), l.ev)
	}
}

// handledTurn is what a change needs of the turn that makes it: its delivery, and how
// the rest of the turn is logged and landed.
//
// The methods do nothing on nil.
type handledTurn struct {
	c    *creature
	d    delivery
	kind abi.Kind
	rest restOfTurn
	// goBack restores these fields: how far the creature had read before the turn.
	cursor   uint64 // of d's feed
	started  bool
	notified uint64
}

// restOfTurn is the rest of a turn that makes a change; see turnChange.
type restOfTurn interface {
	// recalled returns what the policies that judged the turn have recalled.
	recalled() []*recall.Recollection
	// logFirst logs the turn in the first record of a store.
	logFirst(x *change, rec *journal.Record, id journal.GraphID, origin journal.Origin)
	// announce shows subscribers what logFirst has logged.
	announce(x *change, plan *storePlan)
	// land applies the turn after the environments have followed.
	land(x *change)
	// goBack discards what was logged.
	goBack()
}

// cause is the id in the log of the message that the turn handles. It is empty if
// there is no turn, or if no log has the delivery.
func (t *handledTurn) cause(x *change) journal.EventID {
	if t == nil {
		return journal.EventID{}
	}
	return cmp.Or(x.entry.ids[t.d.msg.ID], t.d.msg.LogID())
}

// attribution is what made a change: the turn or, without one, the caller of the context.
func (t *handledTurn) attribution(ctx context.Context, name string) []byte {
	a := journal.AttributionOf(ctx)
	if t != nil {
		a = journal.Attribution{Creature: t.c.id}
	}
	a.Call = cmp.Or(a.Call, name)
	return a.Encode()
}

// advance counts the delivery as handled before stores are cut, so that their first
// records show it as handled.
func (t *handledTurn) advance(x *change) {
	if t == nil {
		return
	}
	c, s := t.c, t.d.feed
	c.current = delivery{}
	if s != nil {
		t.cursor, s.cursor = s.cursor, max(s.cursor, t.d.msg.Seq)
	}
	t.started, t.notified = c.started, c.sight.notified
	c.noteDealt(x.home(c), t.kind)
}

// goBack undoes advance.
func (t *handledTurn) goBack() {
	if t == nil {
		return
	}
	if s := t.d.feed; s != nil {
		t.c.current, s.cursor = t.d, t.cursor
	}
	t.c.started, t.c.sight.notified = t.started, t.notified
	t.rest.goBack()
}

// logged is the position of a change in the log of a graph.
type logged struct {
	g     *graph
	store journal.Store
	upTo  uint64
}

// wait waits until that position is durable. After a cut, everything that the parents
// had logged is durable.
func (l logged) wait(ctx context.Context) error {
	err := l.store.Wait(ctx, l.upTo)
	if err == nil {
		return nil
	}
	g := l.g.enter()
	defer g.leave()
	if g.ended || g.store != l.store {
		return nil
	}
	return err
}

// unlinked is a creature that loses its parent.
type unlinked struct {
	*creature
	reason journal.UnlinkReason
}

// burial is what waits in a feed when its channel or reader is removed. It is
// collected before anything changes, for two reasons: the stores that hold it can
// still be read then, and its dead letters must be in the first record of a store that
// a cut makes, or a crash after the cut would lose them.
type burial struct {
	mb   *mailbox
	home section  // before the change
	dead []letter // in order
	// asked are the requests among them, as they were sent.
	asked   []buriedRequest
	unasked func(*approval.Question) bool // selects the questions about them; nil: none
	// events are the dead letters and these withdrawals as a cut has logged them, or nil.
	events []journal.Event
}

// buriedRequest is a request that waited for a creature that is removed.
type buriedRequest struct {
	id    journal.EventID
	asker journal.CreatureID // empty: an outside caller
}

// logEntry is what changes in memory when graphs without a store become part of one
// with a store, if the cut succeeds.
type logEntry struct {
	// logged are the ids under which messages enter the log, by message, and ids the
	// same by their former ids.
	logged map[*message.Message]journal.EventID
	ids    map[journal.EventID]journal.EventID
	// runs are the deliveries left of feeds that skipped some because their mailboxes were full.
	runs map[*feed][]cursors.Run
}
