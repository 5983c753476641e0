package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// inbox is that of the creature a.
var inbox = engine.InboxOf("a")

// everyRow is a record with at least two rows of each table.
func everyRow() engine.Record {
	return engine.Record{
		Creatures: []engine.CreatureRow{
			{ID: "a", Name: "ann", Deployment: "d", Address: `creature.x["ann"]`, Born: 1, Parent: "b", Privileged: true, Root: true,
				Module: "builtin:echo", SHA256: "ab", Spec: []byte{0xff, 0}},
			{ID: "b", Name: "bob", Born: 2, Stopped: true, Started: true, Spec: []byte{}},
		},
		Channels: []engine.ChannelRow{
			{ID: "c", Name: "leads", Description: "d", Deployment: "d", Address: "channel.leads", Born: 1, Report: true},
			{ID: inbox, Born: 2, Inbox: "a"},
		},
		Heads:     []engine.HeadRow{{Channel: "c", Seq: 9}, {Channel: inbox, Seq: 1}},
		Edges:     []engine.EdgeRow{{Creature: "a", Channel: "c", Direction: engine.Listen, Alias: "in", Order: 1}, {Creature: "a", Channel: "c", Direction: engine.Send, Alias: "out", Order: 2}, {Creature: "b", Channel: "c", Direction: engine.Send, Order: 3}},
		Cursors:   []engine.CursorRow{{Reader: "a", Channel: "c", Seq: 3, Until: 5, Alias: "in"}, {Reader: "a", Channel: inbox}, {Reader: "reader:out", Channel: "c", Seq: 1}},
		Producers: []engine.ProducerRow{{Channel: "c", Producer: "p", Offset: 1<<64 - 1}, {Channel: "c", Producer: "q", Offset: 1}},
		State:     []engine.StateRow{{Creature: "a", Key: "k", Value: []byte{0xff}}, {Creature: "a", Key: "empty", Value: []byte{}}, {Creature: "b", Key: "", Value: []byte("v")}},
		Timers: []engine.TimerRow{
			{Creature: "a", Name: "", Due: 1, Payload: []byte{}},
			{Creature: "a", Name: "tick", Due: 1 << 60, Period: 1_000, Payload: []byte{0xff, 0}},
			{Creature: "b", Name: "tick", Due: 5},
		},
		Requests: []engine.RequestRow{
			{ID: engine.EventID{Origin: engine.Origin{7}, Seq: 1}, Creature: "a", Tag: -1, Deadline: 1 << 60},
			{ID: engine.EventID{Origin: engine.Origin{7}, Seq: 2}, Creature: "b", Tag: 1<<63 - 1},
		},
		Wires: []engine.OutputWire{
			{ID: "w1", Name: "digest", From: "a", To: "b", WithContent: true, Prompt: "{source}: {output}", When: "done", AllowSelf: true, Order: 1},
			{ID: "w2", From: "a", To: engine.ToRoot, Order: 2},
			{ID: "w3", From: "b", To: "gone", Order: 1},
		},
		Letters: []engine.DeadLetterRow{letter("a", 3), letter("b", 4), {ID: engine.EventID{Origin: engine.Origin{7}, Seq: 5}, Creature: "a"}},
	}
}

// letter is a dead letter with every field.
func letter(creature engine.CreatureID, seq uint64) engine.DeadLetterRow {
	return engine.DeadLetterRow{
		ID: engine.EventID{Origin: engine.Origin{7}, Seq: seq}, Time: int64(seq), Creature: creature,
		Message: engine.EventID{Origin: engine.Origin{8}, Seq: 1 << 39}, Kind: engine.EventTimer, Channel: engine.InboxOf(creature), Seq: 1<<64 - 1,
		Sender: "s", Alias: "out", Reason: "trap", Attempts: 3, Error: "unreachable\x00", LastWords: "ünï·code", Headers: []byte{0xff, 0}, Payload: []byte{},
	}
}

