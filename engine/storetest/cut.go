package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// cut carries out a cut, and gives every child a first record of one event.
func (b *bench) cut(kind string, parents []*journal, children ...engine.CutChild) []*journal {
	b.t.Helper()
	out, err := b.tryCut(b.t.Context(), kind, parents, children...)
	if err != nil {
		b.t.Fatalf("Cut: %v", err)
	}
	return out
}

func (b *bench) tryCut(ctx context.Context, kind string, parents []*journal, children ...engine.CutChild) ([]*journal, error) {
	c := engine.Cut{Kind: kind, At: time.Now().UnixNano(), Children: children}
	for _, p := range parents {
		c.Parents = append(c.Parents, p.Store)
	}
	for i := range c.Children {
		child := &c.Children[i]
		if child.Durability == engine.Volatile {
			child.Durability = engine.Normal
		}
		if child.First == nil {
			child.First = func(o engine.Origin) *engine.Record {
				return &engine.Record{Events: []engine.Event{{ID: engine.EventID{Origin: o, Seq: 1}, Time: clock.Add(1), Kind: engine.EventTopologyChanged, Graph: child.Graph}}}
			}
		}
	}
	stores, err := b.storage.Cut(ctx, c)
	var out []*journal
	for _, s := range stores {
		out = append(out, newJournal(b.t, s))
	}
	return out, err
}

func ids(js ...*journal) (out []engine.SessionID) {
	for _, j := range js {
		out = append(out, j.Info().Session)
	}
	return out
}

func (b *bench) merge(parents ...*journal) *journal {
	b.t.Helper()
	child := engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "merged"}, Parents: ids(parents...)}
	child.First = func(engine.Origin) *engine.Record { return &engine.Record{} }
	return b.cut("merge", parents, child)[0]
}

func (b *bench) split(parent *journal) (*journal, *journal) {
	b.t.Helper()
	out := b.cut("split", []*journal{parent},
		engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "left"}, Parents: ids(parent)},
		engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "right"}, Parents: ids(parent)})
	return out[0], out[1]
}

func testCut(t *testing.T, open Opener) {
	t.Run("SplitMerge", func(t *testing.T) { cutSplitMerge(t, open) })
	t.Run("LiveRows", func(t *testing.T) { cutLiveRows(t, open) })
	t.Run("First", func(t *testing.T) { cutFirst(t, open) })
	t.Run("Lineage", func(t *testing.T) { cutLineage(t, open) })
	t.Run("DeadLetters", func(t *testing.T) { cutDeadLetters(t, open) })
	t.Run("LettersOfTheGone", func(t *testing.T) { cutLettersOfTheGone(t, open) })
	t.Run("References", func(t *testing.T) { cutReferences(t, open) })
	t.Run("Queued", func(t *testing.T) {
		b := newBench(t, open)
		j := b.create(engine.StoreSpec{})
		want := j.messages("c", 1, 1_000) // still queued when the cut begins
		equal(t, "History of the child", b.merge(j).history(engine.HistoryQuery{}), want)
	})
}

// cutSplitMerge divides a history, lets both sides go on and unites them: all
// of it is there once, in order, also after that has happened again.
func cutSplitMerge(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{Graph: "root"})
	all := j.messages("c", 1, 50)
	for round := range 3 {
		before := slices.Clone(all)
		left, right := b.split(j)
		// Both sides carry the whole history and their own first event.
		leftEvents, rightEvents := left.history(engine.HistoryQuery{}), right.history(engine.HistoryQuery{})
		equal(t, "history of the left side", leftEvents[:len(leftEvents)-1], before)
		equal(t, "history of the right side", rightEvents[:len(rightEvents)-1], before)
		all = append(all, leftEvents[len(before)], rightEvents[len(before)])
		for i := range 20 {
			all = append(all, left.messages("l", 20*round+i+1, 1)...)
			all = append(all, right.messages("r", 20*round+i+1, 1)...)
		}
		if _, err := j.Messages(t.Context(), "c", 0, 0, 10, 0); err == nil {
			t.Error("the parent still answers through its closed store")
		}
		frozen, err := b.storage.History(t.Context(), j.Info().Session, engine.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "history of the frozen parent", frozen, before)
		j = b.merge(right, left)
		equal(t, "history after the merge", j.history(engine.HistoryQuery{}), all)
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
	equal(t, "history after a restart", j.history(engine.HistoryQuery{}), all)
}

