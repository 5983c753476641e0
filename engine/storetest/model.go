package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// models runs random programs on a store and on a model of it.
func models(t T, open Opener) {
	const programs, steps = 2, 30
	for seed := range programs * seeds(t) {
		t := labelled{t, fmt.Sprintf("seed %d", seed)}
		b := newBench(t, open)
		p := &program{bench: b, random: rand.New(rand.NewPCG(seed, 5)), want: newRows()}
		p.become(b.create(journal.StoreSpec{}))
		for range steps {
			switch n := p.random.IntN(5); n {
			case 0, 1:
				p.append()
			case 2:
				p.drop()
			case 3:
				p.read()
			default: // both take long
				if p.random.IntN(2) == 0 {
					p.cut()
				} else {
					p.reopen()
				}
			}
		}
		p.reopen()
		p.store.shut()
		b.close()
	}
}

// rows are live rows by key.
type rows struct {
	events    []journal.Event
	cursors   map[string]journal.CursorRow
	state     map[string]journal.StateRow
	heads     map[string]journal.HeadRow
	producers map[string]journal.ProducerRow
	edges     map[string]journal.EdgeRow
	timers    map[string]journal.TimerRow
	requests  map[journal.EventID]journal.RequestRow
	wires     map[journal.WireID]journal.OutputWire
	letters   map[journal.EventID]journal.DeadLetterRow
	lastTime  int64
}

func newRows() *rows {
	return &rows{
		cursors: map[string]journal.CursorRow{}, state: map[string]journal.StateRow{}, heads: map[string]journal.HeadRow{},
		producers: map[string]journal.ProducerRow{}, edges: map[string]journal.EdgeRow{},
		timers: map[string]journal.TimerRow{}, requests: map[journal.EventID]journal.RequestRow{}, wires: map[journal.WireID]journal.OutputWire{}, letters: map[journal.EventID]journal.DeadLetterRow{},
	}
}

// program runs random operations on a store and on rows.
type program struct {
	*bench
	random *rand.Rand
	store  *writer
	want   *rows
}

func (p *program) become(j *writer) { p.store = j }

func pick[V any](p *program, list ...V) V { return list[p.random.IntN(len(list))] }

func (p *program) creature() journal.CreatureID { return pick[journal.CreatureID](p, "a", "b", "c") }
func (p *program) channel() journal.ChannelID   { return pick[journal.ChannelID](p, "x", "y") }

func (p *program) bytes() []byte {
	out := make([]byte, p.random.IntN(40))
	for i := range out {
		out[i] = byte(p.random.Uint32())
	}
	return out
}

// number returns a small, a large or an arbitrary number.
func (p *program) number() uint64 {
	return pick(p, p.random.Uint64N(4), p.random.Uint64(), 1<<64-1-p.random.Uint64N(4))
}

// id returns one of a few ids, so that some are used again.
func (p *program) id() journal.EventID {
	return journal.EventID{Origin: p.store.Origin(), Seq: 1 + p.random.Uint64N(p.store.last+1)}
}

