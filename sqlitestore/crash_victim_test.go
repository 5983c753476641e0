package sqlitestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// progress is a report of the program, as a line of JSON. It announces a change before it is
// made, and reports it afterwards.
type progress struct {
	Word     string // opening, creating, created, cutting, cut, retiring, retired, ok, end, error
	Graph    journal.GraphID
	Origin   string                       // opening: a new origin of the graph; ok: the one of Seq
	Seq      uint64                       // ok: this many events of the origin are durable
	Heads    map[journal.ChannelID]uint64 // ok: and so are these messages
	Kind     string                       // cutting
	At       int64                        // cutting
	Ended    []journal.GraphID            // cutting
	Children []plan                       // creating, cutting
	Text     string                       // error
}

// plan is a graph to be made, and the channels that it will own.
type plan struct {
	Graph    journal.GraphID
	Parents  []journal.GraphID
	Channels []journal.ChannelID
}

// program appends to several stores, and cuts, creates and retires them, at random. Every graph
// has one session, and every channel has one creature that reads it. The rows of a channel and
// its creature follow from the channel's messages.
type program struct {
	ctx        context.Context
	random     *rand.Rand
	durability journal.Durability
	tell       func(progress)
	d          *Directory
	stores     []*member
	clock      int64
}

// member is a store that the program writes to.
type member struct {
	journal.Store
	graph    journal.GraphID
	last     uint64 // number of the last event of its origin
	channels map[journal.ChannelID]*tally
}

// tally is what the reader of a channel has heard.
type tally struct{ n, sum uint64 }

func (t *tally) hear(payload []byte) {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, t.sum)
	_, _ = h.Write(payload)
	t.n, t.sum = t.n+1, h.Sum64()
}

// letterEvery is how often a message also becomes a dead letter.
const letterEvery = 5

func readerOf(c journal.ChannelID) journal.CreatureID { return journal.CreatureID("reader of " + c) }

// payloadOf returns the payload of the event with an id. Its size is up to three pages of a
// file.
func payloadOf(id journal.EventID) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.String()))
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	out := make([]byte, random.IntN(1<<(4+random.IntN(10))))
	for i := 0; i < len(out); i += 8 {
		copy(out[i:], binary.LittleEndian.AppendUint64(nil, random.Uint64()))
	}
	return out
}

// start opens the stores of the directory.
func (p *program) start(dir string, options Options) (err error) {
	if p.d, err = Open(p.ctx, dir, options); err != nil {
		return err
	}
	graphs, problems, err := p.d.Saved(p.ctx)
	if err = errors.Join(append(problems, err)...); err != nil {
		return err
	}
	for _, g := range graphs {
		m := &member{graph: g.Graph, channels: map[journal.ChannelID]*tally{}}
		for _, c := range g.Channels {
			m.channels[c.ID] = &tally{}
		}
		p.clock = max(p.clock, g.LastTime)
		if err := p.open(m, g.Session); err != nil {
			return err
		}
		p.stores = append(p.stores, m)
	}
	return nil
}

// open opens a store and finds out how far its readers have read.
func (p *program) open(m *member, session journal.SessionID) (err error) {
	if m.Store, err = p.d.Open(p.ctx, session); err != nil {
		return err
	}
	m.last = 0
	p.tell(progress{Word: "opening", Graph: m.graph, Origin: m.Origin().String()})
	for c, heard := range m.channels {
		state, err := m.State(p.ctx, readerOf(c))
		if err != nil {
			return err
		}
		if len(state) > 0 {
			heard.n, heard.sum = binary.LittleEndian.Uint64(state["n"]), binary.LittleEndian.Uint64(state["sum"])
		}
	}
	return nil
}

func (p *program) now() int64 {
	p.clock = max(p.clock+1, time.Now().UnixNano())
	return p.clock
}