func cutLiveRows(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{})
	rows := everyRow()
	rows.Cursors = append(rows.Cursors, engine.CursorRow{Reader: "b", Channel: "c", Seq: 2, Until: 4}, engine.CursorRow{Reader: "reader:x", Channel: inbox, Seq: 1})
	rows.Producers = append(rows.Producers, engine.ProducerRow{Channel: inbox, Producer: "p", Offset: 4})
	j.put(rows)
	spec := func(g engine.GraphID, first *engine.Record) engine.StoreSpec {
		return engine.StoreSpec{
			Graph: g, Born: 3, Meta: map[string]string{"side": string(g)},
			First: func(engine.Origin) *engine.Record { return first },
		}
	}
	out := b.cut("split", []*journal{j},
		engine.CutChild{Parents: ids(j), Creatures: []engine.CreatureID{"a"}, Channels: []engine.ChannelID{inbox}, StoreSpec: spec("left", &engine.Record{
			Creatures: rows.Creatures[:1], Cursors: rows.Cursors[:1], Timers: rows.Timers[:2], Requests: rows.Requests[:1], Wires: rows.Wires[:2], Meta: map[string]string{"first": "1"},
		})},
		engine.CutChild{Parents: ids(j), Creatures: []engine.CreatureID{"b"}, Channels: []engine.ChannelID{"c"}, StoreSpec: spec("right", &engine.Record{Heads: rows.Heads[:1]})})
	left, right := out[0], out[1]
	wantState(t, left, "a", map[string][]byte{"k": {0xff}, "empty": {}})
	wantState(t, left, "b", map[string][]byte{})
	wantState(t, right, "b", map[string][]byte{"": []byte("v")})
	wantState(t, right, "a", map[string][]byte{})
	wantLetters(t, left, "", []engine.DeadLetterRow{rows.Letters[0], rows.Letters[2]})
	wantLetters(t, right, "", rows.Letters[1:2])
	wantLeft := savedOf(left, 3, engine.Record{
		Creatures: rows.Creatures[:1],
		Cursors:   []engine.CursorRow{rows.Cursors[0], {Reader: "reader:x", Channel: inbox, Seq: 1}},
		Producers: []engine.ProducerRow{{Channel: inbox, Producer: "p", Offset: 4}},
		Timers:    rows.Timers[:2], Requests: rows.Requests[:1], Wires: rows.Wires[:2],
	}, map[string]string{"side": "left", "first": "1"})
	wantRight := savedOf(right, 3, engine.Record{
		Heads:     rows.Heads[:1],
		Cursors:   []engine.CursorRow{{Reader: "reader:out", Channel: "c", Seq: 1}},
		Producers: rows.Producers[:2],
	}, map[string]string{"side": "right"})
	left.shut()
	right.shut()
	b.restart()
	equal(t, "Saved", b.saved(), []engine.SavedGraph{wantLeft, wantRight})

	// A merge brings both together again.
	left, right = b.reopen(wantLeft.Session), b.reopen(wantRight.Session)
	merged := b.cut("merge", []*journal{left, right}, engine.CutChild{
		StoreSpec: spec("both", nil), Parents: ids(left, right), Creatures: []engine.CreatureID{"a", "b"}, Channels: []engine.ChannelID{"c", inbox},
	})[0]
	wantState(t, merged, "a", map[string][]byte{"k": {0xff}, "empty": {}})
	wantState(t, merged, "b", map[string][]byte{"": []byte("v")})
	wantLetters(t, merged, "", rows.Letters)
}

