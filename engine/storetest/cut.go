package storetest

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// cut makes a cut, and gives every child a first record of one event.
func (b *bench) cut(kind journal.CutKind, parents []*writer, children ...journal.CutChild) []*writer {
	b.t.Helper()
	out, err := b.tryCut(b.t.Context(), kind, parents, children...)
	if err != nil {
		b.t.Fatalf("Cut: %v", err)
	}
	return out
}

func (b *bench) tryCut(ctx context.Context, kind journal.CutKind, parents []*writer, children ...journal.CutChild) ([]*writer, error) {
	c := journal.Cut{Kind: kind, At: cutTime.Add(1), Children: children}
	for _, p := range parents {
		c.Parents = append(c.Parents, p.Store)
	}
	for i := range c.Children {
		child := &c.Children[i]
		if child.Durability == journal.Volatile {
			child.Durability = journal.Normal
		}
		if child.First == nil {
			child.First = func(o journal.Origin) *journal.Record {
				return &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: clock.Add(1), Kind: journal.EventTopologyChanged, Graph: child.Graph}}}
			}
		}
	}
	written := make([]uint64, len(c.Children)) // by first records, which need not be durable yet
	for i, child := range c.Children {
		c.Children[i].First = func(o journal.Origin) *journal.Record {
			r := child.First(o)
			if r != nil {
				written[i] = uint64(len(r.Events))
			}
			return r
		}
	}
	stores, err := b.storage.Cut(ctx, c)
	var out []*writer
	for i, s := range stores {
		out = append(out, &writer{s, b.t, written[i]})
	}
	return out, err
}

func ids(js ...*writer) (out []journal.SessionID) {
	for _, j := range js {
		out = append(out, j.Info().Session)
	}
	return out
}

func (b *bench) merge(parents ...*writer) *writer {
	b.t.Helper()
	child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "merged"}, Parents: ids(parents...)}
	child.First = func(journal.Origin) *journal.Record { return &journal.Record{} }
	return b.cut(journal.CutMerge, parents, child)[0]
}

func (b *bench) split(parent *writer) (*writer, *writer) {
	b.t.Helper()
	out := b.cut(journal.CutSplit, []*writer{parent},
		journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "left"}, Parents: ids(parent)},
		journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "right"}, Parents: ids(parent)})
	return out[0], out[1]
}

// cutSplitMerge splits a session, lets both sides continue and merges them. Every event must
// be present once, in order, even after further rounds.
func cutSplitMerge(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{Graph: "root"})
	all := j.messages("c", 1, 50)
	for round := range 3 {
		before := slices.Clone(all)
		left, right := b.split(j)
		// Both sides have the whole history, and their own first event.
		leftEvents, rightEvents := left.history(journal.HistoryQuery{}), right.history(journal.HistoryQuery{})
		equal(t, "history of the left side", leftEvents[:len(leftEvents)-1], before)
		equal(t, "history of the right side", rightEvents[:len(rightEvents)-1], before)
		all = append(all, leftEvents[len(before)], rightEvents[len(before)])
		for i := range 20 {
			all = append(all, left.messages("l", 20*round+i+1, 1)...)
			all = append(all, right.messages("r", 20*round+i+1, 1)...)
		}
		if _, err := j.Messages(t.Context(), "c", 0, 0, 10, 0); err == nil {
			t.Error("the closed store of the parent can still be read")
		}
		frozen, err := b.storage.History(t.Context(), j.Info().Session, journal.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "history of the frozen parent", frozen, before)
		j = b.merge(right, left)
		equal(t, "history after the merge", j.history(journal.HistoryQuery{}), all)
		got, err := j.Messages(t.Context(), "l", 0, 0, 1_000, 0)
		if err != nil || len(got) != 20*(round+1) {
			t.Errorf("%d messages of l, want %d; %v", len(got), 20*(round+1), err)
		}
	}
	j.shut()
	b.restart()
	saved := b.saved()
	if len(saved) != 1 || saved[0].Graph != "merged" {
		t.Fatalf("Saved: %+v", saved)
	}
	j = b.reopen(saved[0].Session)
	equal(t, "history after a restart", j.history(journal.HistoryQuery{}), all)
}

