package engine

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Stepper is an engine without goroutines: nothing runs but what its methods
// run. It belongs to one goroutine.
type Stepper struct {
	*Engine
	ready []*creature
	free  []*worker
}

// NewStepper starts an engine that is driven step by step. The clock of the
// options is read but never waited for; random takes the place of the random
// part of pauses.
func NewStepper(ctx context.Context, o Options, random *rand.Rand) (*Stepper, error) {
	e, err := assemble(ctx, o)
	if err != nil {
		return nil, err
	}
	e.cancel = func() {}
	e.jitter = func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	return &Stepper{Engine: e}, nil
}

// Ready is how many creatures could be served now.
func (s *Stepper) Ready() int {
	for c := s.queue.tryPop(); c != nil; c = s.queue.tryPop() {
		s.ready = append(s.ready, c)
	}
	return len(s.ready)
}

// Serve serves the creature that pick chooses for one turn. The order of the
// queue may depend on that of maps, so it picks by id. Guests may call Serve
// in the middle of a turn: another creature is served then, as by another
// worker.
func (s *Stepper) Serve(ctx context.Context, pick func(n int) int) bool {
	if s.Ready() == 0 {
		return false
	}
	slices.SortFunc(s.ready, func(a, b *creature) int { return cmp.Compare(a.id, b.id) })
	i := pick(len(s.ready))
	c := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	var w *worker
	if n := len(s.free); n > 0 {
		w, s.free = s.free[n-1], s.free[:n-1]
	} else {
		w = newWorker(s.Engine)
		w.quantum = 1
	}
	w.serve(ctx, c)
	w.flush()
	if w.next != nil {
		s.ready = append(s.ready, w.next)
		w.next = nil
	}
	s.free = append(s.free, w)
	return true
}

// Ring calls the timers that are due.
func (s *Stepper) Ring() (next time.Duration) {
	for {
		due, wait := s.timers.due()
		if len(due) == 0 {
			return wait
		}
		for _, x := range due {
			x.f()
		}
	}
}

// Busy reports whether a creature is runnable or waits to try again.
func (s *Stepper) Busy() bool { return s.idle.busy.Load() != 0 }

// Close ends the engine, as Engine.Close.
func (s *Stepper) Close(ctx context.Context) error {
	s.Ready()
	s.queue.push(s.ready...)
	s.ready = nil
	return s.Engine.Close(ctx)
}

// Edge is who listens on what.
type Edge struct {
	Creature CreatureID
	Channel  ChannelID
}

// Listens says where a listener's channel is: its last number, and the session
// that it is logged to.
type Listens struct {
	Head    uint64
	Session SessionID
}

// Listening lists who listens on what; inboxes included.
func (s *Stepper) Listening() map[Edge]Listens {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[Edge]Listens{}
	for _, g := range s.graphs {
		var session SessionID
		if g.store != nil {
			session = g.store.Info().Session
		}
		for _, c := range g.creatures {
			for _, src := range c.mb.sources {
				if src.ch != nil {
					out[Edge{c.id, src.id}] = Listens{src.ch.head, session}
				}
			}
		}
	}
	return out
}

// Members lists the creatures, the channels that are no inboxes, and the
// graphs, in the order in which they came to be.
func (s *Stepper) Members() (creatures []CreatureID, channels []ChannelID, graphs []GraphID) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, g := range s.sortedGraphs() {
		graphs = append(graphs, g.id)
		for _, c := range g.sortedCreatures() {
			creatures = append(creatures, c.id)
		}
		for _, ch := range g.sortedChannels() {
			channels = append(channels, ch.id)
		}
	}
	return creatures, channels, graphs
}

// Stopped reports whether a creature is stopped or quarantined.
func (s *Stepper) Stopped(id CreatureID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.creatures[id]
	return c != nil && (c.stopped || c.quarantined)
}

// Open lists the requests of a creature that have no answer.
func (s *Stepper) Open(id CreatureID) []RequestRow {
	s.mu.RLock()
	defer s.mu.RUnlock()
	rec := &Record{}
	rec.putAsks(s.creatures[id])
	return rec.Requests
}