func testLive(t *testing.T, open Opener) {
	t.Run("Upsert", func(t *testing.T) {
		b := newBench(t, open)
		j := b.create(engine.StoreSpec{Graph: "g", Born: 7, Meta: map[string]string{"recipe": "x", "": ""}})
		j.put(everyRow())
		second := everyRow()
		second.Cursors[0].Seq, second.Heads[0].Seq, second.Producers[1].Offset = 8, 99, 12
		second.Creatures[0].Name, second.Channels[0].Name, second.Edges[0].Alias = "anna", "tips", "news"
		second.Timers[1].Due, second.Timers[1].Payload, second.Requests[0].Deadline = 2, nil, 2
		second.Wires[1].To, second.Wires[1].Order, second.Wires[0].Prompt = "b", 3, ""
		second.Letters[0].Reason, second.Letters[0].Message = "deadline", engine.EventID{}
		second.Meta = map[string]string{"recipe": "y", "new": "z"}
		second.State = []engine.StateRow{{Creature: "a", Key: "k", Value: []byte("new")}, {Creature: "b", Key: "", Deleted: true}}
		j.put(second)
		wantState(t, j, "a", map[string][]byte{"k": []byte("new"), "empty": {}})
		wantState(t, j, "b", map[string][]byte{})
		meta := map[string]string{"recipe": "y", "new": "z", "": ""}
		equal(t, "Info().Meta", j.Info().Meta, meta)
		wantLetters(t, j, "", second.Letters)
		wantSaved(t, b, j, savedOf(j, 7, second, meta))
	})
	t.Run("LastWins", func(t *testing.T) {
		b := newBench(t, open)
		j := b.create(engine.StoreSpec{})
		for i := range uint64(2_000) {
			j.put(engine.Record{
				Cursors: []engine.CursorRow{{Reader: "a", Channel: "c", Seq: i}},
				Heads:   []engine.HeadRow{{Channel: "c", Seq: i}, {Channel: "c", Seq: i + 1}},
				State:   []engine.StateRow{{Creature: "a", Key: "k", Value: []byte{byte(i)}}},
			})
		}
		wantState(t, j, "a", map[string][]byte{"k": {1999 & 0xff}})
		wantSaved(t, b, j, savedOf(j, 0, engine.Record{
			Cursors: []engine.CursorRow{{Reader: "a", Channel: "c", Seq: 1999}}, Heads: []engine.HeadRow{{Channel: "c", Seq: 2000}},
		}, nil))
	})
	t.Run("Drop", func(t *testing.T) { liveDrop(t, open) })
	t.Run("DeadLetters", func(t *testing.T) { deadLetters(t, open) })
	t.Run("LastTime", func(t *testing.T) {
		b := newBench(t, open)
		j := b.create(engine.StoreSpec{})
		events := j.messages("c", 1, 3)
		want := savedOf(j, 0, engine.Record{Heads: []engine.HeadRow{{Channel: "c", Seq: 3}}}, nil)
		want.LastTime = events[2].Time
		wantSaved(t, b, j, want)
	})
}

func liveDrop(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		drop engine.Drop
		want func(r *engine.Record)
	}{
		{"Creature", engine.Drop{Creatures: []engine.CreatureID{"a"}}, func(r *engine.Record) {
			r.Creatures, r.Cursors, r.Edges, r.State = r.Creatures[1:], r.Cursors[2:], r.Edges[2:], r.State[2:]
			r.Channels, r.Heads, r.Timers, r.Requests = r.Channels[:1], r.Heads[:1], r.Timers[2:], r.Requests[1:]
			r.Wires = r.Wires[2:]
		}},
		{"Channel", engine.Drop{Channels: []engine.ChannelID{"c"}}, func(r *engine.Record) {
			r.Channels, r.Heads, r.Cursors, r.Edges, r.Producers = r.Channels[1:], r.Heads[1:], r.Cursors[1:2], nil, nil
		}},
		{"Rows", engine.Drop{
			Edges:   []engine.EdgeRow{{Creature: "a", Channel: "c", Direction: engine.Listen}},
			Cursors: []engine.CursorRow{{Reader: "reader:out", Channel: "c"}},
			Timers:  []engine.TimerRow{{Creature: "a", Name: "tick"}, {Creature: "a", Name: "none"}},
			Wires:   []engine.WireID{"w1", "none"},
		}, func(r *engine.Record) {
			r.Edges, r.Cursors, r.Timers = r.Edges[1:], r.Cursors[:2], slices.Delete(r.Timers, 1, 2)
			r.Wires = r.Wires[1:]
		}},
		{"ByID", engine.Drop{
			Requests: []engine.EventID{{Origin: engine.Origin{7}, Seq: 2}, {Origin: engine.Origin{99}, Seq: 1}},
			Letters:  []engine.EventID{{Origin: engine.Origin{7}, Seq: 4}, {Origin: engine.Origin{99}, Seq: 1}},
		}, func(r *engine.Record) {
			r.Requests, r.Letters = r.Requests[:1], slices.Delete(r.Letters, 1, 2)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, open)
			j := b.create(engine.StoreSpec{})
			j.put(everyRow())
			j.put(engine.Record{Drop: c.drop}) // in the same group, as a rule
			want := everyRow()
			c.want(&want)
			states := map[engine.CreatureID]map[string][]byte{"a": {}, "b": {}}
			for _, row := range want.State {
				states[row.Creature][row.Key] = row.Value
			}
			wantState(t, j, "a", states["a"])
			wantState(t, j, "b", states["b"])
			wantLetters(t, j, "", want.Letters)
			// Rows of the record that drops are written after the drop.
			j.put(engine.Record{Drop: c.drop, Heads: []engine.HeadRow{{Channel: "z", Seq: 1}}})
			want.Heads = append(want.Heads, engine.HeadRow{Channel: "z", Seq: 1})
			wantSaved(t, b, j, savedOf(j, 0, want, nil))
		})
	}
}