func cutLiveRows(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	rows := everyRow()
	rows.Cursors = append(rows.Cursors, journal.CursorRow{Reader: "b", Channel: "c", Seq: 2, Until: 4}, journal.CursorRow{Reader: "reader:x", Channel: inbox, Seq: 1})
	rows.Producers = append(rows.Producers, journal.ProducerRow{Channel: inbox, Producer: "p", Offset: 4})
	j.put(rows)
	spec := func(g journal.GraphID, first *journal.Record) journal.StoreSpec {
		return journal.StoreSpec{
			Graph: g, Born: 3, Meta: map[string]string{"side": string(g)},
			First: func(journal.Origin) *journal.Record { return first },
		}
	}
	out := b.cut(journal.CutSplit, []*writer{j},
		journal.CutChild{Parents: ids(j), Creatures: []journal.CreatureID{"a"}, Channels: []journal.ChannelID{inbox}, StoreSpec: spec("left", &journal.Record{
			Creatures: rows.Creatures[:1], Cursors: rows.Cursors[:1], Timers: rows.Timers[:2], Requests: rows.Requests[:1], Wires: rows.Wires[:2], Meta: map[string]string{"first": "1"},
		})},
		journal.CutChild{Parents: ids(j), Creatures: []journal.CreatureID{"b"}, Channels: []journal.ChannelID{"c"}, StoreSpec: spec("right", &journal.Record{Heads: rows.Heads[:1]})})
	left, right := out[0], out[1]
	wantState(t, left, "a", map[string][]byte{"k": {0xff}, "empty": {}})
	wantState(t, left, "b", map[string][]byte{})
	wantState(t, right, "b", map[string][]byte{"": []byte("v")})
	wantState(t, right, "a", map[string][]byte{})
	wantLetters(t, left, "", []journal.DeadLetterRow{rows.Letters[0], rows.Letters[2]})
	wantLetters(t, right, "", rows.Letters[1:2])
	wantLeft := savedOf(left, 3, journal.Record{
		Creatures: rows.Creatures[:1],
		Cursors:   []journal.CursorRow{rows.Cursors[0], {Reader: "reader:x", Channel: inbox, Seq: 1}},
		Producers: []journal.ProducerRow{{Channel: inbox, Producer: "p", Offset: 4}},
		Timers:    rows.Timers[:2], Requests: rows.Requests[:1], Wires: rows.Wires[:2],
	}, map[string]string{"side": "left", "first": "1"})
	wantRight := savedOf(right, 3, journal.Record{
		Heads:     rows.Heads[:1],
		Cursors:   []journal.CursorRow{{Reader: "reader:out", Channel: "c", Seq: 1}},
		Producers: rows.Producers[:2],
	}, map[string]string{"side": "right"})
	left.shut()
	right.shut()
	b.restart()
	equal(t, "Saved", b.saved(), []journal.SavedGraph{wantLeft, wantRight})

	// A merge has the rows of both.
	left, right = b.reopen(wantLeft.Session), b.reopen(wantRight.Session)
	merged := b.cut(journal.CutMerge, []*writer{left, right}, journal.CutChild{
		StoreSpec: spec("both", nil), Parents: ids(left, right), Creatures: []journal.CreatureID{"a", "b"}, Channels: []journal.ChannelID{"c", inbox},
	})[0]
	wantState(t, merged, "a", map[string][]byte{"k": {0xff}, "empty": {}})
	wantState(t, merged, "b", map[string][]byte{"": []byte("v")})
	wantLetters(t, merged, "", rows.Letters)
}

