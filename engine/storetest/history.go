package storetest

import (
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

func messageRanges(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	var want []journal.Event
	for i := 1; i <= 25; i++ {
		want = append(want, j.messages("c", i, 1)...)
		j.messages("other", i, 1)
		j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventDeadLetter, Channel: "c", Seq: uint64(i)}}})
	}
	var inbox []journal.Event // of every kind that is delivered
	for _, k := range journal.EventKinds() {
		seq := uint64(len(inbox) + 1)
		e := j.put(journal.Record{Events: []journal.Event{{Kind: k, Channel: "inbox", Seq: seq, Headers: []byte{}}}})
		if k.IsMessage() {
			inbox = append(inbox, e...)
		}
	}
	for _, c := range []struct {
		channel      journal.ChannelID
		after, until uint64
		limit        int
		want         []journal.Event
	}{
		{"c", 0, 0, 100, want},
		{"c", 0, 0, 10, want[:10]},
		{"c", 10, 0, 10, want[10:20]},
		{"c", 20, 0, 10, want[20:]},
		{"c", 25, 0, 10, nil},
		{"c", 3, 7, 100, want[3:7]},
		{"c", 3, 7, 2, want[3:5]},
		{"c", 7, 7, 2, nil},
		{"c", 7, 3, 2, nil},
		{"inbox", 0, 0, 10, inbox},
		{"none", 0, 0, 10, nil},
	} {
		got, err := j.Messages(t.Context(), c.channel, c.after, c.until, c.limit, 0)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("Messages(%s, %d, %d, %d)", c.channel, c.after, c.until, c.limit), got, c.want)
	}
	size := int64(len(want[0].Payload) + len(want[0].Headers))
	for i, n := range []int64{1, size, size + 1} {
		got, err := j.Messages(t.Context(), "c", 0, 0, 100, n)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("Messages of %d bytes", n), got, want[:max(1, i)])
	}
}

// manyMessages pages through long channels, before and after a restart, a split and a merge. At
// these points a store may change how it finds messages.
func manyMessages(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	channels := []journal.ChannelID{"a", "b", "c"}
	all := map[journal.ChannelID][]journal.Event{}
	more := func(j *writer, n int) {
		for range n {
			for _, c := range channels {
				all[c] = append(all[c], j.messages(c, len(all[c])+1, 1)...)
			}
		}
	}
	check := func(j *writer) {
		t.Helper()
		for _, c := range channels {
			var got []journal.Event
			for after := uint64(0); ; {
				page, err := j.Messages(t.Context(), c, after, 0, 1_000, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				got, after = append(got, page...), page[len(page)-1].Seq
			}
			equal(t, "all messages of "+string(c), got, all[c])
		}
	}
	for range 4 {
		more(j, 600)
		check(j)
	}
	session := j.Info().Session
	j.shut()
	b.restart()
	j = b.reopen(session)
	more(j, 100)
	check(j)
	left, right := b.split(j)
	more(right, 700)
	check(right)
	j = b.merge(left, right)
	more(j, 50)
	check(j)
}

func defaultLimit(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	want := j.put(journal.Record{Events: make([]journal.Event, 1_500)})
	equal(t, "History without a limit", j.history(journal.HistoryQuery{}), want[:1_000])
}

// unknown queries sessions and events that do not exist.
func unknown(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	_, err := j.History(t.Context(), journal.HistoryQuery{After: journal.EventID{Origin: j.Origin(), Seq: 9}})
	wantCode(t, "History after an unknown event", err, abi.NotFound)
	equal(t, "History of an unknown turn", j.history(journal.HistoryQuery{Turn: journal.EventID{Origin: journal.Origin{9}, Seq: 9}}), []journal.Event(nil))
	_, err = b.storage.History(t.Context(), "nowhere", journal.HistoryQuery{})
	wantCode(t, "History of an unknown session", err, abi.NotFound)
	_, err = b.storage.Verify(t.Context(), "nowhere")
	wantCode(t, "Verify of an unknown session", err, abi.NotFound)
	_, err = b.storage.Open(t.Context(), "nowhere")
	wantCode(t, "opening an unknown session", err, abi.NotFound)
	wantCode(t, "retiring an unknown session", b.storage.Retire(t.Context(), "nowhere"), abi.NotFound)
	_, err = b.storage.Lineage(t.Context(), "nowhere")
	wantCode(t, "the lineage of an unknown session", err, abi.NotFound)
}

func historyFilters(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	var all []journal.Event
	for i := range 60 {
		turn := journal.EventID{Origin: j.Origin(), Seq: j.last + 1}
		all = append(all, j.put(journal.Record{Events: []journal.Event{
			{Kind: journal.EventTurnEnded, Creature: journal.CreatureID(fmt.Sprint("creature", i%3))},
			{Kind: journal.EventChannelMessage, Creature: journal.CreatureID(fmt.Sprint("creature", i%3)), Turn: turn, Channel: journal.ChannelID(fmt.Sprint("c", i%2)), Seq: uint64(i/2 + 1)},
		}})...)
	}
	for _, q := range []journal.HistoryQuery{
		{},
		{Kinds: []journal.EventKind{journal.EventTurnEnded}},
		{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventChannelMessage}, Creature: "creature1"},
		{Kinds: []journal.EventKind{journal.EventLog}},
		{Channel: "c1"},
		{Channel: "c1", Kinds: []journal.EventKind{journal.EventChannelMessage}, Creature: "creature2"},
		{Turn: all[40].ID},
		{Creature: "nobody"},
	} {
		for _, newest := range []bool{false, true} {
			for _, limit := range []int{0, 1, 7} {
				q.Newest, q.Limit = newest, limit
				equal(t, fmt.Sprintf("History(%+v)", q), j.history(q), choose(all, q))
			}
		}
	}
}

