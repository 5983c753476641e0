package storetest

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// inbox is the inbox of the creature a.
var inbox = journal.InboxOf("a")

// everyRow is a record with at least two rows of each table.
func everyRow() journal.Record {
	return journal.Record{
		Creatures: []journal.CreatureRow{
			{ID: "a", Name: "ann", Deployment: "d", Address: `creature.x["ann"]`, Born: 1, Parent: "b", Privileged: true, Root: true,
				Module: "builtin:echo", SHA256: "ab", Spec: []byte{0xff, 0}},
			{ID: "b", Name: "bob", Born: 2, Stopped: true, Started: true, Spec: []byte{}},
		},
		Channels: []journal.ChannelRow{
			{ID: "c", Name: "leads", Description: "d", Deployment: "d", Address: "channel.leads", Born: 1, Report: true},
			{ID: inbox, Born: 2, Inbox: "a"},
		},
		Heads:     []journal.HeadRow{{Channel: "c", Seq: 9}, {Channel: inbox, Seq: 1}},
		Edges:     []journal.EdgeRow{{Creature: "a", Channel: "c", Direction: journal.Listen, Alias: "in", Order: 1}, {Creature: "a", Channel: "c", Direction: journal.Send, Alias: "out", Order: 2}, {Creature: "b", Channel: "c", Direction: journal.Send, Order: 3}},
		Cursors:   []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 3, Until: 5, Alias: "in"}, {Reader: "a", Channel: inbox}, {Reader: "reader:out", Channel: "c", Seq: 1}},
		Producers: []journal.ProducerRow{{Channel: "c", Producer: "p", Offset: 1<<64 - 1}, {Channel: "c", Producer: "q", Offset: 1}},
		State:     []journal.StateRow{{Creature: "a", Key: "k", Value: []byte{0xff}}, {Creature: "a", Key: "empty", Value: []byte{}}, {Creature: "b", Key: "", Value: []byte("v")}},
		Timers: []journal.TimerRow{
			{Creature: "a", Name: "", Due: 1, Payload: []byte{}},
			{Creature: "a", Name: "tick", Due: 1 << 60, Period: 1_000, Payload: []byte{0xff, 0}},
			{Creature: "b", Name: "tick", Due: 5},
		},
		Requests: []journal.RequestRow{
			{ID: journal.EventID{Origin: journal.Origin{7}, Seq: 1}, Creature: "a", Tag: -1, Deadline: 1 << 60},
			{ID: journal.EventID{Origin: journal.Origin{7}, Seq: 2}, Creature: "b", Tag: 1<<63 - 1},
		},
		Wires: []journal.OutputWire{
			{ID: "w1", Name: "digest", From: "a", To: "b", WithContent: true, Prompt: "{source}: {output}", When: "done", AllowSelf: true, Order: 1},
			{ID: "w2", From: "a", To: journal.ToRoot, Order: 2},
			{ID: "w3", From: "b", To: "gone", Order: 1},
		},
		Letters: []journal.DeadLetterRow{letter("a", 3), letter("b", 4), {ID: journal.EventID{Origin: journal.Origin{7}, Seq: 5}, Creature: "a"}},
	}
}

// letter is a dead letter with every field.
func letter(creature journal.CreatureID, seq uint64) journal.DeadLetterRow {
	return journal.DeadLetterRow{
		ID: journal.EventID{Origin: journal.Origin{7}, Seq: seq}, Time: int64(seq), Creature: creature,
		Message: journal.EventID{Origin: journal.Origin{8}, Seq: 1 << 39}, Kind: journal.EventTimer, Channel: journal.InboxOf(creature), Seq: 1<<64 - 1,
		Sender: "s", Alias: "out", Reason: "trap", Attempts: 3, Error: "unreachable\x00", LastWords: "ünï·code", Headers: []byte{0xff, 0}, Payload: []byte{},
	}
}

