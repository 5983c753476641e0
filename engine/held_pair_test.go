package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func TestARemovedCreaturesHeldTurnLeavesNothing(t *testing.T) {
	for _, alone := range []bool{false, true} { // true: a's graph ends with it
		t.Run(fmt.Sprintf("alone %v", alone), func(t *testing.T) {
			w := newTown(t)
			if alone {
				w.ops(topology.RemoveChannel{ID: w.in}, topology.RemoveChannel{ID: w.out}, topology.RemoveChannel{ID: w.news})
			}
			if _, err := w.SendTo(t.Context(), w.h, engine.Outgoing{Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
			w.gate.wait(1)
			w.change(topology.RemoveCreature{ID: w.h})
			w.gate.open()
			w.saved.wait()
			for range 2 {
				all := w.archive()
				of := func(k journal.EventKind) int {
					return len(all.writers(func(ev *journal.Event) bool { return ev.Kind == k && ev.Creature == w.h && ev.Channel != "" }))
				}
				if turns, letters := of(journal.EventTurnEnded), of(journal.EventDeadLetter); turns != 0 || letters != 1 {
					t.Errorf("h had %d turns and %d dead letters, want none and one", turns, letters)
				}
				w.wantHeard(w.b, "")
				w.wantHeard(w.c, "")
				w.sound(all)
				w.reopen()
				w.saved.wait()
			}
		})
	}
}

// Two turns are held, one on each side of the place where their graph is cut. Each turn's
// effects are in the store of its side, wherever the sides are by then.
func TestHeldTurnsOnBothSidesOfACut(t *testing.T) {
	for _, c := range []struct {
		name   string
		do     func(w *town, k journal.CreatureID, bridge journal.ChannelID)
		graphs int
		y      string // messages that the listener of the other side receives
	}{
		{"split", func(w *town, k journal.CreatureID, bridge journal.ChannelID) {
			w.change(w.off(k, bridge, journal.Listen))
		}, 2, "k-out:2\n"},
		{"split and merge", func(w *town, k journal.CreatureID, bridge journal.ChannelID) {
			w.change(w.off(k, bridge, journal.Listen))
			w.change(w.on(k, bridge, journal.Listen))
		}, 1, "k-out:2\n"},
		{"the bridge goes and the sides swap listeners", func(w *town, k journal.CreatureID, bridge journal.ChannelID) {
			w.ops(topology.RemoveChannel{ID: bridge}, w.off(w.b, w.out, journal.Listen), w.on(w.y, w.out, journal.Listen))
		}, 2, "out:1\nk-out:2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t)
			k := w.add("k", "held")
			w.connect(k, w.y, "k-out")
			bridge := w.connect(w.b, k, "bridge")
			for i, id := range []journal.CreatureID{w.h, k} {
				if _, err := w.SendTo(t.Context(), id, engine.Outgoing{Payload: fmt.Append(nil, i+1)}); err != nil {
					t.Fatal(err)
				}
				w.gate.wait(1)
			}
			c.do(w, k, bridge)
			w.gate.open()
			w.saved.wait()
			for range 2 {
				w.checkPair(k)
				if got := len(w.status()); got != c.graphs {
					t.Errorf("%d graphs, want %d", got, c.graphs)
				}
				if got := w.state(w.y, "heard"); !sameLines(got, c.y) {
					t.Errorf("y heard %q, want %q", got, c.y)
				}
				w.reopen()
				w.saved.wait()
			}
		})
	}
}

func (w *town) checkPair(k journal.CreatureID) {
	w.t.Helper()
	all := w.archive()
	w.wantTurn(all, w.h, 3)
	w.wantTurn(all, k, 2)
	w.sound(all)
}

// sameLines compares texts whose lines may be in any order.
func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