// cutLettersOfTheGone cuts a store with dead letters of creatures that are in none of
// the children. They go with who sent them or else stay with the graph, through any
// number of cuts.
func cutLettersOfTheGone(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{Graph: "pond"})
	j.put(everyRow()) // has creatures a and b
	letters := func(names ...[2]engine.CreatureID) (out []engine.DeadLetterRow) {
		for i, n := range names {
			l := letter(n[0], uint64(10+i))
			l.Sender = n[1]
			out = append(out, l)
		}
		return out
	}
	all := letters([2]engine.CreatureID{"gone", "a"}, [2]engine.CreatureID{"gone", "b"}, [2]engine.CreatureID{"gone", "nobody"}, [2]engine.CreatureID{"b", ""}, [2]engine.CreatureID{"b", "a"}, [2]engine.CreatureID{"a", "b"})
	j.put(engine.Record{Letters: all, Drop: engine.Drop{Letters: []engine.EventID{everyRow().Letters[0].ID, everyRow().Letters[1].ID, everyRow().Letters[2].ID}}})
	child := func(g engine.GraphID, parents []engine.SessionID, members ...engine.CreatureID) engine.CutChild {
		return engine.CutChild{StoreSpec: engine.StoreSpec{Graph: g}, Parents: parents, Creatures: members}
	}
	// b is removed by the very change that makes the cut.
	out := b.cut("split", []*journal{j}, child("left", ids(j), "a"), child("pond", ids(j), "c"))
	wantLetters(t, out[0], "", []engine.DeadLetterRow{all[0], all[4], all[5]})
	wantLetters(t, out[1], "", all[1:4])
	merged := b.cut("merge", out, child("left", ids(out...), "c"))[0] // without a
	wantLetters(t, merged, "", all)
	again := b.cut("split", []*journal{merged}, child("other", ids(merged), "c"), child("third", ids(merged), "d"))
	wantLetters(t, again[0], "", all)
	wantLetters(t, again[1], "", nil)
}

// cutDeadLetters merges dead letters of stores that number origins differently.
func cutDeadLetters(t *testing.T, open Opener) {
	b := newBench(t, open)
	var parents []*journal
	all := map[engine.EventID]engine.DeadLetterRow{}
	for range 3 {
		j := b.create(engine.StoreSpec{})
		for _, other := range parents { // refer to the others' origins, each in its own order
			j.put(engine.Record{Events: []engine.Event{{Kind: engine.EventLog, Cause: engine.EventID{Origin: other.Origin(), Seq: 1}}}})
		}
		for i := range 5 {
			e := j.put(engine.Record{Events: []engine.Event{{Kind: engine.EventDeadLetter}}})[0]
			row := engine.DeadLetterRow{ID: e.ID, Time: e.Time, Creature: "a", Message: e.ID, Payload: []byte{byte(i)}}
			if len(parents) > 0 {
				row.Message = engine.EventID{Origin: parents[0].Origin(), Seq: uint64(i + 1)}
			}
			j.put(engine.Record{Letters: []engine.DeadLetterRow{row}})
			all[e.ID] = row
		}
		parents = append(parents, j)
	}
	merged := b.cut("merge", parents, engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "m"}, Parents: ids(parents...), Creatures: []engine.CreatureID{"a"}})[0]
	rows, err := merged.DeadLetters(t.Context(), "a", engine.EventID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[engine.EventID]engine.DeadLetterRow{}
	last := map[engine.Origin]uint64{}
	for _, row := range rows {
		if row.ID.Seq <= last[row.ID.Origin] {
			t.Errorf("%s follows number %d", row.ID, last[row.ID.Origin])
		}
		got[row.ID], last[row.ID.Origin] = row, row.ID.Seq
	}
	equal(t, "dead letters of the merged store", got, all)
}

func cutFirst(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{})
	j.messages("c", 1, 2)
	left, right := b.split(j)
	for _, side := range []*journal{left, right} {
		if side.Durable() != 1 {
			t.Errorf("Durable is %d after a first record of one event", side.Durable())
		}
		if err := side.Wait(t.Context(), 1); err != nil {
			t.Errorf("Wait for the first record: %v", err)
		}
		last := side.history(engine.HistoryQuery{Newest: true, Limit: 1})[0]
		if last.ID != (engine.EventID{Origin: side.Origin(), Seq: 1}) {
			t.Errorf("the newest event is %s, want the first of origin %s", last.ID, side.Origin())
		}
		side.messages("c", 3, 1)
		side.wait()
	}
	if left.Origin() == right.Origin() {
		t.Error("two children have one origin")
	}
}