func upsert(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{Graph: "g", Born: 7, Meta: map[string]string{"recipe": "x", "": ""}})
	j.put(everyRow())
	second := everyRow()
	second.Cursors[0].Seq, second.Heads[0].Seq, second.Producers[1].Offset = 8, 99, 12
	second.Creatures[0].Name, second.Channels[0].Name, second.Edges[0].Alias = "anna", "tips", "news"
	second.Timers[1].Due, second.Timers[1].Payload, second.Requests[0].Deadline = 2, nil, 2
	second.Wires[1].To, second.Wires[1].Order, second.Wires[0].Prompt = "b", 3, ""
	second.Letters[0].Reason, second.Letters[0].Message = "deadline", journal.EventID{}
	second.Meta = map[string]string{"recipe": "y", "new": "z"}
	second.State = []journal.StateRow{{Creature: "a", Key: "k", Value: []byte("new")}, {Creature: "b", Key: "", Deleted: true}}
	j.put(second)
	wantState(t, j, "a", map[string][]byte{"k": []byte("new"), "empty": {}})
	wantState(t, j, "b", map[string][]byte{})
	meta := map[string]string{"recipe": "y", "new": "z", "": ""}
	equal(t, "Info().Meta", j.Info().Meta, meta)
	wantLetters(t, j, "", second.Letters)
	wantSaved(t, b, j, savedOf(j, 7, second, meta))
}

func lastWins(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	for i := range uint64(2_000) {
		j.put(journal.Record{
			Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: i}},
			Heads:   []journal.HeadRow{{Channel: "c", Seq: i}, {Channel: "c", Seq: i + 1}},
			State:   []journal.StateRow{{Creature: "a", Key: "k", Value: []byte{byte(i)}}},
		})
	}
	wantState(t, j, "a", map[string][]byte{"k": {1999 & 0xff}})
	wantSaved(t, b, j, savedOf(j, 0, journal.Record{
		Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 1999}}, Heads: []journal.HeadRow{{Channel: "c", Seq: 2000}},
	}, nil))
}

func lastTime(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	events := j.messages("c", 1, 3)
	want := savedOf(j, 0, journal.Record{Heads: []journal.HeadRow{{Channel: "c", Seq: 3}}}, nil)
	want.LastTime = events[2].Time
	wantSaved(t, b, j, want)
}

func liveDrop(t T, open Opener) {
	for _, c := range []struct {
		name string
		drop journal.Drop
		want func(r *journal.Record)
	}{
		{"a creature", journal.Drop{Creatures: []journal.CreatureID{"a"}}, func(r *journal.Record) {
			r.Creatures, r.Cursors, r.Edges, r.State = r.Creatures[1:], r.Cursors[2:], r.Edges[2:], r.State[2:]
			r.Channels, r.Heads, r.Timers, r.Requests = r.Channels[:1], r.Heads[:1], r.Timers[2:], r.Requests[1:]
			r.Wires = r.Wires[2:]
		}},
		{"a channel", journal.Drop{Channels: []journal.ChannelID{"c"}}, func(r *journal.Record) {
			r.Channels, r.Heads, r.Cursors, r.Edges, r.Producers = r.Channels[1:], r.Heads[1:], r.Cursors[1:2], nil, nil
		}},
		{"rows", journal.Drop{
			Edges:   []journal.EdgeRow{{Creature: "a", Channel: "c", Direction: journal.Listen}},
			Cursors: []journal.CursorRow{{Reader: "reader:out", Channel: "c"}},
			Timers:  []journal.TimerRow{{Creature: "a", Name: "tick"}, {Creature: "a", Name: "none"}},
			Wires:   []journal.WireID{"w1", "none"},
		}, func(r *journal.Record) {
			r.Edges, r.Cursors, r.Timers = r.Edges[1:], r.Cursors[:2], slices.Delete(r.Timers, 1, 2)
			r.Wires = r.Wires[1:]
		}},
		{"by id", journal.Drop{
			Requests: []journal.EventID{{Origin: journal.Origin{7}, Seq: 2}, {Origin: journal.Origin{99}, Seq: 1}},
			Letters:  []journal.EventID{{Origin: journal.Origin{7}, Seq: 4}, {Origin: journal.Origin{99}, Seq: 1}},
		}, func(r *journal.Record) {
			r.Requests, r.Letters = r.Requests[:1], slices.Delete(r.Letters, 1, 2)
		}},
	} {
		t := labelled{t, "dropping " + c.name}
		b := newBench(t, open)
		j := b.create(journal.StoreSpec{})
		j.put(everyRow())
		j.put(journal.Record{Drop: c.drop}) // usually in the same group
		want := everyRow()
		c.want(&want)
		states := map[journal.CreatureID]map[string][]byte{"a": {}, "b": {}}
		for _, row := range want.State {
			states[row.Creature][row.Key] = row.Value
		}
		wantState(t, j, "a", states["a"])
		wantState(t, j, "b", states["b"])
		wantLetters(t, j, "", want.Letters)
		// The rows of a record are written after its drops.
		j.put(journal.Record{Drop: c.drop, Heads: []journal.HeadRow{{Channel: "z", Seq: 1}}})
		want.Heads = append(want.Heads, journal.HeadRow{Channel: "z", Seq: 1})
		wantSaved(t, b, j, savedOf(j, 0, want, nil))
	}
}

