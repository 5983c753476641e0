package storetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Pruner is implemented by a [journal.Storage] that can prune the history of a session. A
// storage without it keeps all history.
type Pruner interface {
	// KeepNewest prunes a live session at once. It keeps exactly the given number of
	// newest events, and those that must not be pruned.
	KeepNewest(ctx context.Context, session journal.SessionID, events int64) error
}

// keepNewest prunes a session.
func (b *bench) keepNewest(j *writer, events int64) {
	b.t.Helper()
	p, ok := b.storage.(Pruner)
	if !ok {
		b.t.Skip("the store does not prune")
	}
	if err := p.KeepNewest(b.t.Context(), j.Info().Session, events); err != nil {
		b.t.Fatalf("KeepNewest: %v", err)
	}
}

func pruneNewest(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{})
	j.put(journal.Record{Channels: []journal.ChannelRow{{ID: "c", Name: "leads"}}})
	all := j.messages("c", 1, 200)
	b.keepNewest(j, 50)
	want := slices.Clone(all[150:])
	equal(t, "History of a pruned session", j.history(journal.HistoryQuery{}), want)
	want = append(want, j.messages("c", 201, 10)...)
	j.wait()
	session := j.Info().Session
	b.wantReport(session, journal.VerifyReport{Events: 60})
	j.shut()
	b.restart()
	b.wantReport(session, journal.VerifyReport{Events: 60})
	equal(t, "History of a pruned session after a restart", b.reopen(session).history(journal.HistoryQuery{}), want)
}

// pruneUnhandled prunes a session in which a creature has unhandled messages. An outside reader
// has read some of these.
func pruneUnhandled(t T, open Opener) {
	b := newBench(t, open)
	j := b.create(journal.StoreSpec{Meta: map[string]string{"k": "v"}})
	rows := everyRow()
	rows.Heads, rows.Requests = nil, nil
	rows.Cursors = []journal.CursorRow{{Reader: "a", Channel: "c"}, {Reader: "reader:out", Channel: "c"}}
	j.put(rows)
	all := j.messages("c", 1, 200)
	j.put(journal.Record{Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 120}, {Reader: "reader:out", Channel: "c", Seq: 140}}})
	b.keepNewest(j, 10)
	session := j.Info().Session
	waiting, err := j.Messages(t.Context(), "c", 120, 0, 1_000, 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "messages that wait in a pruned session", waiting, all[120:])
	equal(t, "History of a pruned session", j.history(journal.HistoryQuery{}), all[120:])
	b.wantReport(session, journal.VerifyReport{Events: 80})
	rows.Heads = []journal.HeadRow{{Channel: "c", Seq: 200}}
	rows.Cursors = []journal.CursorRow{{Reader: "a", Channel: "c", Seq: 120}, {Reader: "reader:out", Channel: "c", Seq: 140}}
	wantState(t, j, "a", map[string][]byte{"k": {0xff}, "empty": {}})
	wantLetters(t, j, "", rows.Letters)
	want := savedOf(j, 0, rows, map[string]string{"k": "v"})
	want.LastTime = all[199].Time
	j.shut()
	b.restart()
	saved := b.saved()
	if len(saved) == 1 {
		want.Path = saved[0].Path // the kept part may be in another file
	}
	equal(t, "Saved after pruning", saved, []journal.SavedGraph{want})
}

// exporter returns the storage if its sessions can be copied.
func (b *bench) exporter() journal.Exporter {
	b.t.Helper()
	e, ok := b.storage.(journal.Exporter)
	if !ok {
		b.t.Skip("the store does not copy sessions")
	}
	return e
}

func fork(t T, open Opener) {
	b := newBench(t, open)
	e := b.exporter()
	j := b.create(journal.StoreSpec{Graph: "pond"})
	j.put(everyRow())
	all := j.messages("c", 10, 20)
	dir := filepath.Join(t.TempDir(), "fork")
	session, err := e.Fork(t.Context(), j.Info().Session, dir)
	if err != nil {
		t.Fatalf("Fork: %v", err)
	}
	other := &bench{t: t, open: open, dir: dir}
	other.storage = open(t, dir)
	defer other.close()
	saved := other.saved()
	if len(saved) != 1 || saved[0].Session != session || saved[0].Graph != "pond" {
		t.Fatalf("Saved in the fork: %+v", saved)
	}
	k := other.reopen(session)
	info := k.Info()
	if len(info.Parents) != 1 || info.Parents[0] != j.Info().Session || info.MadeBy == journal.CutMerge || info.MadeBy == journal.CutSplit || info.MergedAt != 0 || info.SplitAt != 0 {
		t.Errorf("the fork was made by %q from %v, merged at %d, split at %d", info.MadeBy, info.Parents, info.MergedAt, info.SplitAt)
	}
	here := append(slices.Clone(all), j.messages("c", 30, 2)...)
	there := append(slices.Clone(all), k.messages("c", 30, 3)...)
	equal(t, "History of the original", j.history(journal.HistoryQuery{}), here)
	equal(t, "History of the fork", k.history(journal.HistoryQuery{}), there)
	for _, side := range []*writer{j, k} {
		wantState(t, side, "a", map[string][]byte{"k": {0xff}, "empty": {}})
		wantLetters(t, side, "", everyRow().Letters)
	}
	k.shut()
}

func forkExisting(t T, open Opener) {
	b := newBench(t, open)
	e := b.exporter()
	j := b.create(journal.StoreSpec{})
	j.messages("c", 1, 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "notes")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := e.Fork(t.Context(), j.Info().Session, dir)
	wantCode(t, "a fork into a directory that is not empty", err, abi.AlreadyExists)
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("after a refused fork, the file in its directory contains %q, %v", text, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("a refused fork left the files %v, %v", list, err)
	}
}
