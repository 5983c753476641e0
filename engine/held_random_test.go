package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// crowd is a number of creatures, each of which may send on a channel of its own. The
// turns of all are held while their subscriptions change.
type crowd struct {
	*saved
	*gate
	random  *rand.Rand
	members []*crowdMember
}

type crowdMember struct {
	id      journal.CreatureID
	out     journal.ChannelID // "" once it is removed
	hears   map[*crowdMember]bool
	removed bool
}

const (
	crowdSize  = 6 // how many turns are held at a time
	crowdSeeds = 8 // each takes a tenth of a second or two
)

func TestHeldTurnsInRandomCuts(t *testing.T) {
	for seed := range uint64(crowdSeeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			host := newFakeHost()
			w := &crowd{gate: newGate(host), random: rand.New(rand.NewPCG(seed, 0))}
			host.on("held", w.turn)
			w.saved = newSaved(t, engine.Options{Host: host, Workers: crowdSize})
			t.Cleanup(w.gate.open) // before the engine closes
			w.run()
		})
	}
}

// turn holds messages from outside, and records the senders of all others.
func (w *crowd) turn(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	channel, _ := t.Source(abi.SourceChannel)
	if strings.HasSuffix(string(channel), "-out") {
		heard, _ := t.StateGet([]byte("heard"))
		return codeErr(t, t.StateSet([]byte("heard"), append(append(slices.Clone(heard), channel...), ' ')))
	}
	t.Send(abi.AllChannels, []byte("news"), nil) // if it still has a channel
	w.held <- string(channel)
	<-w.opens
	return nil
}

func (w *crowd) run() {
	w.try(w.settleDown)
	for range w.random.IntN(6) {
		w.step()
	}
	for _, m := range w.members {
		if m.removed {
			continue
		}
		if _, err := w.SendTo(w.t.Context(), m.id, engine.Outgoing{Payload: []byte("held")}); err != nil {
			w.t.Fatal(err)
		}
		w.gate.wait(1)
	}
	held := slices.DeleteFunc(slices.Clone(w.members), func(m *crowdMember) bool { return m.removed })
	for range 1 + w.random.IntN(8) {
		w.step()
	}
	w.gate.open()
	w.saved.wait()
	for range 2 { // and again after a restart
		w.check(held)
		w.reopen()
		w.saved.wait()
	}
}

// settleDown adds the creatures and their channels.
func (w *crowd) settleDown(b *engine.Batch) error {
	for i := range crowdSize {
		name := fmt.Sprintf("m%d", i)
		added, _, err := b.AddCreature(w.t.Context(), spec(name, "held"))
		if err != nil {
			return err
		}
		out, err := b.AddChannel(context.Background(), added.Graph, name+"-out", "")
		if err != nil {
			return err
		}
		m := &crowdMember{id: added.Creature, out: out.Channel, hears: map[*crowdMember]bool{}}
		if _, err = b.Do(context.Background(), topology.SetEdge{Creature: m.id, Channel: m.out, Direction: journal.Send, On: true}); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	return nil
}

// step changes subscriptions, once or several times at once.
func (w *crowd) step() {
	w.try(func(b *engine.Batch) error {
		for range 1 + w.random.IntN(3) {
			if err := w.operate(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *crowd) operate(b *engine.Batch) error {
	from, to := w.members[w.random.IntN(crowdSize)], w.members[w.random.IntN(crowdSize)]
	what := w.random.IntN(20)
	switch {
	case from.removed || to.removed || from.out == "":
		return nil
	case what == 0:
		to.remove()
		_, err := b.Do(context.Background(), topology.RemoveCreature{ID: to.id})
		return err
	case what == 1:
		ch := from.out
		from.out = ""
		_, err := b.Do(context.Background(), topology.RemoveChannel{ID: ch})
		return err
	}
	to.hears[from] = what%3 > 0
	_, err := b.Do(context.Background(), topology.SetEdge{Creature: to.id, Channel: from.out, Direction: journal.Listen, On: to.hears[from]})
	return err
}

// remove notes that a creature was removed. Its channel may outlive it, but gets no more
// messages.
func (m *crowdMember) remove() { m.removed, m.out = true, "" }

// check checks that every creature whose turn was held had it once, in the store of its
// graph as it is now, and that the present listeners received its message.
func (w *crowd) check(held []*crowdMember) {
	all := w.archive()
	if findings := append(partitionFindings(w.status()), all.findings()...); len(findings) > 0 {
		w.t.Fatalf("the sessions are not sound: %q", findings)
	}
	for i, m := range w.members {
		if m.removed {
			continue
		}
		var want []string
		for j, from := range w.members {
			if from != m && m.hears[from] && from.out != "" && slices.Contains(held, from) {
				want = append(want, fmt.Sprintf("m%d-out", j))
			}
		}
		got := strings.Fields(w.state(m.id, "heard"))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			w.t.Fatalf("m%d heard %v, want %v", i, got, want)
		}
		w.checkTurn(all, m.id)
	}
}

func (w *crowd) checkTurn(all *archive, c journal.CreatureID) {
	now := []journal.SessionID{w.session(c)}
	turns := all.writers(func(ev *journal.Event) bool {
		return ev.Kind == journal.EventTurnEnded && ev.Channel == journal.InboxOf(c)
	})
	if len(turns) != 1 {
		w.t.Fatalf("%s had %d turns that were held, want 1", c, len(turns))
	}
	for id, sessions := range turns {
		effects := all.writers(func(ev *journal.Event) bool { return ev.Turn == id })
		for effect, by := range effects {
			if !slices.Equal(by, sessions) || effect.Origin != id.Origin {
				w.t.Fatalf("an effect of the turn %s is %s, written by %v", id, effect, by)
			}
		}
		if !slices.Equal(sessions, now) {
			w.t.Fatalf("the turn of %s was written by %v, but the creature is in %v", c, sessions, now)
		}
	}
}
