package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"pgregory.net/rapid"
)

func testModel(t *testing.T, open Opener) {
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		p := &program{t: r, open: func() journal.Storage { return open(t, dir) }, want: newRows()}
		p.storage = p.open()
		defer func() { p.check(p.storage.Close()) }()
		p.mustOne(p.storage.Create(context.Background(), journal.StoreSpec{Graph: "g", Durability: journal.Normal}))
		r.Repeat(map[string]func(*rapid.T){
			"append": p.append,
			"drop":   p.drop,
			"anew":   p.anew,
			"":       func(*rapid.T) {},
			"read":   p.read,
		})
		p.reopen(r)
	})
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
	t       *rapid.T
	open    func() journal.Storage
	storage journal.Storage
	store   journal.Store
	last    uint64
	want    *rows
}

func (p *program) check(err error) {
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) must(s journal.Store, err error) {
	p.check(err)
	p.store, p.last = s, s.Durable()
}

func (p *program) mustOne(stores []journal.Store, err error) {
	p.check(err)
	p.must(stores[0], nil)
}

var (
	anyCreature = rapid.SampledFrom([]journal.CreatureID{"a", "b", "c"})
	anyChannel  = rapid.SampledFrom([]journal.ChannelID{"x", "y"})
	anyBytes    = rapid.SliceOfN(rapid.Byte(), -1, 40)
	anyKind     = rapid.SampledFrom(journal.EventKinds())
)

func (p *program) append(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "records") {
		r := &journal.Record{}
		for range rapid.IntRange(0, 4).Draw(t, "events") {
			p.last++
			r.Events = append(r.Events, journal.Event{
				ID: journal.EventID{Origin: p.store.Origin(), Seq: p.last}, Time: clock.Add(1), Kind: anyKind.Draw(t, "kind"),
				Creature: anyCreature.Draw(t, "creature"), Channel: anyChannel.Draw(t, "channel"), Payload: anyBytes.Draw(t, "payload"),
			})
		}
		c, ch, n := anyCreature.Draw(t, "creature"), anyChannel.Draw(t, "channel"), rapid.Uint64().Draw(t, "number")
		id := journal.EventID{Origin: p.store.Origin(), Seq: 1 + n%max(p.last, 1)} // few ids, so that some are used again
		switch rapid.IntRange(0, 8).Draw(t, "row") {
		case 0:
			r.Cursors = append(r.Cursors, journal.CursorRow{Reader: journal.ReaderID(c), Channel: ch, Seq: n})
		case 1:
			r.State = append(r.State, journal.StateRow{Creature: c, Key: string(ch), Value: anyBytes.Draw(t, "value"), Deleted: n%3 == 0})
		case 2:
			r.Heads = append(r.Heads, journal.HeadRow{Channel: ch, Seq: n})
		case 3:
			r.Producers = append(r.Producers, journal.ProducerRow{Channel: ch, Producer: string(c), Offset: n})
		case 4:
			r.Edges = append(r.Edges, journal.EdgeRow{Creature: c, Channel: ch, Direction: journal.Send, Order: n})
		case 5:
			r.Timers = append(r.Timers, journal.TimerRow{Creature: c, Name: string(ch), Due: int64(n >> 1), Payload: anyBytes.Draw(t, "payload")})
		case 6:
			r.Requests = append(r.Requests, journal.RequestRow{ID: id, Creature: c, Tag: int64(n)})
		case 7:
			r.Letters = append(r.Letters, journal.DeadLetterRow{ID: id, Creature: c, Message: id, Kind: anyKind.Draw(t, "kind"), Channel: ch, Seq: n})
		case 8:
			r.Wires = append(r.Wires, journal.OutputWire{ID: journal.WireID(ch), From: c, To: journal.ToRoot, Order: n, WithContent: n%2 == 0})
		}
		p.want.apply(r)
		p.store.Append(r)
	}
}

