package storetest

import (
	"testing"

	"github.com/seed47132306/terrarium/engine"
)

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
			{ID: "i", Born: 2, Inbox: "a"},
		},
		Heads:     []engine.HeadRow{{Channel: "c", Seq: 9}, {Channel: "i", Seq: 1}},
		Edges:     []engine.EdgeRow{{Creature: "a", Channel: "c", Direction: engine.Listen, Alias: "in", Order: 1}, {Creature: "a", Channel: "c", Direction: engine.Send, Alias: "out", Order: 2}, {Creature: "b", Channel: "c", Direction: engine.Send, Order: 3}},
		Cursors:   []engine.CursorRow{{Reader: "a", Channel: "c", Seq: 3, Until: 5, Alias: "in"}, {Reader: "a", Channel: "i"}, {Reader: "reader:out", Channel: "c", Seq: 1}},
		Producers: []engine.ProducerRow{{Channel: "c", Producer: "p", Offset: 1<<64 - 1}, {Channel: "c", Producer: "q", Offset: 1}},
		State:     []engine.StateRow{{Creature: "a", Key: "k", Value: []byte{0xff}}, {Creature: "a", Key: "empty", Value: []byte{}}, {Creature: "b", Key: "", Value: []byte("v")}},
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
		second.Meta = map[string]string{"recipe": "y", "new": "z"}
		second.State = []engine.StateRow{{Creature: "a", Key: "k", Value: []byte("new")}, {Creature: "b", Key: "", Deleted: true}}
		j.put(second)
		wantState(t, j, "a", map[string][]byte{"k": []byte("new"), "empty": {}})
		wantState(t, j, "b", map[string][]byte{})
		meta := map[string]string{"recipe": "y", "new": "z", "": ""}
		equal(t, "Info().Meta", j.Info().Meta, meta)
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
}

func liveDrop(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		drop engine.Drop
		want func(r *engine.Record)
	}{
		{"Creature", engine.Drop{Creatures: []engine.CreatureID{"a"}}, func(r *engine.Record) {
			r.Creatures, r.Cursors, r.Edges, r.State = r.Creatures[1:], r.Cursors[2:], r.Edges[2:], r.State[2:]
		}},
		{"Channel", engine.Drop{Channels: []engine.ChannelID{"c"}}, func(r *engine.Record) {
			r.Channels, r.Heads, r.Cursors, r.Edges, r.Producers = r.Channels[1:], r.Heads[1:], r.Cursors[1:2], nil, nil
		}},
		{"Rows", engine.Drop{
			Edges:   []engine.EdgeRow{{Creature: "a", Channel: "c", Direction: engine.Listen}},
			Cursors: []engine.CursorRow{{Reader: "reader:out", Channel: "c"}},
		}, func(r *engine.Record) { r.Edges, r.Cursors = r.Edges[1:], r.Cursors[:2] }},
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
		Creatures: r.Creatures, Channels: r.Channels, Heads: r.Heads, Edges: r.Edges, Cursors: r.Cursors, Producers: r.Producers, Meta: meta,
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