// choose applies a query to a list that is in order, as History does.
func choose(all []journal.Event, q journal.HistoryQuery) []journal.Event {
	var out []journal.Event
	behind := q.After.IsZero()
	for _, e := range all {
		if behind && fits(e, q) {
			out = append(out, e)
		}
		behind = behind || e.ID == q.After
	}
	limit := q.Limit
	if limit == 0 {
		limit = 1_000
	}
	switch {
	case len(out) <= limit:
		return out
	case q.Newest:
		return out[len(out)-limit:]
	}
	return out[:limit]
}

func fits(e journal.Event, q journal.HistoryQuery) bool {
	kind := len(q.Kinds) == 0
	for _, k := range q.Kinds {
		kind = kind || e.Kind == k
	}
	return kind && (q.Creature == "" || e.Creature == q.Creature) && (q.Channel == "" || e.Channel == q.Channel) &&
		(q.Turn.IsZero() || e.Turn == q.Turn)
}

// historyPages reads a history of several interleaved origins in pages of
// every size, forwards and from the end.
func historyPages(t T, open Opener) {
	b := newBench(t, open)
	left, right := b.create(journal.StoreSpec{}), b.create(journal.StoreSpec{})
	var all []journal.Event
	for i := range 40 {
		j := left
		if i%3 == 0 || i > 30 {
			j = right
		}
		all = append(all, j.messages("c", i+1, 1)...)
	}
	j := b.merge(left, right)
	for size := 1; size <= len(all)+1; size += 3 {
		var got []journal.Event
		for after := (journal.EventID{}); ; {
			page := j.history(journal.HistoryQuery{After: after, Limit: size})
			if len(page) == 0 {
				break
			}
			got, after = append(got, page...), page[len(page)-1].ID
		}
		equal(t, fmt.Sprintf("all pages of %d", size), got, all)
		equal(t, fmt.Sprintf("the newest %d", size), j.history(journal.HistoryQuery{Newest: true, Limit: size}), choose(all, journal.HistoryQuery{Newest: true, Limit: size}))
		q := journal.HistoryQuery{Newest: true, Limit: size, After: all[25].ID, Kinds: []journal.EventKind{journal.EventChannelMessage}}
		equal(t, fmt.Sprintf("the newest %d after the 26th", size), j.history(q), choose(all, q))
	}
}

// historyOwn reads what each session of a family wrote itself, in pages that continue after a
// mark. It reads live sessions, ended ones, and one that was opened again.
func historyOwn(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	session := j.Info().Session
	own := map[journal.SessionID][]journal.Event{session: j.messages("c", 1, 9)}
	j.shut()
	b.restart()
	j = b.reopen(session)
	own[session] = append(own[session], j.messages("c", 10, 9)...)
	left, right := b.split(j)
	for _, side := range []*writer{left, right} {
		first := side.history(journal.HistoryQuery{Newest: true, Limit: 1})
		own[side.Info().Session] = append(first, side.messages("d", 1, 7)...)
	}
	j = b.merge(left, right)
	own[j.Info().Session] = j.messages("c", 19, 5)
	check := func(when string) {
		t.Helper()
		for session, want := range own {
			for _, size := range []int{1, 4, 100} {
				equal(t, fmt.Sprintf("%s: what %s wrote, in pages of %d", when, session, size), b.ownPages(session, size), want)
			}
		}
	}
	check("at once")
	j.shut()
	b.restart()
	check("after a restart")
	last := own[session][8] // of the first origin
	for _, lost := range []journal.Mark{
		{Event: journal.EventID{Origin: journal.Origin{9}, Seq: 4}, Since: last.Time},
		{Event: journal.EventID{Origin: last.ID.Origin, Seq: 1000}, Since: last.Time + 1<<40},
		{Since: last.Time},
	} {
		got, err := b.storage.History(t.Context(), session, journal.HistoryQuery{Own: true, Behind: lost})
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(own[session]), func(ev journal.Event) bool { return lost.Covers(&ev) })
		equal(t, fmt.Sprintf("History behind %v, whose event does not exist", lost), got, want)
	}
}

// ownPages reads what a session wrote itself.
func (b *bench) ownPages(session journal.SessionID, size int) (out []journal.Event) {
	b.t.Helper()
	for mark := (journal.Mark{}); ; {
		page, err := b.storage.History(b.t.Context(), session, journal.HistoryQuery{Own: true, Behind: mark, Limit: size})
		if err != nil {
			b.t.Fatal(err)
		}
		if len(page) == 0 {
			return out
		}
		for i := range page {
			mark = mark.Next(&page[i])
		}
		out = append(out, page...)
	}
}