func cutLineage(t *testing.T, open Opener) {
	b := newBench(t, open)
	one, two := b.create(engine.StoreSpec{Graph: "one"}), b.create(engine.StoreSpec{Graph: "two", Durability: engine.Full})
	a := ids(one, two)
	merged := b.cut("merge", []*journal{one, two}, engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "m", Durability: engine.Full}, Parents: a, VolatileParents: 2})[0]
	left, right := b.split(merged)
	// At once: left goes on alone, and both become one.
	out := b.cut("rearrange", []*journal{left, right},
		engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "x"}, Parents: ids(left)},
		engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "y"}, Parents: ids(left, right)})
	x, y := ids(out[0])[0], ids(out[1])[0]
	m, l, r := ids(merged)[0], ids(left)[0], ids(right)[0]

	check := func() {
		t.Helper()
		line, err := b.storage.Lineage(t.Context(), y)
		if err != nil {
			t.Fatal(err)
		}
		var got []engine.SessionID
		parents := map[engine.SessionID][]engine.SessionID{}
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
		equal(t, "Lineage", got, []engine.SessionID{y, l, r, m, a[0], a[1]})
		equal(t, "parents", parents, map[engine.SessionID][]engine.SessionID{
			y: {l, r}, l: {m}, r: {m}, m: {a[0], a[1], "volatile", "volatile"}, a[0]: nil, a[1]: nil,
		})
		b.wantSessions(map[engine.SessionID]bool{a[0]: false, a[1]: false, m: false, l: false, r: false, x: true, y: true})
	}
	check()
	b.complete(map[engine.SessionID]bool{x: true, y: true})
	check()
	out[0].shut()
	out[1].shut()
	b.restart()
	check()
}

// cutReferences merges stores whose events refer to each other's origins.
func cutReferences(t *testing.T, open Opener) {
	b := newBench(t, open)
	one, two, three := b.create(engine.StoreSpec{}), b.create(engine.StoreSpec{}), b.create(engine.StoreSpec{})
	var all []engine.Event
	last := engine.EventID{Origin: engine.Origin{0xee}, Seq: 1 << 39}
	for range 10 {
		for _, j := range []*journal{one, two, three} {
			events := j.put(engine.Record{Events: []engine.Event{{Kind: engine.EventLog, Turn: last, Cause: last}, {Kind: engine.EventLog, Cause: engine.EventID{Origin: j.Origin(), Seq: j.last + 1}}}})
			all, last = append(all, events...), events[0].ID
		}
	}
	equal(t, "History", b.merge(b.merge(two, three), one).history(engine.HistoryQuery{}), all)
}

func testCutFails(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{})
	other := newBench(t, open).create(engine.StoreSpec{})
	want := j.messages("c", 1, 5)
	child := engine.CutChild{StoreSpec: engine.StoreSpec{Graph: "m"}, Parents: ids(j)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := b.tryCut(t.Context(), "graft", []*journal{j}, child)
	wantCode(t, "an unknown kind", err, abi.InvalidArgument)
	_, err = b.tryCut(t.Context(), "merge", []*journal{j, other}, child)
	wantCode(t, "a parent of another directory", err, abi.InvalidArgument)
	_, err = b.tryCut(t.Context(), "merge", []*journal{j}, engine.CutChild{Parents: ids(other)})
	wantCode(t, "a child of a store that is not cut", err, abi.InvalidArgument)
	if _, err = b.tryCut(ended, "merge", []*journal{j}, child); err == nil {
		t.Error("a cut whose context has ended succeeded")
	}
	broken := child
	broken.First = func(engine.Origin) *engine.Record {
		return &engine.Record{Events: []engine.Event{{ID: engine.EventID{Origin: engine.Origin{1}, Seq: 1}}}}
	}
	if _, err = b.tryCut(t.Context(), "split", []*journal{j}, child, broken); err == nil {
		t.Error("a cut whose first record is not of the child's origin succeeded")
	}

	// Nothing has happened: the parent goes on and there is no other session.
	b.wantSessions(map[engine.SessionID]bool{ids(j)[0]: true})
	want = append(want, j.messages("c", 6, 5)...)
	j.wait()
	equal(t, "History", j.history(engine.HistoryQuery{}), want)
	j.shut()
	b.restart()
	if saved := b.saved(); len(saved) != 1 {
		t.Errorf("%d saved graphs, want 1", len(saved))
	}
}
