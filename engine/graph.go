package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// graph is one connected graph: its environment, the order of its log and, unless it
// is volatile, its store.
type graph struct {
	id     journal.GraphID
	born   uint64
	engine *core

	// mu is the critical section, which is entered as a section. It guards the fields
	// below, and the fields of the members' channel, feed, mailbox and creature that say
	// so.
	mu          sync.Mutex
	store       journal.Store // nil: volatile
	source      observe.Source
	durability  journal.Durability
	meta        map[string]string
	memory      recall.Cells      // of policies; replaced, never modified
	seen        *deploy.GraphView // see picture; of the shape seenShape
	seenShape   uint64
	origin      journal.Origin // of the events that the graph logs
	seq         uint64         // number of the last event
	now         int64          // time of the last event
	wall        int64          // the clock when the critical section was entered
	creatures   map[journal.CreatureID]*creature
	names       map[string]*creature
	channels    map[journal.ChannelID]*channel // inboxes included
	roots       []*creature
	readers     []*Reader
	letters     []journal.DeadLetterRow // the last ones, where there is no store
	letterBytes int64
	over        int                // mailboxes for which outside senders wait
	admitted    chan struct{}      // closed when over falls to 0; nil when no sender waits
	ended       bool               // the graph has ended: find the present graph of its members
	shape       uint64             // changes with the possible content of awareness documents; no two graphs have the same
	watchers    map[*creature]bool // members that are notified when shape changes
}

// channel is a log that creatures of a graph read, or the inbox of one creature.
type channel struct {
	id          journal.ChannelID
	name        string
	description string
	deployment  string
	address     string
	born        uint64
	report      bool
	inbox       journal.CreatureID

	// home is the graph, or nil after the channel has been removed. It changes under
	// the mutation lock and in the sections of both graphs, and is read without them.
	home graphPointer

	// The graph's mu guards the fields below.
	head    uint64
	feeds   []*feed     // listeners, in the order in which edges were added
	senders []*creature // creatures that may send
	// cursors are the places of outside readers, including those that are not reading
	// at present.
	cursors map[journal.ReaderID]uint64
	// producers are the highest offsets of outside producers.
	producers map[string]uint64

	// policy judges messages; nil if nothing is judged. It may be read at any time,
	// and changes when a recipe is applied.
	policy atomic.Pointer[deploy.Policy]
	label  string // name in the recipe; set before the channel can be found
}

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
	g.now = max(g.now+1, g.wall)
	return g.now
}

// wallClock reads the clock; see [graph.enterAt].
func (e *core) wallClock() int64 { return e.clock.Now().UnixNano() }

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
	g.letters, g.letterBytes = nil, 0 // the store has them
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

// publish offers a sequenced message to every listener except its sender, and wakes
// them. Deliveries that no mailbox took become dead letters: they are added to the
// record, or only shown to subscribers.
func (g section) publish(ch *channel, m *message.Message, w *waker, rec *journal.Record) {
	for _, s := range ch.feeds {
		mb := s.mb
		if c := mb.creature; c != nil && c.id == m.Sender && ch.inbox == "" {
			if !mb.lagging && !s.lost {
				s.offered = m.Seq
			}
			continue
		}
		switch mb.offer(g, s, m) {
		case refused:
			g.deadLetter(rec, letterOf(mb, m, journal.DeadOverflow))
			continue
		case droppedOld, taken, deferred:
		}
		mb.wake(g, w)
	}
}

// wake notifies the reader that something is waiting.
func (mb *mailbox) wake(g section, w *waker) {
	if mb.creature != nil {
		mb.creature.wake(g, w)
		return
	}
	mb.reader.signal()
}

// admit lets waiting outside senders try again.
func (g section) admit() {
	if g.admitted != nil {
		close(g.admitted)
		g.admitted = nil
	}
}

// awaitRoom waits until the graph of a channel accepts outside messages, and enters its
// critical section. It returns not_found if the channel has been removed.
func (e *core) awaitRoom(ctx context.Context, ch *channel) (section, error) {
	for {
		g := ch.home.enter()
		if g.none() {
			return section{}, errtext.Gone("channel", string(ch.id))
		}
		if g.store == nil {
			if g.over == 0 {
				return g, nil
			}
			if g.admitted == nil {
				g.admitted = make(chan struct{})
			}
			admitted := g.admitted
			g.leave()
			select {
			case <-admitted:
			case <-ctx.Done():
				return section{}, &abi.Error{Code: abi.Unavailable, Op: "send", Message: "a mailbox of the graph is full", Remedy: "wait for the creatures to catch up, or choose another overflow policy", Err: context.Cause(ctx)}
			case <-e.closing:
				return section{}, errtext.Closed
			}
			continue
		}
		// Waiting for the disk happens outside of the critical section, so the queue
		// may have filled again when the lock is taken. The bound is exceeded by one
		// record per sender at most.
		store := g.store
		g.leave()
		if err := store.Room(ctx); err != nil {
			if ctx.Err() == nil && !ch.home.logsTo(store) {
				continue
			}
			return section{}, notTakenIn(ctx, err)
		}
		if g = ch.home.enter(); g.none() {
			return section{}, errtext.Gone("channel", string(ch.id))
		}
		if g.store == store {
			return g, nil
		}
		g.leave()
	}
}

// sortedCreatures returns the members, oldest first.
func (g section) sortedCreatures() []*creature {
	return slices.SortedFunc(maps.Values(g.creatures), func(a, b *creature) int {
		return compare(a.born, b.born)
	})
}

// sortedChannels returns the channels except inboxes, oldest first.
func (g section) sortedChannels() []*channel {
	out := make([]*channel, 0, len(g.channels))
	for _, ch := range g.channels {
		if ch.inbox == "" {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b *channel) int { return compare(a.born, b.born) })
	return out
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
