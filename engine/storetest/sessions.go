package storetest

import (
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

func reopen(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{Durability: journal.Full})
	session := j.Info().Session
	var want []journal.Event
	origins := map[journal.Origin]bool{}
	for i := range 4 {
		if origins[j.Origin()] || j.Origin().IsZero() {
			t.Fatalf("origin %s is not new", j.Origin())
		}
		origins[j.Origin()] = true
		want = append(want, j.messages("c", 5*i+1, 5)...)
		j.put(journal.Record{State: []journal.StateRow{{Creature: "a", Key: "k", Value: []byte{byte(i)}}}})
		if i%2 == 0 { // sometimes without an event of its own in between
			j.shut()
			j = b.reopen(session)
		}
		j.shut()
		b.restart()
		if saved := b.saved(); len(saved) != 1 || saved[0].Session != session || saved[0].Durability != journal.Full {
			t.Fatalf("Saved: %+v", saved)
		}
		j = b.reopen(session)
		equal(t, "History", j.history(journal.HistoryQuery{}), want)
		wantState(t, j, "a", map[string][]byte{"k": {byte(i)}})
	}
	_, err := b.storage.Open(t.Context(), session)
	wantCode(t, "opening an open session", err, abi.Conflict)
}

func sessions(t T, open Opener) {
	b := newBench(t, open)
	if saved := b.saved(); len(saved) != 0 {
		t.Errorf("a new directory has %d saved graphs", len(saved))
	}
	first := b.create(journal.StoreSpec{Graph: "g1", Durability: journal.Full, Meta: map[string]string{"k": "v"}})
	second := b.create(journal.StoreSpec{Graph: "g2"})
	first.messages("c", 1, 3)
	first.wait()
	info := first.Info()
	if !info.Live || !info.Complete || info.Graph != "g1" || info.Durability != journal.Full || info.Meta["k"] != "v" || info.Path == "" {
		t.Errorf("Info: %+v", info)
	}
	if info.Events != 3 && info.Events != -1 {
		t.Errorf("Info counts %d events, want 3", info.Events)
	}
	want := first.history(journal.HistoryQuery{})
	if err := b.storage.Retire(t.Context(), info.Session); err != nil {
		t.Fatal(err)
	}
	b.wantSessions(map[journal.SessionID]bool{info.Session: false, second.Info().Session: true})
	if saved := b.saved(); len(saved) != 1 || saved[0].Graph != "g2" {
		t.Errorf("Saved after Retire: %+v", saved)
	}
	got, err := b.storage.History(t.Context(), info.Session, journal.HistoryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "History of a retired session", got, want)
	_, err = b.storage.Open(t.Context(), info.Session)
	wantCode(t, "opening a retired session", err, abi.InvalidArgument)
}

// wantSessions checks the sessions, and which of them are live.
func (b *bench) wantSessions(want map[journal.SessionID]bool) {
	b.t.Helper()
	infos, err := b.storage.Sessions(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[journal.SessionID]bool{}
	for _, i := range infos {
		got[i.Session] = i.Live
	}
	equal(b.t, "live sessions", got, want)
	if !slices.IsSortedFunc(infos, func(x, y journal.SessionInfo) int { return int(min(max(x.Created-y.Created, -1), 1)) }) {
		b.t.Error("sessions are not listed oldest first")
	}
}
