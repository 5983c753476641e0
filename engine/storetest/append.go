package storetest

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// awkward are bytes that a store would damage if it treated them as text.
var awkward = [][]byte{nil, {}, {0}, {0xff, 0xfe, 0x00, 0xc3, 0x28}, []byte("plain"), []byte("a\x00b"), make([]byte, 100_000)}

func appendEveryField(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{Durability: journal.Full})
	elsewhere := journal.EventID{Origin: journal.Origin{1, 2, 3}, Seq: 77}
	var want []journal.Event
	for i, b := range awkward {
		want = append(want, j.put(journal.Record{Events: []journal.Event{
			{
				Kind: journal.EventChannelMessage, Graph: "graph", Creature: "creature", Attempt: i, Channel: "channel", Seq: uint64(i + 1),
				Headers: b, Payload: b, Turn: journal.EventID{Origin: j.Origin(), Seq: j.last + 2}, Cause: elsewhere,
			},
			{Kind: journal.EventTurnEnded, Graph: "graph\x00\xff'\"", Creature: "ünï·code", Attempt: 1 << 30, Payload: b, Cause: journal.EventID{Origin: j.Origin(), Seq: j.last + 1}},
		}})...)
	}
	for _, k := range journal.EventKinds() {
		want = append(want, j.put(journal.Record{Events: []journal.Event{{Kind: k}}})...)
	}
	j.wait()
	equal(t, "History", j.history(journal.HistoryQuery{}), want)
}

func appendOrder(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	var want []journal.Event
	for i := range 700 { // more than one group
		r := journal.Record{}
		for range i % 11 {
			r.Events = append(r.Events, journal.Event{Kind: journal.EventLog})
		}
		want = append(want, j.put(r)...)
	}
	equal(t, "History", j.history(journal.HistoryQuery{Limit: 10_000}), want)
	if err := j.Wait(t.Context(), j.last); err != nil {
		t.Fatal(err)
	}
	if j.Durable() != j.last {
		t.Errorf("Durable is %d after Wait(%d)", j.Durable(), j.last)
	}
}

// appendWhole reads while a writer appends. No reader ever sees part of a record.
func appendWhole(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	const records, size = 200, 5
	done := spawn(func() error {
		for range records {
			j.put(journal.Record{Events: make([]journal.Event, size)})
		}
		return nil
	})
	for ended := false; !ended; {
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		if n := len(j.history(journal.HistoryQuery{Limit: records * size})); n%size != 0 {
			t.Fatalf("a reader saw %d events, which is not a multiple of the record size %d", n, size)
		}
	}
	if n := len(j.history(journal.HistoryQuery{Limit: records * size})); n != records*size {
		t.Errorf("%d events, want %d", n, records*size)
	}
}

func closeWrites(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	want := j.messages("c", 1, 300)
	j.shut()
	got, err := b.storage.History(t.Context(), j.Info().Session, journal.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "History of the closed store", got, want)
	if err := j.Wait(t.Context(), j.last); err != nil {
		t.Errorf("Wait for what was written before Close: %v", err)
	}
	wantCode(t, "Wait for more after Close", j.Wait(t.Context(), j.last+1), abi.Stopped)
}
