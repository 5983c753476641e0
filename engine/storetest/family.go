package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
)

// family is a directory whose stores are cut again and again, and a model of what each
// session must have.
type family struct {
	*bench
	random  *rand.Rand
	all     []*modelSession // oldest first
	heads   map[journal.ChannelID]uint64
	state   map[journal.CreatureID]map[string][]byte
	letters map[journal.CreatureID][]journal.DeadLetterRow
}

// modelSession is a session in the model.
type modelSession struct {
	session   journal.SessionID
	journal   *writer // nil once it has ended
	parents   []*modelSession
	kind      journal.CutKind // of the cut that it came from
	creatures []journal.CreatureID
	events    []journal.Event // in order
}

// creatures are the creatures of a family. Each has its own channel and inbox.
var creatures = []journal.CreatureID{"a", "b", "c", "d", "e", "f", "g", "h"}

func ownChannel(c journal.CreatureID) journal.ChannelID { return journal.ChannelID("of-" + c) }

func newFamily(t T, open Opener, seed uint64) *family {
	return &family{
		bench: newBench(t, open), random: rand.New(rand.NewPCG(seed, 3)), heads: map[journal.ChannelID]uint64{},
		state: map[journal.CreatureID]map[string][]byte{}, letters: map[journal.CreatureID][]journal.DeadLetterRow{},
	}
}

func (f *family) liveSessions() []*modelSession {
	return slices.DeleteFunc(slices.Clone(f.all), func(k *modelSession) bool { return k.journal == nil })
}

// found creates the first store, with some creatures.
func (f *family) found(members ...journal.CreatureID) *modelSession {
	f.t.Helper()
	k := &modelSession{journal: f.create(journal.StoreSpec{}), creatures: members}
	k.session = k.journal.Info().Session
	f.all = append(f.all, k)
	k.journal.put(f.rowsOf(members))
	return k
}

// rowsOf returns the rows of the first record of a store.
func (f *family) rowsOf(members []journal.CreatureID) (r journal.Record) {
	for _, c := range members {
		inbox := journal.InboxOf(c)
		r.Creatures = append(r.Creatures, journal.CreatureRow{ID: c, Name: string(c)})
		r.Channels = append(r.Channels, journal.ChannelRow{ID: ownChannel(c), Name: "own"}, journal.ChannelRow{ID: inbox, Inbox: c})
		r.Heads = append(r.Heads, journal.HeadRow{Channel: ownChannel(c), Seq: f.heads[ownChannel(c)]})
		r.Cursors = append(r.Cursors, journal.CursorRow{Reader: journal.ReaderID(c), Channel: inbox})
	}
	return r
}

// live appends to a store n times: a message and a state value, and now and then a dead letter
// or the removal of one.
func (f *family) live(k *modelSession, n int) {
	f.t.Helper()
	for range n {
		c := k.creatures[f.random.IntN(len(k.creatures))]
		ch := ownChannel(c)
		f.heads[ch]++
		value := fmt.Appendf(nil, "%s %d", k.session, f.random.IntN(1000))
		k.events = append(k.events, k.journal.put(journal.Record{
			Events: []journal.Event{message(ch, f.heads[ch]), {Kind: journal.EventState, Creature: c, Payload: value}},
			Heads:  []journal.HeadRow{{Channel: ch, Seq: f.heads[ch]}},
			State:  []journal.StateRow{{Creature: c, Key: "last", Value: value}},
		})...)
		f.state[c] = map[string][]byte{"last": value}
		switch letters := f.letters[c]; {
		case f.random.IntN(4) == 0:
			ev := k.journal.put(journal.Record{Events: []journal.Event{{Kind: journal.EventDeadLetter, Creature: c}}})[0]
			row := journal.DeadLetterRow{ID: ev.ID, Time: ev.Time, Creature: c, Message: k.events[len(k.events)-2].ID, Payload: value}
			k.journal.put(journal.Record{Letters: []journal.DeadLetterRow{row}})
			k.events, f.letters[c] = append(k.events, ev), append(letters, row)
		case f.random.IntN(4) == 0 && len(letters) > 0:
			k.journal.put(journal.Record{Drop: journal.Drop{Letters: []journal.EventID{letters[0].ID}}})
			f.letters[c] = letters[1:]
		}
	}
}