func wantState(t *testing.T, j *journal, creature engine.CreatureID, want map[string][]byte) {
	t.Helper()
	got, err := j.State(t.Context(), creature)
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	equal(t, "State of "+string(creature), got, want)
}

func savedOf(j *journal, born uint64, r engine.Record, meta map[string]string) engine.SavedGraph {
	info := j.Info()
	if meta == nil {
		meta = map[string]string{}
	}
	return engine.SavedGraph{
		Session: info.Session, Graph: info.Graph, Born: born, Durability: info.Durability, Path: info.Path,
		Creatures: r.Creatures, Channels: r.Channels, Heads: r.Heads, Edges: r.Edges, Cursors: r.Cursors, Producers: r.Producers,
		Timers: r.Timers, Requests: r.Requests, Wires: r.Wires, Meta: meta,
	}
}

// wantSaved closes the store and compares what a new process would find.
func wantSaved(t *testing.T, b *bench, j *journal, want engine.SavedGraph) {
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

func wantLetters(t *testing.T, j *journal, creature engine.CreatureID, want []engine.DeadLetterRow) {
	t.Helper()
	got, err := j.DeadLetters(t.Context(), creature, engine.EventID{}, 0)
	if err != nil {
		t.Fatalf("DeadLetters: %v", err)
	}
	equal(t, "DeadLetters of "+string(creature), got, want)
}

// deadLetters pages through dead letters of several origins, of all creatures
// and of one.
func deadLetters(t *testing.T, open Opener) {
	b := newBench(t, open)
	j := b.create(engine.StoreSpec{})
	wantLetters(t, j, "", nil)
	all := map[engine.CreatureID][]engine.DeadLetterRow{}
	for i := range 1_200 {
		if i%500 == 499 { // a new origin
			session := j.Info().Session
			j.shut()
			j = b.reopen(session)
		}
		creature := engine.CreatureID(fmt.Sprint("creature", i%3))
		id := j.put(engine.Record{Events: []engine.Event{{Kind: engine.EventDeadLetter}}})[0].ID
		row := engine.DeadLetterRow{ID: id, Message: id, Creature: creature, Reason: "overflow"}
		j.put(engine.Record{Letters: []engine.DeadLetterRow{row}})
		all[creature], all[""] = append(all[creature], row), append(all[""], row)
	}
	for _, creature := range []engine.CreatureID{"", "creature1"} {
		want := all[creature]
		for _, limit := range []int{0, 7, 5_000} {
			var got []engine.DeadLetterRow
			for after := (engine.EventID{}); ; {
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
				// Going on behind one that is gone meanwhile is possible.
				got, after = append(got, page...), page[len(page)-1].ID
			}
			equal(t, fmt.Sprintf("all dead letters of %q in pages of %d", creature, limit), got, want)
		}
	}
	gone := all[""][3].ID
	j.put(engine.Record{Drop: engine.Drop{Letters: []engine.EventID{gone}}})
	got, err := j.DeadLetters(t.Context(), "", gone, 2)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "DeadLetters behind one that is gone", got, all[""][4:6])
	_, err = j.DeadLetters(t.Context(), "", engine.EventID{Origin: engine.Origin{9}, Seq: 9}, 0)
	wantCode(t, "DeadLetters behind an unknown one", err, abi.NotFound)
}
