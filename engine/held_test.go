package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// gate holds turns before their commit. A creature that gets the order to hold does its work,
// reports that, and waits.
type gate struct {
	held  chan string // the creature that waits
	opens chan struct{}
	once  sync.Once
}

func newGate(h *fakeHost) *gate {
	g := &gate{held: make(chan string, 64), opens: make(chan struct{})}
	h.on("held", g.turn)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opens) }) }

// turn has an effect of every kind, and waits.
func (g *gate) turn(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	self, _ := t.Source(abi.SourceSelf)
	if s := t.Send(abi.AllChannels, payload, nil); s < 0 && abi.CodeOfStatus(s) != abi.NotConnected {
		return status(t, s)
	}
	for _, code := range []abi.Code{
		t.StateSet([]byte("did"), payload), t.Output(payload), t.TimerSet([]byte("later"), time.Hour, 0, payload),
	} {
		if err := codeErr(t, code); err != nil {
			return err
		}
	}
	t.SendTo([]byte("c"), []byte("direct")) // if there is one in its graph
	g.held <- string(self)
	<-g.opens
	return nil
}

// wait waits until n turns are held.
func (g *gate) wait(n int) {
	for range n {
		<-g.held
	}
}

// town is a graph with a creature h, whose turn is held. Creature a sends to h; b and c listen
// to h. There is another graph.
type town struct {
	*saved
	*gate
	a, h, b, c    journal.CreatureID
	in, out, news journal.ChannelID
	x, y          journal.CreatureID
	xy            journal.ChannelID
}

func newTown(t *testing.T) *town {
	host := newFakeHost()
	w := &town{gate: newGate(host)}
	w.saved = newSaved(t, engine.Options{Host: host, Workers: 4})
	t.Cleanup(w.gate.open) // before the engine closes, because Close waits for turns
	w.try(w.build)         // in one batch, which makes few stores
	w.saved.wait()
	return w
}

func (w *town) build(b *engine.Batch) error {
	for _, m := range []struct {
		id           *journal.CreatureID
		name, module string
	}{{&w.a, "a", "sink"}, {&w.h, "h", "held"}, {&w.b, "b", "record"}, {&w.c, "c", "record"}, {&w.x, "x", "record"}, {&w.y, "y", "record"}} {
		added, _, err := b.AddCreature(w.t.Context(), spec(m.name, m.module))
		if err != nil {
			return err
		}
		*m.id = added.Creature
	}
	for _, e := range []struct {
		id       *journal.ChannelID
		name     string
		from, to journal.CreatureID
	}{{&w.in, "in", w.a, w.h}, {&w.out, "out", w.h, w.b}, {&w.news, "news", w.h, w.c}, {&w.xy, "xy", w.x, w.y}} {
		out, err := b.Do(context.Background(), topology.Connect{From: e.from, To: e.to, Name: e.name})
		if err != nil {
			return err
		}
		*e.id = out.Channel
	}
	return nil
}

func (w *town) off(c journal.CreatureID, ch journal.ChannelID, d journal.Direction) topology.Op {
	return topology.SetEdge{Creature: c, Channel: ch, Direction: d}
}

func (w *town) on(c journal.CreatureID, ch journal.ChannelID, d journal.Direction) topology.Op {
	return topology.SetEdge{Creature: c, Channel: ch, Direction: d, On: true}
}

// enlarge makes the graph of x and y the larger one, so that it survives.
func (w *town) enlarge() {
	w.try(func(b *engine.Batch) error {
		for i := range 6 {
			added, _, err := b.AddCreature(w.t.Context(), spec(fmt.Sprintf("x%d", i), "sink"))
			if err != nil {
				return err
			}
			if _, err = b.Do(context.Background(), topology.SetEdge{Creature: added.Creature, Channel: w.xy, Direction: journal.Listen, On: true}); err != nil {
				return err
			}
		}
		return nil
	})
}

// ops is a change of several operations at once.
func (s *saved) ops(ops ...topology.Op) {
	s.t.Helper()
	if _, err := s.Change(s.t.Context(), ops...); err != nil {
		s.t.Fatal(err)
	}
}

func TestAHeldTurnCommitsWhereItsCreatureIsThen(t *testing.T) {
	for _, c := range heldCases {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t)
			w.send(w.in, "1")
			w.gate.wait(1)
			before := w.starts(w.h)
			c.do(w)
			w.gate.open()
			w.saved.wait()
			if after := w.starts(w.h); after != before {
				t.Errorf("%d instances of h were started, but only %d before the cuts", after, before)
			}
			for range 2 { // and again after a restart
				w.wantEffects(c)
				w.reopen()
				w.saved.wait()
			}
		})
	}
}