// cut divides the creatures of some stores into new groups.
func (f *family) cut(parents []*modelSession, groups ...[]journal.CreatureID) []*modelSession {
	f.t.Helper()
	kind := journal.CutRearrange
	switch {
	case len(parents) > 1 && len(groups) == 1:
		kind = journal.CutMerge
	case len(parents) == 1 && len(groups) > 1:
		kind = journal.CutSplit
	}
	var out []*modelSession
	var children []journal.CutChild
	for _, group := range groups {
		child := &modelSession{kind: kind, creatures: slices.Clone(group)}
		for _, p := range parents {
			if slices.ContainsFunc(p.creatures, func(c journal.CreatureID) bool { return slices.Contains(group, c) }) {
				child.inherit(p)
			}
		}
		out, children = append(out, child), append(children, f.cutChild(child))
	}
	var journals []*writer
	for _, p := range parents {
		journals = append(journals, p.journal)
	}
	for i, j := range f.bench.cut(kind, journals, children...) {
		out[i].journal, out[i].session = j, j.Info().Session
		out[i].events[len(out[i].events)-1].ID.Origin = j.Origin()
	}
	for _, p := range parents {
		p.journal = nil
	}
	f.all = append(f.all, out...)
	return out
}

// inherit takes over the events of a parent.
func (k *modelSession) inherit(p *modelSession) {
	k.parents = append(k.parents, p)
	has := map[journal.EventID]bool{}
	for _, ev := range k.events {
		has[ev.ID] = true
	}
	for _, ev := range p.events {
		if !has[ev.ID] {
			k.events = append(k.events, ev)
		}
	}
	slices.SortFunc(k.events, func(a, b journal.Event) int { return cmp.Compare(a.Time, b.Time) })
}

// cutChild describes a child to the storage, and adds its first event to the model.
func (f *family) cutChild(k *modelSession) journal.CutChild {
	ev := journal.Event{ID: journal.EventID{Seq: 1}, Time: clock.Add(1), Kind: journal.EventTopologyChanged, Graph: journal.GraphID(k.creatures[0])}
	k.events = append(k.events, ev)
	child := journal.CutChild{
		Creatures: k.creatures,
		StoreSpec: journal.StoreSpec{Graph: ev.Graph, First: func(o journal.Origin) *journal.Record {
			r := f.rowsOf(k.creatures)
			first := ev
			first.ID.Origin = o
			r.Events = []journal.Event{first}
			return &r
		}},
	}
	for _, p := range k.parents {
		child.Parents = append(child.Parents, p.session)
	}
	for _, c := range k.creatures {
		child.Channels = append(child.Channels, ownChannel(c), journal.InboxOf(c))
	}
	return child
}

// retire ends a store whose graph has ended.
func (f *family) retire(k *modelSession) {
	f.t.Helper()
	if err := f.storage.Retire(f.t.Context(), k.session); err != nil {
		f.t.Fatalf("Retire: %v", err)
	}
	k.journal = nil
}

// restart continues as a new process would.
func (f *family) restart() {
	f.t.Helper()
	live := f.liveSessions()
	for _, k := range live {
		k.journal.shut()
	}
	f.bench.restart()
	want, got := map[journal.SessionID]bool{}, map[journal.SessionID]bool{}
	for _, k := range live {
		want[k.session] = true
	}
	for _, g := range f.saved() {
		got[g.Session] = true
	}
	equal(f.t, "saved sessions", got, want)
	for _, k := range live {
		k.journal = f.reopen(k.session)
	}
}

// complete waits until every live session has its whole history in its own file. A session that
// was cut before may never get it, but its children do.
func (f *family) complete() {
	f.t.Helper()
	ids := map[journal.SessionID]bool{}
	for _, k := range f.liveSessions() {
		ids[k.session] = true
	}
	f.bench.complete(ids)
}

// complete waits until sessions have their whole history in their own files.
func (b *bench) complete(sessions map[journal.SessionID]bool) {
	b.t.Helper()
	waiting := maps.Clone(sessions)
	// Listing the sessions opens every file, which delays the copying.
	pause := time.Millisecond
	for deadline := time.Now().Add(time.Minute); ; pause = min(2*pause, 50*time.Millisecond) {
		infos, err := b.storage.Sessions(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, i := range infos {
			if i.Complete {
				delete(waiting, i.Session)
			}
		}
		if len(waiting) == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("incomplete after a minute: %v", slices.Sorted(maps.Keys(waiting)))
		}
		time.Sleep(pause)
	}
}
