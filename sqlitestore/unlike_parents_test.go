package sqlitestore

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// childOf describes a child of a cut that has a creature a with state, a channel c, or neither.
func childOf(at int64, creature, channel bool, parents ...journal.Store) journal.CutChild {
	child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(o journal.Origin) *journal.Record {
		r := &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: at, Kind: journal.EventTopologyChanged}}}
		if creature {
			r.Creatures = []journal.CreatureRow{{ID: "a"}}
		}
		if channel {
			r.Channels, r.Heads = []journal.ChannelRow{{ID: "c"}}, []journal.HeadRow{{Channel: "c", Seq: 100}}
		}
		return r
	}}}
	for _, p := range parents {
		child.Parents = append(child.Parents, p.Info().Session)
	}
	if creature {
		child.Creatures = []journal.CreatureID{"a"}
	}
	if channel {
		child.Channels = []journal.ChannelID{"c"}
	}
	return child
}

// parted makes a store of a hundred messages. An outside reader has read forty of them. It
// splits the store: the creature goes into one half, and the channel into the other.
func parted(t *testing.T, d *Directory) (creature, channel journal.Store) {
	t.Helper()
	s := createStore(t, d)
	remember(s, 1, "1")
	for seq := uint64(2); seq <= 101; seq++ {
		s.Append(&journal.Record{
			Events: []journal.Event{{
				ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(seq) * int64(time.Second), Kind: journal.EventChannelMessage,
				Channel: "c", Seq: seq - 1, Payload: make([]byte, 200),
			}},
			Channels: []journal.ChannelRow{{ID: "c"}}, Heads: []journal.HeadRow{{Channel: "c", Seq: seq - 1}},
			Cursors: []journal.CursorRow{{Reader: "reader:x", Channel: "c", Seq: min(seq-1, 40)}},
		})
	}
	at := int64(200 * time.Second)
	halves, err := d.Cut(t.Context(), journal.Cut{Kind: "split", At: at, Parents: []journal.Store{s},
		Children: []journal.CutChild{childOf(at, true, false, s), childOf(at, false, true, s)}})
	if err != nil {
		t.Fatal(err)
	}
	return halves[0], halves[1]
}

// remember writes the state of the creature a.
func remember(s journal.Store, seq uint64, value string) {
	s.Append(&journal.Record{
		Events: []journal.Event{{
			ID: journal.EventID{Origin: s.Origin(), Seq: seq}, Time: int64(200*time.Second)*min(int64(seq)-1, 1) + int64(seq), Kind: journal.EventState,
			Creature: "a", Payload: []byte("k\x00=" + value),
		}},
		Creatures: []journal.CreatureRow{{ID: "a"}}, State: []journal.StateRow{{Creature: "a", Key: "k", Value: []byte(value)}},
	})
}

func united(t *testing.T, d *Directory, parents ...journal.Store) journal.Store {
	t.Helper()
	at := int64(400 * time.Second)
	made, err := d.Cut(t.Context(), journal.Cut{Kind: "merge", At: at, Parents: parents, Children: []journal.CutChild{childOf(at, true, true, parents...)}})
	if err != nil {
		t.Fatal(err)
	}
	return made[0]
}

func wantBacklog(t *testing.T, s journal.Store) {
	t.Helper()
	if unread, err := s.Messages(t.Context(), "c", 40, 0, 0, 0); err != nil || len(unread) != 60 || unread[0].Seq != 41 {
		t.Errorf("%d of 60 messages are left to be read; %v", len(unread), err)
	}
}

// TestCopyForAnotherSession interrupts the copying of what one half of a session keeps. The
// copy is used for the session that both halves are merged into. It lacks the messages that the
// reader in the other half has yet to read, but the reader gets them nevertheless.
func TestCopyForAnotherSession(t *testing.T) {
	var broken atomic.Bool
	reached := func(last failpoint.Point) func(p failpoint.Point, path string) error {
		return func(p failpoint.Point, _ string) error {
			if broken.Load() && p >= last && p <= failpoint.Moved {
				return errDisk
			}
			return nil
		}
	}
	broken.Store(true)
	o := smallChunks(reached(failpoint.TailFollowed))
	o.Retain.Events = 10
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	creature, channel := parted(t, d)
	if err := d.Settle(t.Context()); err == nil {
		t.Fatal("the copying was not interrupted")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(t.Context(), d.dir, smallChunks(reached(failpoint.Noting))); err != nil {
		t.Fatal(err)
	}
	var halves []journal.Store
	for _, was := range []journal.Store{creature, channel} {
		s, err := d.Open(t.Context(), was.Info().Session)
		if err != nil {
			t.Fatal(err)
		}
		halves = append(halves, s)
	}
	whole := united(t, d, halves...)
	wantBacklog(t, whole)
	broken.Store(false)
	settle(t, d)
	wantBacklog(t, whole)
	wantSound(t, d, whole.Info().Session)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMergeOfUnlikePasts merges the halves of a session after one of them was pruned and has
// written a state. The other half has an older value of that state in its log. All messages
// that are still to be read exist, the session is sound, and a fork at its newest cursor has
// the same state: before the histories are in one file, and afterwards.
func TestMergeOfUnlikePasts(t *testing.T) {
	for _, pruned := range []int{0, 1} {
		t.Run(fmt.Sprint(pruned), func(t *testing.T) {
			d, err := Open(t.Context(), t.TempDir(), smallChunks(nil))
			if err != nil {
				t.Fatal(err)
			}
			creature, channel := parted(t, d)
			halves := []journal.Store{creature, channel}
			remember(creature, 2, "2")
			for seq := uint64(3); seq <= 5; seq++ {
				creature.Append(&journal.Record{Events: []journal.Event{{
					ID: journal.EventID{Origin: creature.Origin(), Seq: seq}, Time: int64(200*time.Second) + int64(seq), Kind: journal.EventTopologyChanged,
				}}})
			}
			if r, err := d.Prune(t.Context(), halves[pruned].Info().Session, Retention{Events: 2}); err != nil || r.Given == 0 {
				t.Fatalf("Prune: %+v, %v", r, err)
			}
			whole := united(t, d, halves...)
			for range 2 {
				wantBacklog(t, whole)
				wantSound(t, d, whole.Info().Session)
				wantForkState(t, d, whole)
				settle(t, d)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// wantForkState checks the state of a fork at the newest cursor.
func wantForkState(t *testing.T, d *Directory, s journal.Store) {
	t.Helper()
	s.Append(&journal.Record{Meta: map[string]string{"k": "v"}}) // so that the rows are recorded
	dir := filepath.Join(t.TempDir(), "fork")
	mark := journal.Mark{Event: journal.EventID{Origin: s.Origin(), Seq: 1}, Since: int64(400 * time.Second)}
	fork, _, err := d.ForkAt(t.Context(), s.Info().Session, mark, dir)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := mustView(t, dir).State(t.Context(), fork, "a"); err != nil || string(state["k"]) != "2" {
		t.Errorf("the fork has the state %q, %v", state, err)
	}
}