// cutLettersOfTheGone cuts a store that has dead letters of creatures that are in none of the
// children. The letters must follow their senders or, without these, stay with the graph,
// through any number of cuts.
func cutLettersOfTheGone(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{Graph: "pond"})
	j.put(everyRow()) // the record has the creatures a and b
	letters := func(names ...[2]journal.CreatureID) (out []journal.DeadLetterRow) {
		for i, n := range names {
			l := letter(n[0], uint64(10+i))
			l.Sender = n[1]
			out = append(out, l)
		}
		return out
	}
	all := letters([2]journal.CreatureID{"gone", "a"}, [2]journal.CreatureID{"gone", "b"}, [2]journal.CreatureID{"gone", "nobody"}, [2]journal.CreatureID{"b", ""}, [2]journal.CreatureID{"b", "a"}, [2]journal.CreatureID{"a", "b"})
	j.put(journal.Record{Letters: all, Drop: journal.Drop{Letters: []journal.EventID{everyRow().Letters[0].ID, everyRow().Letters[1].ID, everyRow().Letters[2].ID}}})
	child := func(g journal.GraphID, parents []journal.SessionID, members ...journal.CreatureID) journal.CutChild {
		return journal.CutChild{StoreSpec: journal.StoreSpec{Graph: g}, Parents: parents, Creatures: members}
	}
	// b is removed by the same change that makes the cut.
	out := b.cut(journal.CutSplit, []*writer{j}, child("left", ids(j), "a"), child("pond", ids(j), "c"))
	wantLetters(t, out[0], "", []journal.DeadLetterRow{all[0], all[4], all[5]})
	wantLetters(t, out[1], "", all[1:4])
	merged := b.cut(journal.CutMerge, out, child("left", ids(out...), "c"))[0] // without a
	wantLetters(t, merged, "", all)
	again := b.cut(journal.CutSplit, []*writer{merged}, child("other", ids(merged), "c"), child("third", ids(merged), "d"))
	wantLetters(t, again[0], "", all)
	wantLetters(t, again[1], "", nil)
}

// cutDeadLetters merges dead letters of stores that number origins differently.
func cutDeadLetters(t T, open Opener) {
	b := newBench(t, open)
	var parents []*writer
	all := map[journal.EventID]journal.DeadLetterRow{}
	for range 3 {
		j := b.create(journal.StoreSpec{})
		for _, other := range parents { // refer to the others' origins, each in its own order
			j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventLog, Cause: journal.EventID{Origin: other.Origin(), Seq: 1}}}})
		}
		for i := range 5 {
			e := j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventDeadLetter}}})[0]
			row := journal.DeadLetterRow{ID: e.ID, Time: e.Time, Creature: "a", Message: e.ID, Payload: []byte{byte(i)}}
			if len(parents) > 0 {
				row.Message = journal.EventID{Origin: parents[0].Origin(), Seq: uint64(i + 1)}
			}
			j.put(journal.Record{Letters: []journal.DeadLetterRow{row}})
			all[e.ID] = row
		}
		parents = append(parents, j)
	}
	merged := b.cut(journal.CutMerge, parents, journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "m"}, Parents: ids(parents...), Creatures: []journal.CreatureID{"a"}})[0]
	rows, err := merged.DeadLetters(t.Context(), "a", journal.EventID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[journal.EventID]journal.DeadLetterRow{}
	last := map[journal.Origin]uint64{}
	for _, row := range rows {
		if row.ID.Seq <= last[row.ID.Origin] {
			t.Errorf("%s follows number %d", row.ID, last[row.ID.Origin])
		}
		got[row.ID], last[row.ID.Origin] = row, row.ID.Seq
	}
	equal(t, "dead letters of the merged store", got, all)
}

func cutFirst(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	j.messages("c", 1, 2)
	left, right := b.split(j)
	for _, side := range []*writer{left, right} {
		if err := side.Wait(t.Context(), 1); err != nil {
			t.Errorf("Wait for the first record: %v", err)
		}
		if side.Durable() != 1 {
			t.Errorf("Durable is %d after a first record of one event", side.Durable())
		}
		last := side.history(journal.HistoryQuery{Newest: true, Limit: 1})[0]
		if last.ID != (journal.EventID{Origin: side.Origin(), Seq: 1}) {
			t.Errorf("the newest event is %s, want the first of origin %s", last.ID, side.Origin())
		}
		side.messages("c", 3, 1)
		side.wait()
	}
	if left.Origin() == right.Origin() {
		t.Error("two children have one origin")
	}
}