// starts is how many instances a creature has had since the engine started.
func (s *saved) starts(c journal.CreatureID) uint64 {
	for _, g := range s.status() {
		for _, cr := range g.Creatures {
			if cr.ID == c {
				return cr.InstanceStarts
			}
		}
	}
	return 0
}

// wantEffects checks that each effect of the turn of h exists once: in the session that its
// graph has now, and in no other.
func (w *town) wantEffects(c heldCase) {
	w.t.Helper()
	w.wantHeard(w.b, c.b)
	w.wantHeard(w.c, c.c)
	if got := w.state(w.h, "did"); got != "1" {
		w.t.Errorf("the turn of h left %q", got)
	}
	if rows, err := w.Timers(w.h); err != nil || len(rows) != 1 {
		w.t.Errorf("h has the timers %v, %v; want one", rows, err)
	}
	var reasons []string
	letters, err := w.DeadLetters(w.t.Context(), w.graph(w.h), "", journal.EventID{}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range letters {
		reasons = append(reasons, string(l.Reason))
	}
	if !slices.Equal(reasons, c.letters) {
		w.t.Errorf("dead letters %v, want %v", reasons, c.letters)
	}
	all := w.archive()
	w.wantTurn(all, w.h, 3)
	w.sound(all)
}

func (w *town) wantHeard(c journal.CreatureID, want string) {
	w.t.Helper()
	if _, err := w.State(w.t.Context(), c, ""); abi.CodeOf(err) == abi.NotFound && want == "" {
		return
	}
	if got := w.state(c, "heard"); got != want {
		w.t.Errorf("%s heard %q, want %q", w.name(c), got, want)
	}
}

// wantTurn checks that a creature had one turn on a message, which the session of its
// graph has in full: with its output, its state, and n sends that became messages or dead
// letters.
func (s *saved) wantTurn(a *archive, c journal.CreatureID, n int) {
	s.t.Helper()
	turns := a.writers(func(ev *journal.Event) bool {
		return ev.Kind == journal.EventTurnEnded && ev.Creature == c && ev.Channel != ""
	})
	if len(turns) != 1 {
		s.t.Fatalf("%s had %d turns: %v", s.name(c), len(turns), turns)
	}
	for id, sessions := range turns {
		now := s.session(c)
		if !slices.Equal(sessions, []journal.SessionID{now}) {
			s.t.Errorf("the turn was written by %v, but its creature is in %s", sessions, now)
		}
		counts := map[journal.EventKind]int{}
		for effect, sessions := range a.writers(func(ev *journal.Event) bool { return ev.Turn == id }) {
			if !slices.Equal(sessions, []journal.SessionID{now}) || effect.Origin != id.Origin {
				s.t.Errorf("an effect of the turn %s is %s, written by %v", id, effect, sessions)
			}
		}
		for _, ev := range a.events[now] {
			if ev.Turn == id {
				counts[ev.Kind]++
			}
		}
		sent := counts[journal.EventChannelMessage] + counts[journal.EventDirectMessage] + counts[journal.EventDeadLetter]
		if sent != n || counts[journal.EventOutput] != 1 || counts[journal.EventState] != 1 {
			s.t.Errorf("the effects of the turn are %v, want %d sends, an output and a state", counts, n)
		}
	}
}

func (s *saved) session(c journal.CreatureID) journal.SessionID {
	s.t.Helper()
	for _, g := range s.status() {
		for _, cr := range g.Creatures {
			if cr.ID == c {
				return g.Session
			}
		}
	}
	s.t.Fatalf("no creature %s", c)
	return ""
}

func (s *saved) archive() *archive {
	s.t.Helper()
	a, err := readArchive(s.t.Context(), s.storage)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// sound checks the invariants: the partition, histories, lineages, and every session by
// itself.
func (s *saved) sound(a *archive) {
	s.t.Helper()
	findings := append(partitionFindings(s.status()), a.findings()...)
	for _, info := range a.sessions {
		r, err := s.storage.Verify(s.t.Context(), info.Session)
		if err != nil {
			s.t.Fatal(err)
		}
		findings = slices.Concat(findings, r.Missing, r.Duplicate, r.OutOfOrder, r.Damage)
	}
	if len(findings) > 0 {
		s.t.Errorf("the sessions are not sound: %q", findings)
	}
}