func (p *program) drop(t *rapid.T) {
	r := &journal.Record{}
	creature, channel := anyCreature.Draw(t, "creature"), anyChannel.Draw(t, "channel")
	id := journal.EventID{Origin: p.store.Origin(), Seq: rapid.Uint64Range(1, p.last+1).Draw(t, "id")}
	switch rapid.IntRange(0, 5).Draw(t, "what") {
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

// anew continues with another file or another process. Both take long, and are therefore
// one action among many.
func (p *program) anew(t *rapid.T) {
	if rapid.Bool().Draw(t, "cut") {
		p.cut(t)
	} else {
		p.reopen(t)
	}
}

func (p *program) reopen(*rapid.T) {
	session := p.store.Info().Session
	p.check(p.store.Close(context.Background()))
	p.check(p.storage.Close())
	p.storage = p.open()
	graphs, problems, err := p.storage.Saved(context.Background())
	p.check(err)
	if len(problems) > 0 || len(graphs) != 1 {
		p.t.Fatalf("%d graphs saved; problems: %v", len(graphs), problems)
	}
	p.compare("cursors", sorted(graphs[0].Cursors), sorted(slices.Collect(maps.Values(p.want.cursors))))
	p.compare("heads", sorted(graphs[0].Heads), sorted(slices.Collect(maps.Values(p.want.heads))))
	p.compare("producers", sorted(graphs[0].Producers), sorted(slices.Collect(maps.Values(p.want.producers))))
	p.compare("edges", sorted(graphs[0].Edges), sorted(slices.Collect(maps.Values(p.want.edges))))
	p.compare("timers", sorted(graphs[0].Timers), sorted(slices.Collect(maps.Values(p.want.timers))))
	p.compare("requests", sorted(graphs[0].Requests), sorted(slices.Collect(maps.Values(p.want.requests))))
	p.compare("wires", sorted(graphs[0].Wires), sorted(slices.Collect(maps.Values(p.want.wires))))
	p.compare("the last time", graphs[0].LastTime, p.want.lastTime)
	p.must(p.storage.Open(context.Background(), session))
	p.read(p.t)
}

// cut gives the graph a new store, which must hold the same.
func (p *program) cut(*rapid.T) {
	want, old := p.want, p.store
	stores, err := p.storage.Cut(context.Background(), journal.Cut{Kind: journal.CutSplit, Parents: []journal.Store{old}, Children: []journal.CutChild{{
		Parents: []journal.SessionID{old.Info().Session}, Creatures: []journal.CreatureID{"a", "b", "c"}, Channels: []journal.ChannelID{"x", "y"},
		StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(journal.Origin) *journal.Record {
			return &journal.Record{
				Heads: slices.Collect(maps.Values(want.heads)), Edges: slices.Collect(maps.Values(want.edges)),
				Cursors: slices.Collect(maps.Values(want.cursors)), Timers: slices.Collect(maps.Values(want.timers)),
				Requests: slices.Collect(maps.Values(want.requests)), Wires: slices.Collect(maps.Values(want.wires)),
			}
		}},
	}}})
	p.mustOne(stores, err)
}

func (p *program) read(*rapid.T) {
	events, err := p.store.History(context.Background(), journal.HistoryQuery{Limit: 1 << 20})
	p.check(err)
	p.compare("events", events, p.want.events)
	letters, err := p.store.DeadLetters(context.Background(), "", journal.EventID{}, 1<<20)
	p.check(err)
	p.compare("dead letters", sorted(letters), sorted(slices.Collect(maps.Values(p.want.letters))))
	for _, c := range []journal.CreatureID{"a", "b", "c"} {
		want := map[string][]byte{}
		for _, row := range p.want.state {
			if row.Creature == c {
				want[row.Key] = row.Value
			}
		}
		got, err := p.store.State(context.Background(), c)
		p.check(err)
		p.compare("state of "+string(c), got, want)
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
