package storetest

import (
	"fmt"

	"github.com/seed47132306/terrarium/engine/journal"
)

// wantReport checks what Verify finds. A history that is still being copied is not a
// finding.
func (b *bench) wantReport(session journal.SessionID, want journal.VerifyReport) {
	b.t.Helper()
	want.Session = session
	got, err := b.storage.Verify(b.t.Context(), session)
	if err != nil {
		b.t.Fatalf("Verify: %v", err)
	}
	got.IncompleteFrom = nil
	equal(b.t, "Verify", got, want)
}

// community is a record with a creature, its inbox and a channel.
func community() journal.Record {
	return journal.Record{
		Creatures: []journal.CreatureRow{{ID: "a", Name: "ann"}},
		Channels:  []journal.ChannelRow{{ID: "c", Name: "leads"}, {ID: inbox, Inbox: "a"}},
		Edges:     []journal.EdgeRow{{Creature: "a", Channel: "c", Direction: journal.Listen}},
		Cursors:   []journal.CursorRow{{Reader: "a", Channel: "c"}, {Reader: "a", Channel: inbox}, {Reader: "reader:x", Channel: "c"}},
		State:     []journal.StateRow{{Creature: "a", Key: "k"}},
		Timers:    []journal.TimerRow{{Creature: "a", Name: "t"}},
		Requests:  []journal.RequestRow{{ID: journal.EventID{Origin: journal.Origin{1}, Seq: 1}, Creature: "a"}},
		Wires:     []journal.OutputWire{{ID: "w1", From: "a", To: "gone"}},
	}
}

// verifySound checks a session that is open, one that a cut has ended, its
// children, and all of them in a new process.
func verifySound(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	j.put(community())
	j.messages("c", 1, 5_000)
	j.put(journal.Record{
		Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 5_000}, {Reader: "a", Channel: "c", Seq: 7, Until: 5_000}},
		// The creature of a dead letter may have been removed.
		Letters: []journal.DeadLetterRow{letter("gone", 1)},
	})
	first := j.Info().Session
	b.wantReport(first, journal.VerifyReport{Events: 5_000})
	j.shut()
	j = b.reopen(first)
	j.messages("c", 5_001, 10)
	left, right := b.split(j)
	merged := b.merge(left, right)
	check := func() {
		t.Helper()
		b.wantReport(first, journal.VerifyReport{Events: 5_010})
		b.wantReport(left.Info().Session, journal.VerifyReport{Events: 5_011})
		b.wantReport(merged.Info().Session, journal.VerifyReport{Events: 5_012})
	}
	check()
	merged.shut()
	b.restart()
	check()
}

// verifyUnlogged checks a session into which a graph without a store was merged. Only earlier
// messages of that graph's channels may be missing.
func verifyUnlogged(t T, open Opener) {
	b := newBench(t, open)
	parent := b.create(journal.StoreSpec{})
	at := clock.Add(10)
	first := func(o journal.Origin) *journal.Record {
		r := community()
		for i, seq := range []uint64{4, 6} { // the rest has been delivered
			ev := message("c", seq)
			ev.ID, ev.Time = journal.EventID{Origin: o, Seq: uint64(i + 1)}, at-5+int64(i) // before the cut
			r.Events = append(r.Events, ev)
		}
		r.Heads = []journal.HeadRow{{Channel: "c", Seq: 7}, {Channel: inbox, Seq: 3}}
		return &r
	}
	stores, err := b.storage.Cut(t.Context(), journal.Cut{
		Kind: journal.CutMerge, At: at, Parents: []journal.Store{parent.Store}, Children: []journal.CutChild{{
			StoreSpec: journal.StoreSpec{Durability: journal.Normal, First: first}, Parents: ids(parent), VolatileParents: 1,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := &writer{stores[0], t, 2}
	session := j.Info().Session
	b.wantReport(session, journal.VerifyReport{Events: 2})
	j.messages("c", 8, 2)
	j.messages("c", 11, 1)
	j.wait()
	b.wantReport(session, journal.VerifyReport{Events: 5, Missing: []string{"channel c number 10"}})

	// The same without any graph that has a store.
	j = b.cut(journal.CutRearrange, nil, journal.CutChild{VolatileParents: 1, StoreSpec: journal.StoreSpec{First: first}})[0]
	b.wantReport(j.Info().Session, journal.VerifyReport{Events: 2})
	if p := j.Info().Parents; len(p) != 1 || p[0] != "volatile" {
		t.Errorf("parents %q, want volatile", p)
	}
}

// verifyFindings appends records that an engine would never append.
func verifyFindings(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	o := j.Origin()
	id := func(seq uint64) string { return journal.EventID{Origin: o, Seq: seq}.String() }
	j.put(community())
	j.messages("c", 1, 3)
	j.last += 4 // 4 to 7 are missing
	j.messages("c", 5, 1)
	j.last++
	early := message("c", 6)
	early.Time = 5
	j.put(journal.Record{Events: []journal.Event{early, message("c", 6)}}) // 10, 11
	j.messages("c", 9, 1)
	j.put(journal.Record{
		Heads:    []journal.HeadRow{{Channel: "c", Seq: 11}, {Channel: inbox, Seq: 2}},
		Cursors:  []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 12}, {Reader: "a", Channel: "c", Seq: 1, Until: 13}, {Reader: "ghost", Channel: inbox}, {Reader: "reader:x", Channel: "void"}},
		Edges:    []journal.EdgeRow{{Creature: "ghost", Channel: "c", Direction: journal.Send}, {Creature: "a", Channel: "void", Direction: journal.Send}},
		State:    []journal.StateRow{{Creature: "ghost", Key: "k"}},
		Timers:   []journal.TimerRow{{Creature: "ghost", Name: "t"}},
		Requests: []journal.RequestRow{{ID: journal.EventID{Origin: o, Seq: 1}, Creature: "ghost"}},
		Wires:    []journal.OutputWire{{ID: "w9", From: "ghost", To: "a"}},
	})
	report, err := b.storage.Verify(t.Context(), j.Info().Session)
	if err != nil {
		t.Fatal(err)
	}
	damage := report.Damage
	report.Damage = nil
	equal(t, "Verify", report, journal.VerifyReport{
		Session: j.Info().Session, Events: 7,
		Missing: []string{
			id(4) + " to " + id(7), id(9),
			"channel c number 4", "channel c number 7 to 8", "channel c number 10 to 11", fmt.Sprintf("channel %s number 1 to 2", inbox),
		},
		Duplicate:  []string{"channel c number 6: " + id(10) + " and " + id(11)},
		OutOfOrder: []string{"channel c number 6: " + id(10) + " is not later than " + id(8) + ", number 5"},
	})
	// Two cursors beyond the head, and eight rows whose creature or channel is
	// unknown: two cursors, two edges, a state, a timer, a request and a wire.
	if len(damage) != 10 {
		t.Errorf("damage: %q", damage)
	}
}
