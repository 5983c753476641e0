package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// everything is a limit that is above the number of events of any store in the suite.
const everything = 1 << 20

func (f *family) checkAll() {
	f.t.Helper()
	infos, err := f.storage.Sessions(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if len(infos) != len(f.all) {
		f.t.Errorf("Sessions lists %d sessions, want %d", len(infos), len(f.all))
	}
	for _, k := range f.all {
		f.check(k)
		f.checkInfo(k, infos)
	}
}

// check compares a session with the model.
func (f *family) check(k *modelSession) {
	f.t.Helper()
	if k.journal == nil { // every query may open files
		f.checkHistory(k, func(q journal.HistoryQuery) ([]journal.Event, error) {
			return f.storage.History(f.t.Context(), k.session, q)
		})
		return
	}
	f.checkHistory(k, func(q journal.HistoryQuery) ([]journal.Event, error) { return k.journal.History(f.t.Context(), q) })
	for _, c := range creatures {
		f.checkMessages(k, ownChannel(c))
		f.checkRows(k, c)
	}
	f.checkLetters(k)
}

// checkInfo checks the descriptions of a session: Sessions, Lineage and Verify.
func (f *family) checkInfo(k *modelSession, infos []journal.SessionInfo) {
	f.t.Helper()
	i := slices.IndexFunc(infos, func(i journal.SessionInfo) bool { return i.Session == k.session })
	if i < 0 {
		f.t.Fatalf("%s is not among the sessions", k.session)
	}
	info := infos[i]
	var parents []journal.SessionID
	for _, p := range k.parents {
		parents = append(parents, p.session)
	}
	equal(f.t, "parents", info.Parents, parents)
	if info.Live != (k.journal != nil) || (info.MergedAt != 0) != (len(parents) > 1) {
		f.t.Errorf("%s: live %v, merged at %d", k.session, info.Live, info.MergedAt)
	}
	if info.MadeBy != k.kind {
		f.t.Errorf("%s was made by %q, want %q", k.session, info.MadeBy, k.kind)
	}
	if pure := k.kind != journal.CutRearrange; pure && (info.SplitAt != 0) != (k.kind == journal.CutSplit) {
		f.t.Errorf("%s resulted from a %s, but was split at %d", k.session, k.kind, info.SplitAt)
	}
	line, err := f.storage.Lineage(f.t.Context(), k.session)
	if err != nil {
		f.t.Fatal(err)
	}
	var got []journal.SessionID
	for _, l := range line {
		got = append(got, l.Session)
	}
	equal(f.t, "Lineage", got, k.lineage())
	f.checkVerify(k, info.Complete)
}

// lineage lists a session's ancestors, itself first, generation by generation.
func (k *modelSession) lineage() (out []journal.SessionID) {
	for next := []*modelSession{k}; len(next) > 0; next = next[1:] {
		if !slices.Contains(out, next[0].session) {
			out = append(out, next[0].session)
			next = append(next, next[0].parents...)
		}
	}
	return out
}

func (f *family) checkVerify(k *modelSession, complete bool) {
	f.t.Helper()
	if k.journal != nil {
		k.journal.wait()
	}
	got, err := f.storage.Verify(f.t.Context(), k.session)
	if err != nil {
		f.t.Fatalf("Verify: %v", err)
	}
	if !complete || k.journal == nil {
		got.IncompleteFrom = nil
	}
	equal(f.t, "Verify", got, journal.VerifyReport{Session: k.session, Events: int64(len(k.events))})
}

// checkHistory reads a history as a whole, in pages, from its end, and by
// channel.
func (f *family) checkHistory(k *modelSession, read func(journal.HistoryQuery) ([]journal.Event, error)) {
	f.t.Helper()
	must := func(q journal.HistoryQuery) []journal.Event {
		f.t.Helper()
		events, err := read(q)
		if err != nil {
			f.t.Fatalf("History(%+v) of %s: %v", q, k.session, err)
		}
		return events
	}
	if diff := difference(must(journal.HistoryQuery{Limit: everything}), k.events); diff != "" {
		f.t.Fatalf("history of %s (-want +got):\n%s", k.session, diff)
	}
	var got []journal.Event
	size, bytes := 1+len(k.events)/(1+f.random.IntN(4)), int64(f.random.IntN(2)*(1+f.random.IntN(300)))
	for after := (journal.EventID{}); ; {
		page := must(journal.HistoryQuery{After: after, Limit: size, Bytes: bytes})
		if len(page) == 0 {
			break
		}
		read := int64(0)
		for i := range page {
			if bytes > 0 && read >= bytes {
				f.t.Fatalf("event %d of a page begins after %d bytes, although the page was limited to %d", i, read, bytes)
			}
			read += page[i].Size()
		}
		got, after = append(got, page...), page[len(page)-1].ID
	}
	equal(f.t, fmt.Sprintf("history in pages of %d and of %d bytes", size, bytes), got, k.events)
	if len(k.events) == 0 {
		return
	}
	after, limit := k.events[f.random.IntN(len(k.events))].ID, 1+f.random.IntN(len(k.events))
	queries := []journal.HistoryQuery{
		{Newest: true, Limit: limit},
		{Newest: true, Limit: limit, After: after},
		{After: after, Limit: limit, Channel: ownChannel(k.creatures[0])},
		{Limit: limit, Kinds: []journal.EventKind{journal.EventTopologyChanged}},
	}
	if k.journal == nil {
		queries = queries[f.random.IntN(4):][:1]
	}
	for _, q := range queries {
		equal(f.t, fmt.Sprintf("History(%+v)", q), must(q), choose(k.events, q))
	}
}

// checkMessages pages through a channel, which the store need not own.
func (f *family) checkMessages(k *modelSession, ch journal.ChannelID) {
	f.t.Helper()
	want := slices.DeleteFunc(slices.Clone(k.events), func(ev journal.Event) bool { return ev.Channel != ch })
	var got []journal.Event
	for after, size := uint64(0), 1+f.random.IntN(len(want)+2); ; {
		page, err := k.journal.Messages(f.t.Context(), ch, after, 0, size, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1].Seq
	}
	equal(f.t, fmt.Sprintf("messages of %s in %s", ch, k.session), got, want)
}

// checkRows checks that a store has a creature's state if, and only if, it has the creature.
func (f *family) checkRows(k *modelSession, c journal.CreatureID) {
	f.t.Helper()
	want := map[string][]byte{}
	if slices.Contains(k.creatures, c) && f.state[c] != nil {
		want = f.state[c]
	}
	wantState(f.t, k.journal, c, want)
}

// checkLetters checks that a store has the dead letters of its creatures, and no others.
func (f *family) checkLetters(k *modelSession) {
	f.t.Helper()
	got, err := k.journal.DeadLetters(f.t.Context(), "", journal.EventID{}, everything)
	if err != nil {
		f.t.Fatal(err)
	}
	var want []journal.DeadLetterRow
	for _, c := range k.creatures {
		want = append(want, f.letters[c]...)
	}
	byID := func(a, b journal.DeadLetterRow) int { return strings.Compare(a.ID.String(), b.ID.String()) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	equal(f.t, "dead letters of "+string(k.session), got, want)
}

// answers returns the results of all queries about all sessions, without the fields that
// depend on how much of a history has been copied.
func (f *family) answers() map[string]any {
	f.t.Helper()
	out := map[string]any{}
	infos, err := f.storage.Sessions(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, i := range infos {
		i.Complete, i.Path, i.Bytes, i.Events = false, "", 0, 0
		events, err := f.storage.History(f.t.Context(), i.Session, journal.HistoryQuery{Limit: everything})
		if err != nil {
			f.t.Fatal(err)
		}
		line, err := f.storage.Lineage(f.t.Context(), i.Session)
		if err != nil {
			f.t.Fatal(err)
		}
		for n := range line {
			line[n].Complete, line[n].Path, line[n].Bytes, line[n].Events = false, "", 0, 0
		}
		out[string(i.Session)] = []any{i, events, line}
	}
	for _, k := range f.liveSessions() {
		f.checkLetters(k)
		for _, c := range creatures {
			messages, err := k.journal.Messages(f.t.Context(), ownChannel(c), 0, 0, everything, 0)
			state, err2 := k.journal.State(f.t.Context(), c)
			if err != nil || err2 != nil {
				f.t.Fatal(err, err2)
			}
			out[string(k.session)+string(c)] = []any{messages, state}
		}
	}
	return out
}
