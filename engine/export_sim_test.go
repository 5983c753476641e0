package engine

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Stepper is an engine without goroutines: only its methods run anything. It belongs
// to one goroutine.
type Stepper struct {
	*Engine
	ready []*creature
	free  []*turnWorker
}

// NewStepper starts an engine that is driven step by step. The clock of the options is
// read but never waited for. random replaces the random part of pauses.
func NewStepper(ctx context.Context, o Options, random *rand.Rand) (*Stepper, error) {
	e, err := assemble(ctx, o)
	if err != nil {
		return nil, err
	}
	e.cancel = func() {}
	e.core.heap = nil // its measure differs between runs
	e.core.jitter = func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	return &Stepper{Engine: e}, nil
}

// Ready is how many creatures could be served now.
func (s *Stepper) Ready() int {
	for c := s.core.queue.PopShared(); c != nil; c = s.core.queue.PopShared() {
		s.ready = append(s.ready, c)
	}
	return len(s.ready)
}

// Serve runs one turn of the creature that pick chooses. It sorts the creatures by id, because
// the order of the queue may depend on the order of maps. Guests may call Serve in the middle
// of a turn. Another creature is then served, as if by another worker.
func (s *Stepper) Serve(ctx context.Context, pick func(n int) int) bool {
	if s.Ready() == 0 {
		return false
	}
	slices.SortFunc(s.ready, func(a, b *creature) int { return cmp.Compare(a.id, b.id) })
	i := pick(len(s.ready))
	c := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	var w *turnWorker
	if n := len(s.free); n > 0 {
		w, s.free = s.free[n-1], s.free[:n-1]
	} else {
		w = newWorker(&s.core, nil)
		w.quantum, w.streak = 1, 0
	}
	w.serve(ctx, c)
	s.free = append(s.free, w)
	return true
}

// Ring fires the timers that are due.
func (s *Stepper) Ring() (next time.Duration) {
	for {
		due, wait := s.core.timers.Due()
		if len(due) == 0 {
			return wait
		}
		for _, x := range due {
			x.Call()
		}
	}
}

// Busy reports whether a creature is runnable or waits to try again.
func (s *Stepper) Busy() bool { return s.core.idle.Busy() }

// Close ends the engine, like Engine.Close.
func (s *Stepper) Close(ctx context.Context) error {
	s.Ready()
	s.core.queue.Push(nil, s.ready...)
	s.ready = nil
	return s.Engine.Close(ctx)
}

// Edge is a listener and its channel.
type Edge struct {
	Creature journal.CreatureID
	Channel  journal.ChannelID
}

// Listens describes a listener's channel: its last number, and the session that it is
// logged to.
type Listens struct {
	Head    uint64
	Session journal.SessionID
}

// Listening lists all listeners and their channels, including inboxes.
func (s *Stepper) Listening() map[Edge]Listens {
	l := s.core.rlock()
	defer l.runlock()
	out := map[Edge]Listens{}
	for _, g := range l.graphs {
		var session journal.SessionID
		if g.store != nil {
			session = g.store.Info().Session
		}
		for _, c := range g.creatures {
			for _, src := range c.mb.feeds {
				if src.ch != nil {
					out[Edge{c.id, src.id}] = Listens{src.ch.head, session}
				}
			}
		}
	}
	return out
}

// Dormant is Listening for the saved graphs that have not been restored yet.
func (s *Stepper) Dormant() map[Edge]Listens {
	l := s.core.rlock()
	defer l.runlock()
	out := map[Edge]Listens{}
	for _, d := range l.saved {
		heads := map[journal.ChannelID]uint64{}
		for _, h := range d.Heads {
			heads[h.Channel] = h.Seq
		}
		for _, c := range d.Cursors {
			if c.Until == 0 && !strings.HasPrefix(string(c.Reader), readerPrefix) {
				out[Edge{journal.CreatureID(c.Reader), c.Channel}] = Listens{heads[c.Channel], d.Session}
			}
		}
	}
	return out
}

// Unlogged is what graphs without a store have in memory.
type Unlogged struct {
	Heads   map[journal.ChannelID]uint64
	Offsets map[journal.ChannelID]uint64 // of the producer p
	// Waiting are the numbers of the messages still to be delivered.
	Waiting map[Edge][]uint64
}