func (p *program) append() {
	for range 1 + p.random.IntN(30) {
		r := &journal.Record{}
		for range p.random.IntN(5) {
			r.Events = append(r.Events, journal.Event{Kind: pick(p, journal.EventKinds()...), Creature: p.creature(), Channel: p.channel(), Payload: p.bytes()})
		}
		p.store.stamp(r)
		c, ch, n := p.creature(), p.channel(), p.number()
		switch p.random.IntN(9) {
		case 0:
			r.Cursors = append(r.Cursors, journal.CursorRow{Reader: journal.ReaderID(c), Channel: ch, Seq: n})
		case 1:
			r.State = append(r.State, journal.StateRow{Creature: c, Key: string(ch), Value: p.bytes(), Deleted: n%3 == 0})
		case 2:
			r.Heads = append(r.Heads, journal.HeadRow{Channel: ch, Seq: n})
		case 3:
			r.Producers = append(r.Producers, journal.ProducerRow{Channel: ch, Producer: string(c), Offset: n})
		case 4:
			r.Edges = append(r.Edges, journal.EdgeRow{Creature: c, Channel: ch, Direction: journal.Send, Order: n})
		case 5:
			r.Timers = append(r.Timers, journal.TimerRow{Creature: c, Name: string(ch), Due: int64(n >> 1), Payload: p.bytes()})
		case 6:
			r.Requests = append(r.Requests, journal.RequestRow{ID: p.id(), Creature: c, Tag: int64(n)})
		case 7:
			id := p.id()
			r.Letters = append(r.Letters, journal.DeadLetterRow{ID: id, Creature: c, Message: id, Kind: pick(p, journal.EventKinds()...), Channel: ch, Seq: n})
		case 8:
			r.Wires = append(r.Wires, journal.OutputWire{ID: journal.WireID(ch), From: c, To: journal.ToRoot, Order: n, WithContent: n%2 == 0})
		}
		p.want.apply(r)
		p.store.Append(r)
	}
}

func (p *program) drop() {
	r := &journal.Record{}
	creature, channel, id := p.creature(), p.channel(), p.id()
	switch p.random.IntN(6) {
	case 0:
		r.Drop.Creatures = []journal.CreatureID{creature}
	case 1:
		r.Drop.Channels = []journal.ChannelID{channel}
	case 2:
		r.Drop.Timers = []journal.TimerRow{{Creature: creature, Name: string(channel)}}
	case 3:
		r.Drop.Requests = append(slices.Collect(maps.Keys(p.want.requests)), id)
	case 4:
		r.Drop.Letters = append(slices.Collect(maps.Keys(p.want.letters)), id)
	case 5:
		r.Drop.Wires = []journal.WireID{journal.WireID(channel)}
	}
	p.want.apply(r)
	p.store.Append(r)
}

// reopen continues as a new process would.
func (p *program) reopen() {
	session := p.store.Info().Session
	p.store.shut()
	p.restart()
	graphs := p.saved()
	if len(graphs) != 1 {
		p.t.Fatalf("%d graphs saved", len(graphs))
	}
	p.compare("cursors", sorted(graphs[0].Cursors), sorted(slices.Collect(maps.Values(p.want.cursors))))
	p.compare("heads", sorted(graphs[0].Heads), sorted(slices.Collect(maps.Values(p.want.heads))))
	p.compare("producers", sorted(graphs[0].Producers), sorted(slices.Collect(maps.Values(p.want.producers))))
	p.compare("edges", sorted(graphs[0].Edges), sorted(slices.Collect(maps.Values(p.want.edges))))
	p.compare("timers", sorted(graphs[0].Timers), sorted(slices.Collect(maps.Values(p.want.timers))))
	p.compare("requests", sorted(graphs[0].Requests), sorted(slices.Collect(maps.Values(p.want.requests))))
	p.compare("wires", sorted(graphs[0].Wires), sorted(slices.Collect(maps.Values(p.want.wires))))
	p.compare("the last time", graphs[0].LastTime, p.want.lastTime)
	p.become(p.bench.reopen(session))
	p.read()
}

// cut gives the graph a new store, which must have the same contents.
func (p *program) cut() {
	want := p.want
	p.become(p.bench.cut(journal.CutSplit, []*writer{p.store}, journal.CutChild{
		Parents: ids(p.store), Creatures: []journal.CreatureID{"a", "b", "c"}, Channels: []journal.ChannelID{"x", "y"},
		StoreSpec: journal.StoreSpec{Graph: "g", First: func(journal.Origin) *journal.Record {
			return &journal.Record{
				Heads: slices.Collect(maps.Values(want.heads)), Edges: slices.Collect(maps.Values(want.edges)),
				Cursors: slices.Collect(maps.Values(want.cursors)), Timers: slices.Collect(maps.Values(want.timers)),
				Requests: slices.Collect(maps.Values(want.requests)), Wires: slices.Collect(maps.Values(want.wires)),
			}
		}},
	})[0])
}

