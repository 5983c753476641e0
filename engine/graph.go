package engine

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/letterbox"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/journal"
)

// graph is one connected graph: its environment, the order of its log and, unless it
// is volatile, its store.
type graph struct {
	id     journal.GraphID
	born   uint64
	engine *core

	// mu is the critical section, which is entered as a section. It guards the fields below, and
	// those fields of the members' channel, feed, mailbox and creature whose comments name it.
	mu         sync.Mutex
	store      journal.Store // nil: volatile
	source     observe.Source
	durability journal.Durability
	meta       map[string]string
	heritage
	seen      *deploy.GraphView // see picture; of the shape seenShape
	seenShape uint64
	origin    journal.Origin // of the events that the graph logs
	seq       uint64         // number of the last event
	now       int64          // time of the last event
	wall      int64          // the clock when the critical section was entered
	creatures map[journal.CreatureID]*creature
	names     map[string]*creature
	channels  map[journal.ChannelID]*channel // inboxes included
	roots     []*creature
	readers   []*Reader
	letters   letterbox.Box      // the last ones, where there is no store
	over      int                // mailboxes for which outside senders wait
	admitted  chan struct{}      // closed when over falls to 0; nil when no sender waits
	ended     bool               // the graph has ended: find the present graph of its members
	shape     uint64             // changes with the possible content of awareness documents; no two graphs have the same
	watchers  map[*creature]bool // members that are notified when shape changes
	stopTimer *timing.Timer      // for the next condition of a recipe that is about time
}

// channel is a log that creatures of a graph read, or the inbox of one creature.
type channel struct {
	id          journal.ChannelID
	name        string
	description string
	deployment  string
	born        uint64
	report      bool
	inbox       journal.CreatureID

	// home is the graph, or nil after the channel has been removed.
	home graphPointer

	// The graph's mu guards the fields below.
	head    uint64
	feeds   []*feed     // listeners, in the order in which edges were added
	senders []*creature // creatures that may send
	// cursors are the places of outside readers, including those that are not reading at present.
	cursors map[journal.ReaderID]uint64
	// producers are the highest offsets of outside producers.
	producers map[string]uint64

	// policy judges messages; nil if nothing is judged. It may be read at any time,
	// and changes when a recipe is applied.
	policy atomic.Pointer[deploy.Policy]
	// at is its place in the recipe, which may be read at any time, like policy.
	at atomic.Pointer[channelPlace]
}

// channelPlace is where a recipe declares a channel, and its name there.
type channelPlace struct{ address, label string }

func (ch *channel) place() *channelPlace           { return cmp.Or(ch.at.Load(), &channelPlace{}) }
func (ch *channel) setPlace(address, label string) { ch.at.Store(&channelPlace{address, label}) }

func (ch *channel) dropFeed(s *feed) { ch.feeds = without(ch.feeds, s) }

func newGraph(e *core, id journal.GraphID, born uint64) *graph {
	return &graph{
		id: id, born: born, engine: e,
		creatures: map[journal.CreatureID]*creature{},
		names:     map[string]*creature{},
		channels:  map[journal.ChannelID]*channel{},
	}
}

// tick returns the time of a new event: the time of the critical section, but always
// later than that of the last event.
func (g section) tick() int64 {
	g.now = max(timing.After(g.now, 1), g.wall)
	return g.now
}

// nextID returns the id of the next event.
func (g section) nextID() journal.EventID {
	g.seq++
	return journal.EventID{Origin: g.origin, Seq: g.seq}
}

// attach makes the graph log to a store from now on. With a store no mailbox
// overflows, so outside senders that wait may continue.
//
// since is the time of the last event that the store had before it was opened.
func (g section) attach(s journal.Store, since int64) {
	for _, c := range g.creatures {
		c.mb.over = false
	}
	for _, r := range g.readers {
		r.mb.over = false
	}
	g.over = 0
	g.admit()
	g.letters = letterbox.Box{} // the store has them
	g.store, g.source = s, observe.Source{Session: s.Info().Session, Since: since}
	g.origin = s.Origin()
	g.durability = s.Info().Durability
	g.seq = 0
}

// sequence gives a message its place in a channel and in the log.
func (g section) sequence(ch *channel, m *message.Message) {
	ch.head++
	m.Channel, m.Seq = ch.id, ch.head
	m.ID = g.nextID()
	m.Time = g.tick()
}

// admit lets waiting outside senders try again.
func (g section) admit() {
	if g.admitted != nil {
		close(g.admitted)
		g.admitted = nil
	}
}

// sortedCreatures returns the members, oldest first.
func (g section) sortedCreatures() []*creature {
	return sorted.ValuesFunc(g.creatures, olderCreature)
}

// sortedChannels returns the channels except inboxes, oldest first.
func (g section) sortedChannels() []*channel {
	out := make([]*channel, 0, len(g.channels))
	for _, ch := range g.channels {
		if ch.inbox == "" {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b *channel) int { return cmp.Compare(a.born, b.born) })
	return out
}

// section is a graph whose critical section has been entered. Code that reads or changes
// what the section guards takes one, and only the functions below make one. It is left
// once, and must not be used afterwards. The zero section stands for no graph: that of a
// creature that was removed, or is not added yet.
type section struct{ *graph }

// enter enters the critical section.
func (g *graph) enter() section {
	g.mu.Lock()
	return section{g}
}

// enterAt is enter for a caller that will log something. It has read the clock before, so
// that no other caller waits for that.
func (g *graph) enterAt(wall int64) section {
	s := g.enter()
	s.wall = wall
	return s
}

// tryEnter is enter, but fails if another caller is in the critical section.
func (g *graph) tryEnter() (s section, ok bool) { return section{g}, g.mu.TryLock() }

// leave leaves the critical section.
func (s section) leave() { s.mu.Unlock() }

// none reports whether there is no graph.
func (s section) none() bool { return s.graph == nil }

// graphPointer says in which graph a creature or channel is. The mutation lock and the
// critical sections of the old and the new graph guard its changes. It may be read at any
// time, but what is read is certain to stay only in the graph's critical section.
type graphPointer struct{ p atomic.Pointer[graph] }

// enter enters the critical section of the current graph, following cuts. The result is
// none if the graph no longer exists.
func (h *graphPointer) enter() section {
	for {
		g := h.p.Load()
		if g == nil {
			return section{}
		}
		s := g.enter()
		if h.p.Load() == g {
			return s
		}
		s.leave()
	}
}

// enterAt is enter for a caller that will log something; see [graph.enterAt].
func (h *graphPointer) enterAt(wall int64) section {
	s := h.enter()
	if !s.none() {
		s.wall = wall
	}
	return s
}

func (h *graphPointer) load() *graph { return h.p.Load() }

func (h *graphPointer) store(g *graph) { h.p.Store(g) }

// logsTo reports whether the graph still logs to a store. If not, an error of that
// store only means that a cut has closed it.
func (h *graphPointer) logsTo(s journal.Store) bool {
	g := h.enter()
	if g.none() {
		return false
	}
	defer g.leave()
	return g.store == s
}

// graphID is the id of the current graph, or empty.
func graphID(h *graphPointer) journal.GraphID {
	if g := h.load(); g != nil {
		return g.id
	}
	return ""
}