// Unlogged lists what graphs without a store have.
func (s *Stepper) Unlogged() Unlogged {
	l := s.core.rlock()
	defer l.runlock()
	u := Unlogged{map[journal.ChannelID]uint64{}, map[journal.ChannelID]uint64{}, map[Edge][]uint64{}}
	for _, g := range l.graphs {
		if g.store != nil {
			continue
		}
		for id, ch := range g.channels {
			u.Heads[id], u.Offsets[id] = ch.head, ch.producers["p"]
		}
		for _, c := range g.creatures {
			var waiting []delivery
			for _, src := range c.mb.feeds {
				for _, d := range src.inHand() {
					waiting = append(waiting, *d)
				}
			}
			for d := range c.mb.window.All() {
				waiting = append(waiting, *d)
			}
			for _, d := range waiting {
				edge := Edge{c.id, d.msg.Channel}
				u.Waiting[edge] = append(u.Waiting[edge], d.msg.Seq)
			}
		}
	}
	return u
}

// Volatile reports whether a channel or an inbox is in a graph without a store.
func (s *Stepper) Volatile(id journal.ChannelID) bool {
	l := s.core.rlock()
	defer l.runlock()
	ch := l.channels[id]
	return ch != nil && ch.home.load().store == nil
}

// VolatileReader reports whether a reader is in a graph without a store.
func (s *Stepper) VolatileReader(r *Reader) bool {
	g := r.home.enter()
	defer g.leave()
	return g.store == nil
}

// SessionOf is the session that a channel is logged to, if any.
func (s *Stepper) SessionOf(id journal.ChannelID) journal.SessionID {
	l := s.core.rlock()
	defer l.runlock()
	if ch := l.channels[id]; ch != nil && ch.home.load().store != nil {
		return ch.home.load().store.Info().Session
	}
	return ""
}

// Poll reads what is ready for a reader, without waiting for more.
func (s *Stepper) Poll(ctx context.Context, r *Reader) (in Incoming, some bool, err error) {
	ended, cancel := context.WithCancel(ctx)
	cancel() // Next returns after it has read the store
	for {
		g := r.home.enter()
		waiting := r.mb.waiting() || r.held != nil || r.ended || r.gap(g) > r.covered
		g.leave()
		if !waiting {
			return Incoming{}, false, nil
		}
		if in, err = r.Next(ended); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return in, err == nil, err
		}
	}
}

// CursorOf is the number up to which a reader has acknowledged.
func (s *Stepper) CursorOf(r *Reader) uint64 {
	g := r.home.enter()
	defer g.leave()
	return r.feed.cursor
}

// Ended reports whether the graph of a reader has ended.
func (s *Stepper) Ended(r *Reader) bool {
	g := r.home.load()
	return g == nil || g.ended
}

// Request is the id of the request's message.
func (c *Call) Request() journal.EventID { return c.request }

// Answered reports whether Reply would not have to wait.
func (c *Call) Answered() bool { return len(c.reply) > 0 }

// Callers is how many callers wait for an answer.
func (s *Stepper) Callers() (n int) {
	s.core.callers.Range(func(any, any) bool { n++; return true })
	return n
}

// Members lists the creatures, the channels except inboxes, and the graphs, in the
// order in which they were made.
func (s *Stepper) Members() (creatures []journal.CreatureID, channels []journal.ChannelID, graphs []journal.GraphID) {
	l := s.core.rlock()
	defer l.runlock()
	for _, graph := range l.sortedGraphs() {
		g := graph.enter()
		graphs = append(graphs, g.id)
		for _, c := range g.sortedCreatures() {
			creatures = append(creatures, c.id)
		}
		for _, ch := range g.sortedChannels() {
			channels = append(channels, ch.id)
		}
		g.leave()
	}
	return creatures, channels, graphs
}

// Stopped reports whether a creature is stopped or quarantined.
func (s *Stepper) Stopped(id journal.CreatureID) bool {
	l := s.core.rlock()
	defer l.runlock()
	c := l.creatures[id]
	return c != nil && (c.stopped || c.quarantined)
}

// Open lists the unanswered requests of a creature.
func (s *Stepper) Open(id journal.CreatureID) []journal.RequestRow {
	l := s.core.rlock()
	defer l.runlock()
	rec := &journal.Record{}
	c := l.creatures[id]
	g := c.home.enter()
	defer g.leave()
	putAsks(g, rec, c)
	return rec.Requests
}

// Charged returns how many of the bytes that a creature has stored its rate does not cover yet;
// see timing.Pace.
func (s *Stepper) Charged(id journal.CreatureID) int64 {
	l := s.core.rlock()
	defer l.runlock()
	c := l.creatures[id]
	g := c.home.enter()
	defer g.leave()
	return int64(float64(c.pace.Stored.Wait(g.wall, 0)) / float64(time.Second) * float64(c.limits.StoreRate))
}

// Sight is the revision that a creature has seen, and the last one of which it was
// notified.
func (s *Stepper) Sight(id journal.CreatureID) (seen, notified uint64) {
	l := s.core.rlock()
	defer l.runlock()
	c := l.creatures[id]
	return c.sight.revision, c.sight.notified
}