// run takes a number of steps.
func (p *program) run(steps int) error {
	for range steps {
		if err := p.step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) step() error {
	switch n := p.random.IntN(20); {
	case n < 4:
		return p.cut()
	case n < 6 && len(p.stores) < 4:
		return p.create()
	case n < 6 && len(p.stores) > 2:
		return p.retire(context.Background())
	case n == 6:
		return p.d.Settle(p.ctx)
	case n == 7 && len(p.stores) > 0:
		return p.reopen()
	case len(p.stores) == 0:
		return p.create()
	}
	return p.append(p.stores[p.random.IntN(len(p.stores))])
}

// name is one that nothing else has.
func (p *program) name(what string) string { return fmt.Sprintf("%s-%016x", what, p.random.Uint64()) }

func (p *program) newMember() *member {
	return &member{graph: journal.GraphID(p.name("graph")), channels: map[journal.ChannelID]*tally{}}
}

// create makes one store or several at once.
func (p *program) create() error {
	announced := progress{Word: "creating"}
	var made []*member
	var specs []journal.StoreSpec
	for range 1 + p.random.IntN(3) {
		m := p.newMember()
		made, specs = append(made, m), append(specs, p.specOf(m))
		announced.Children = append(announced.Children, plan{Graph: m.graph})
	}
	p.tell(announced)
	stores, err := p.d.Create(p.ctx, specs...)
	if err != nil {
		return err
	}
	p.tell(progress{Word: "created"})
	for i, s := range stores {
		made[i].Store = s
		p.tell(made[i].ok())
	}
	p.stores = append(p.stores, made...)
	return nil
}

// specOf describes a store that begins with an event about its creation, and with the channels
// of the member.
func (p *program) specOf(m *member) journal.StoreSpec {
	return journal.StoreSpec{Graph: m.graph, Durability: p.durability, First: func(o journal.Origin) *journal.Record {
		p.tell(progress{Word: "opening", Graph: m.graph, Origin: o.String()})
		m.Store = &unborn{origin: o}
		r := &journal.Record{}
		for c := range m.channels {
			m.introduce(r, c)
		}
		p.log(m, r, journal.EventTopologyChanged, "", 0)
		return r
	}}
}

func (p *program) retire(ctx context.Context) error {
	i := p.random.IntN(len(p.stores))
	m := p.stores[i]
	p.stores = slices.Delete(p.stores, i, i+1)
	p.tell(progress{Word: "retiring", Graph: m.graph})
	if err := p.d.Retire(p.ctx, m.Info().Session); err != nil {
		return err
	}
	p.tell(m.ok())
	p.tell(progress{Word: "retired", Graph: m.graph})
	return nil
}

func (p *program) reopen() error {
	m := p.stores[p.random.IntN(len(p.stores))]
	if err := m.Close(p.ctx); err != nil {
		return err
	}
	p.tell(m.ok())
	return p.open(m, m.Info().Session)
}

// ok reports that everything that was appended to the store is durable.
func (m *member) ok() progress {
	out := progress{Word: "ok", Graph: m.graph, Origin: m.Origin().String(), Seq: m.last, Heads: map[journal.ChannelID]uint64{}}
	for c, heard := range m.channels {
		out.Heads[c] = heard.n
	}
	return out
}

// append sends messages, in one record or several, and usually waits for them. Now and then it
// adds a channel.
func (p *program) append(m *member) error {
	for range 1 + p.random.IntN(4) {
		r := &journal.Record{}
		if len(m.channels) == 0 || len(m.channels) < 4 && p.random.IntN(10) == 0 {
			c := journal.ChannelID(p.name("channel"))
			m.channels[c] = &tally{}
			m.introduce(r, c)
		}
		for range 1 + p.random.IntN(3) {
			p.send(m, r)
		}
		m.Append(r)
	}
	if p.random.IntN(3) == 0 {
		return nil
	}
	if err := m.Wait(p.ctx, m.last); err != nil {
		return err
	}
	p.tell(m.ok())
	return nil
}

// introduce adds the rows of a channel and its reader, because a cut does not copy them by
// itself.
func (m *member) introduce(r *journal.Record, c journal.ChannelID) {
	r.Channels = append(r.Channels, journal.ChannelRow{ID: c, Name: string(c)})
	r.Creatures = append(r.Creatures, journal.CreatureRow{ID: readerOf(c), Name: "reader"})
	r.Edges = append(r.Edges, journal.EdgeRow{Creature: readerOf(c), Channel: c, Direction: journal.Listen})
	if heard := m.channels[c]; heard.n > 0 {
		m.proceed(r, c)
	}
}

// proceed adds the rows that say how far a channel and its creature have come.
func (m *member) proceed(r *journal.Record, c journal.ChannelID) {
	n := m.channels[c].n
	r.Heads = append(r.Heads, journal.HeadRow{Channel: c, Seq: n})
	r.Cursors = append(r.Cursors, journal.CursorRow{Reader: journal.ReaderID(readerOf(c)), Channel: c, Seq: n})
	r.Timers = append(r.Timers, journal.TimerRow{Creature: readerOf(c), Name: "t", Due: int64(n)})
}

// send adds a message of any of the store's channels, and its effects on the rows.
func (p *program) send(m *member, r *journal.Record) {
	var names []journal.ChannelID
	for c := range m.channels {
		names = append(names, c)
	}
	slices.Sort(names)
	c := names[p.random.IntN(len(names))]
	heard, reader := m.channels[c], readerOf(c)
	id := p.log(m, r, journal.EventChannelMessage, c, heard.n+1)
	heard.hear(payloadOf(id))
	m.proceed(r, c)
	r.Cursors = append(r.Cursors, journal.CursorRow{Reader: "reader:outside", Channel: c, Seq: heard.n})
	r.Producers = append(r.Producers, journal.ProducerRow{Channel: c, Producer: "p", Offset: heard.n})
	r.State = append(r.State,
		journal.StateRow{Creature: reader, Key: "n", Value: binary.LittleEndian.AppendUint64(nil, heard.n)},
		journal.StateRow{Creature: reader, Key: "sum", Value: binary.LittleEndian.AppendUint64(nil, heard.sum)})
	if heard.n%letterEvery == 0 {
		r.Letters = append(r.Letters, journal.DeadLetterRow{
			ID: p.log(m, r, journal.EventDeadLetter, "", 0), Message: id, Creature: reader, Kind: journal.EventChannelMessage, Channel: c, Seq: heard.n, Reason: "trap",
		})
	}
}

// log adds an event.
func (p *program) log(m *member, r *journal.Record, kind journal.EventKind, c journal.ChannelID, seq uint64) journal.EventID {
	m.last++
	e := journal.Event{ID: journal.EventID{Origin: m.Origin(), Seq: m.last}, Time: p.now(), Kind: kind, Graph: m.graph, Channel: c, Seq: seq}
	e.Payload = payloadOf(e.ID)
	r.Events = append(r.Events, e)
	return e.ID
}

// cut splits a store, merges several or does both, and distributes the channels among the
// children.
func (p *program) cut() error {
	if len(p.stores) == 0 {
		return nil
	}
	p.random.Shuffle(len(p.stores), func(i, j int) { p.stores[i], p.stores[j] = p.stores[j], p.stores[i] })
	n := 1 + p.random.IntN(len(p.stores))
	parents, others := p.stores[:n:n], p.stores[n:]
	kind, children := "merge", 1
	if n == 1 {
		kind, children = "split", 2
	} else if p.random.IntN(3) == 0 {
		kind, children = "rearrange", 2
	}
	made, announced := p.planned(kind, parents, children)
	p.tell(announced)
	stores, err := p.d.Cut(p.ctx, p.cutOf(announced, parents, made))
	if err != nil {
		return err
	}
	p.tell(progress{Word: "cut"})
	for _, m := range parents {
		p.tell(m.ok())
	}
	for i, s := range stores {
		made[i].Store = s
		p.tell(made[i].ok())
	}
	p.stores = append(slices.Clone(others), made...)
	return nil
}

// planned decides what becomes of the parents.
func (p *program) planned(kind string, parents []*member, children int) ([]*member, progress) {
	out := progress{Word: "cutting", Kind: kind, At: p.now()}
	made := make([]*member, children)
	var all []journal.GraphID
	for _, m := range parents {
		all = append(all, m.graph)
	}
	out.Ended = all
	for i := range made {
		made[i] = p.newMember()
		from := all
		if kind == "rearrange" && i > 0 { // one of the parents has only one child
			from = all[1:]
		}
		out.Children = append(out.Children, plan{Graph: made[i].graph, Parents: from})
	}
	for i, m := range parents {
		for c, heard := range m.channels {
			to := p.random.IntN(children)
			if kind == "rearrange" && i == 0 {
				to = 0
			}
			made[to].channels[c] = heard
			out.Children[to].Channels = append(out.Children[to].Channels, c)
		}
	}
	return made, out
}

func (p *program) cutOf(announced progress, parents, made []*member) journal.Cut {
	cut := journal.Cut{Kind: journal.CutKind(announced.Kind), At: announced.At}
	sessions := map[journal.GraphID]journal.SessionID{}
	for _, m := range parents {
		cut.Parents = append(cut.Parents, m.Store)
		sessions[m.graph] = m.Info().Session
	}
	for i, m := range made {
		child := journal.CutChild{StoreSpec: p.specOf(m), Channels: announced.Children[i].Channels}
		for _, g := range announced.Children[i].Parents {
			child.Parents = append(child.Parents, sessions[g])
		}
		for c := range m.channels {
			child.Creatures = append(child.Creatures, readerOf(c))
		}
		cut.Children = append(cut.Children, child)
	}
	return cut
}

// unborn is a store whose origin is known, and nothing else.
type unborn struct {
	journal.Store
	origin journal.Origin
}

func (u *unborn) Origin() journal.Origin { return u.origin }