func wantState(t T, j *writer, creature journal.CreatureID, want map[string][]byte) {
	t.Helper()
	got, err := j.State(t.Context(), creature)
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	equal(t, "State of "+string(creature), got, want)
}

func savedOf(j *writer, born uint64, r journal.Record, meta map[string]string) journal.SavedGraph {
	info := j.Info()
	if meta == nil {
		meta = map[string]string{}
	}
	return journal.SavedGraph{
		Session: info.Session, Graph: info.Graph, Born: born, Durability: info.Durability, Path: info.Path,
		Creatures: r.Creatures, Channels: r.Channels, Heads: r.Heads, Edges: r.Edges, Cursors: r.Cursors, Producers: r.Producers,
		Timers: r.Timers, Requests: r.Requests, Wires: r.Wires, Meta: meta,
	}
}

// wantSaved closes the store and checks what a new process would find.
func wantSaved(t T, b *bench, j *writer, want journal.SavedGraph) {
	t.Helper()
	j.shut()
	b.restart()
	for _, g := range b.saved() {
		if g.Session == want.Session {
			equal(t, "Saved", g, want)
			return
		}
	}
	t.Errorf("session %s is not among the saved ones", want.Session)
}

func wantLetters(t T, j *writer, creature journal.CreatureID, want []journal.DeadLetterRow) {
	t.Helper()
	got, err := j.DeadLetters(t.Context(), creature, journal.EventID{}, 0)
	if err != nil {
		t.Fatalf("DeadLetters: %v", err)
	}
	equal(t, "DeadLetters of "+string(creature), got, want)
}

// deadLetters pages through dead letters of several origins, of all creatures
// and of one.
func deadLetters(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	wantLetters(t, j, "", nil)
	all := map[journal.CreatureID][]journal.DeadLetterRow{}
	for i := range 1_200 {
		if i%500 == 499 { // a new origin
			session := j.Info().Session
			j.shut()
			j = b.reopen(session)
		}
		creature := journal.CreatureID(fmt.Sprint("creature", i%3))
		id := j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventDeadLetter}}})[0].ID
		row := journal.DeadLetterRow{ID: id, Message: id, Creature: creature, Reason: journal.DeadOverflow}
		j.put(journal.Record{Letters: []journal.DeadLetterRow{row}})
		all[creature], all[""] = append(all[creature], row), append(all[""], row)
	}
	for _, creature := range []journal.CreatureID{"", "creature1"} {
		want := all[creature]
		for _, limit := range []int{0, 7, 5_000} {
			var got []journal.DeadLetterRow
			for after := (journal.EventID{}); ; {
				page, err := j.DeadLetters(t.Context(), creature, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				if most := map[int]int{0: 1_000}[limit] + limit; len(page) > most {
					t.Fatalf("a page of %d dead letters, limit %d", len(page), limit)
				}
				got, after = append(got, page...), page[len(page)-1].ID
			}
			equal(t, fmt.Sprintf("all dead letters of %q in pages of %d", creature, limit), got, want)
		}
	}
	gone := all[""][3].ID
	j.put(journal.Record{Drop: journal.Drop{Letters: []journal.EventID{gone}}})
	got, err := j.DeadLetters(t.Context(), "", gone, 2)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "DeadLetters behind one that was dropped", got, all[""][4:6])
	_, err = j.DeadLetters(t.Context(), "", journal.EventID{Origin: journal.Origin{9}, Seq: 9}, 0)
	wantCode(t, "DeadLetters behind an unknown one", err, abi.NotFound)
}