func cutLineage(t T, open Opener) {
	b := newBench(t, open)
	one, two := b.create(journal.StoreSpec{Graph: "one"}), b.create(journal.StoreSpec{Graph: "two", Durability: journal.Full})
	a := ids(one, two)
	merged := b.cut(journal.CutMerge, []*writer{one, two}, journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "m", Durability: journal.Full}, Parents: a, VolatileParents: 2})[0]
	left, right := b.split(merged)
	// One cut makes two children: x continues left alone, and y merges both sides.
	out := b.cut(journal.CutRearrange, []*writer{left, right},
		journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "x"}, Parents: ids(left)},
		journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "y"}, Parents: ids(left, right)})
	x, y := ids(out[0])[0], ids(out[1])[0]
	m, l, r := ids(merged)[0], ids(left)[0], ids(right)[0]

	check := func() {
		t.Helper()
		line, err := b.storage.Lineage(t.Context(), y)
		if err != nil {
			t.Fatal(err)
		}
		var got []journal.SessionID
		parents := map[journal.SessionID][]journal.SessionID{}
		for _, i := range line {
			got = append(got, i.Session)
			parents[i.Session] = i.Parents
			merged, split := i.Session == m || i.Session == y, i.Session == l || i.Session == r || i.Session == y
			if (i.MergedAt != 0) != merged || (i.SplitAt != 0) != split {
				t.Errorf("%s: merged at %d, split at %d; want merged %v, split %v", i.Graph, i.MergedAt, i.SplitAt, merged, split)
			}
			if i.Live != (i.Session == y) {
				t.Errorf("%s: live %v", i.Graph, i.Live)
			}
		}
		equal(t, "Lineage", got, []journal.SessionID{y, l, r, m, a[0], a[1]})
		equal(t, "parents", parents, map[journal.SessionID][]journal.SessionID{
			y: {l, r}, l: {m}, r: {m}, m: {a[0], a[1], "volatile", "volatile"}, a[0]: nil, a[1]: nil,
		})
		b.wantSessions(map[journal.SessionID]bool{a[0]: false, a[1]: false, m: false, l: false, r: false, x: true, y: true})
	}
	check()
	b.complete(map[journal.SessionID]bool{x: true, y: true})
	check()
	out[0].shut()
	out[1].shut()
	b.restart()
	check()
}

// cutReferences merges stores whose events refer to each other's origins.
func cutReferences(t T, open Opener) {
	b := newBench(t, open)
	one, two, three := b.create(journal.StoreSpec{}), b.create(journal.StoreSpec{}), b.create(journal.StoreSpec{})
	var all []journal.Event
	last := journal.EventID{Origin: journal.Origin{0xee}, Seq: 1 << 39}
	for range 10 {
		for _, j := range []*writer{one, two, three} {
			events := j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventLog, Turn: last, Cause: last}, {Kind: journal.EventLog, Cause: journal.EventID{Origin: j.Origin(), Seq: j.last + 1}}}})
			all, last = append(all, events...), events[0].ID
		}
	}
	equal(t, "History", b.merge(b.merge(two, three), one).history(journal.HistoryQuery{}), all)
}

// cutQueued cuts while records are still queued.
func cutQueued(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	want := j.messages("c", 1, 1_000)
	equal(t, "History of the child", b.merge(j).history(journal.HistoryQuery{}), want)
}

func cutFails(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	other := newBench(t, open).create(journal.StoreSpec{})
	want := j.messages("c", 1, 5)
	child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: "m"}, Parents: ids(j)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := b.tryCut(t.Context(), "graft", []*writer{j}, child)
	wantCode(t, "an unknown kind", err, abi.InvalidArgument)
	_, err = b.tryCut(t.Context(), journal.CutMerge, []*writer{j, other}, child)
	wantCode(t, "a parent of another directory", err, abi.InvalidArgument)
	_, err = b.tryCut(t.Context(), journal.CutMerge, []*writer{j}, journal.CutChild{Parents: ids(other)})
	wantCode(t, "a child of a store that is not cut", err, abi.InvalidArgument)
	if _, err = b.tryCut(ended, journal.CutMerge, []*writer{j}, child); err == nil {
		t.Error("a cut whose context has ended succeeded")
	}
	broken := child
	broken.First = func(journal.Origin) *journal.Record {
		return &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: journal.Origin{1}, Seq: 1}}}}
	}
	if _, err = b.tryCut(t.Context(), journal.CutSplit, []*writer{j}, child, broken); err == nil {
		t.Error("a cut whose first record is not of the child's origin succeeded")
	}

	// Nothing has changed: the parent continues and there is no other session.
	b.wantSessions(map[journal.SessionID]bool{ids(j)[0]: true})
	want = append(want, j.messages("c", 6, 5)...)
	j.wait()
	equal(t, "History", j.history(journal.HistoryQuery{}), want)
	j.shut()
	b.restart()
	if saved := b.saved(); len(saved) != 1 {
		t.Errorf("%d saved graphs, want 1", len(saved))
	}
}