func (p *program) read() {
	p.compare("events", p.store.history(journal.HistoryQuery{Limit: everything}), p.want.events)
	letters, err := p.store.DeadLetters(p.t.Context(), "", journal.EventID{}, everything)
	if err != nil {
		p.t.Fatalf("DeadLetters: %v", err)
	}
	p.compare("dead letters", sorted(letters), sorted(slices.Collect(maps.Values(p.want.letters))))
	for _, c := range []journal.CreatureID{"a", "b", "c"} {
		want := map[string][]byte{}
		for _, row := range p.want.state {
			if row.Creature == c {
				want[row.Key] = row.Value
			}
		}
		wantState(p.t, p.store, c, want)
	}
}

func (p *program) compare(what string, got, want any) {
	if diff := difference(got, want); diff != "" {
		p.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// sorted orders a list by its text.
func sorted[R any](list []R) []R {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b R) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

func (w *rows) apply(r *journal.Record) {
	w.events = append(w.events, r.Events...)
	for _, e := range r.Events {
		w.lastTime = max(w.lastTime, e.Time)
	}
	w.drop(&r.Drop)
	for _, row := range r.Cursors {
		w.cursors[fmt.Sprint(row.Reader, " ", row.Channel, " ", row.Until)] = row
	}
	for _, row := range r.State {
		key := string(row.Creature) + " " + row.Key
		if w.state[key] = row; row.Deleted {
			delete(w.state, key)
		}
	}
	for _, row := range r.Heads {
		w.heads[string(row.Channel)] = row
	}
	for _, row := range r.Producers {
		w.producers[string(row.Channel)+" "+row.Producer] = row
	}
	for _, row := range r.Edges {
		w.edges[string(row.Creature)+" "+string(row.Channel)] = row
	}
	for _, row := range r.Timers {
		w.timers[string(row.Creature)+" "+row.Name] = row
	}
	for _, row := range r.Requests {
		w.requests[row.ID] = row
	}
	for _, row := range r.Wires {
		w.wires[row.ID] = row
	}
	for _, row := range r.Letters {
		w.letters[row.ID] = row
	}
}

func (w *rows) drop(d *journal.Drop) {
	for _, c := range d.Creatures {
		maps.DeleteFunc(w.cursors, func(_ string, row journal.CursorRow) bool { return row.Reader == journal.ReaderID(c) })
		maps.DeleteFunc(w.state, func(_ string, row journal.StateRow) bool { return row.Creature == c })
		maps.DeleteFunc(w.edges, func(_ string, row journal.EdgeRow) bool { return row.Creature == c })
		maps.DeleteFunc(w.timers, func(_ string, row journal.TimerRow) bool { return row.Creature == c })
		maps.DeleteFunc(w.requests, func(_ journal.EventID, row journal.RequestRow) bool { return row.Creature == c })
		maps.DeleteFunc(w.wires, func(_ journal.WireID, row journal.OutputWire) bool { return row.From == c })
	}
	for _, c := range d.Channels {
		maps.DeleteFunc(w.cursors, func(_ string, row journal.CursorRow) bool { return row.Channel == c })
		maps.DeleteFunc(w.edges, func(_ string, row journal.EdgeRow) bool { return row.Channel == c })
		maps.DeleteFunc(w.producers, func(_ string, row journal.ProducerRow) bool { return row.Channel == c })
		delete(w.heads, string(c))
	}
	for _, row := range d.Timers {
		delete(w.timers, string(row.Creature)+" "+row.Name)
	}
	for _, id := range d.Wires {
		delete(w.wires, id)
	}
	for _, id := range d.Requests {
		delete(w.requests, id)
	}
	for _, id := range d.Letters {
		delete(w.letters, id)
	}
}
