package storetest

import (
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// createSeveral makes several stores at once, with and without a first record.
func createSeveral(t T, open Opener) {
	b := newBench(t, open)
	first := func(o journal.Origin) *journal.Record {
		r := community()
		r.Events = []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: clock.Add(1), Kind: journal.EventTopologyChanged, Graph: "a"}}
		r.Meta = map[string]string{"first": "1"}
		return &r
	}
	js := b.createAll(
		journal.StoreSpec{Graph: "a", Born: 1, Durability: journal.Full, Meta: map[string]string{"k": "v"}, First: first},
		journal.StoreSpec{Graph: "b", Born: 2, First: func(journal.Origin) *journal.Record { return nil }},
		journal.StoreSpec{Graph: "c", Born: 3})
	for i, j := range js {
		info := j.Info()
		if len(info.Parents) > 0 || info.MadeBy != "" || !info.Complete || !info.Live {
			t.Errorf("the store of %s is not a new, live and complete session: %+v", info.Graph, info)
		}
		if want := uint64(max(0, 1-i)); j.Durable() != want {
			t.Errorf("%s: Durable is %d, want %d", info.Graph, j.Durable(), want)
		}
		if err := j.Wait(t.Context(), j.Durable()); err != nil {
			t.Errorf("Wait for the first record: %v", err)
		}
		if n := len(j.history(journal.HistoryQuery{})); n != int(j.Durable()) {
			t.Errorf("the store of %s has %d events, want only those of the first record", info.Graph, n)
		}
	}
	wantA := savedOf(js[0], 1, community(), map[string]string{"k": "v", "first": "1"})
	sessions := ids(js...)
	for _, j := range js {
		j.messages("c", 10, 2)
		j.wait()
		j.shut()
	}
	b.restart()
	saved := b.saved()
	if len(saved) != len(js) {
		t.Fatalf("%d saved graphs, want %d", len(saved), len(js))
	}
	wantA.LastTime, wantA.Heads = saved[0].LastTime, saved[0].Heads // appended with the messages
	equal(t, "the first", saved[0], wantA)
	infos, err := b.storage.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range infos {
		if info.Session != sessions[i] || saved[i].Session != sessions[i] {
			t.Errorf("place %d has the sessions %s and %s, want %s, in the order of creation", i, info.Session, saved[i].Session, sessions[i])
		}
	}
	if none, err := b.storage.Create(t.Context()); err != nil || len(none) > 0 {
		t.Errorf("Create without specifications: %d stores, %v", len(none), err)
	}
}

// createFails checks that no store is left if one of several cannot be made.
func createFails(t T, open Opener) {
	b := newBench(t, open)
	there := b.create(journal.StoreSpec{})
	fine := journal.StoreSpec{Graph: "a", Durability: journal.Full}
	_, err := b.storage.Create(t.Context(), fine, journal.StoreSpec{Graph: "g", Durability: journal.Volatile})
	wantCode(t, "Create without durability", err, abi.InvalidArgument)
	_, err = b.storage.Create(t.Context(), fine, journal.StoreSpec{Graph: "b", Durability: journal.Normal, First: func(journal.Origin) *journal.Record {
		return &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: journal.Origin{1}, Seq: 1}}}}
	}})
	if err == nil {
		t.Error("a first record that is not of the store's origin was accepted")
	}
	want := map[journal.SessionID]bool{there.Info().Session: true}
	b.wantSessions(want)
	there.messages("c", 1, 1)
	there.shut()
	b.restart()
	b.wantSessions(want)
}
