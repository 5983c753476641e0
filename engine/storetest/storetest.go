// Package storetest is the test suite for implementers of [journal.Storage] and
// [journal.Store]. Each of its [Checks] proves numbered rules of a store. [Run] runs all of
// them under go test; package conformance/stores runs them in any program.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// T is the part of [testing.T] that a check needs. Fatal, Fatalf and Skip do not return:
// they end the goroutine of the check. Error and Errorf may be called by any goroutine.
// Functions that are registered with Cleanup run after the check, the last one first.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Context() context.Context
	TempDir() string
	Cleanup(f func())
}

// Opener opens the session directory dir, and creates it if it does not exist. The suite
// closes the storage. If the directory cannot be opened, the opener fails the test through t.
type Opener func(t T, dir string) journal.Storage

// Run runs all checks on an implementation, each as a separate subtest. Run it with the
// race detector too.
func Run[S interface {
	T
	Run(name string, f func(S)) bool
}](t S, open func(t S, dir string) journal.Storage) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t S) { c.Run(t, func(_ T, dir string) journal.Storage { return open(t, dir) }) })
	}
}

// labelled adds a label to the failures of a check.
type labelled struct {
	T
	label string
}

func (l labelled) Error(args ...any) {
	l.T.Helper()
	l.T.Error(append([]any{l.label + ":"}, args...)...)
}
func (l labelled) Fatal(args ...any) {
	l.T.Helper()
	l.T.Fatal(append([]any{l.label + ":"}, args...)...)
}
func (l labelled) Errorf(format string, args ...any) {
	l.T.Helper()
	l.T.Errorf("%s: %s", l.label, fmt.Sprintf(format, args...))
}
func (l labelled) Fatalf(format string, args ...any) {
	l.T.Helper()
	l.T.Fatalf("%s: %s", l.label, fmt.Sprintf(format, args...))
}

// spawn runs f in a goroutine. The caller waits for it by receiving its error. A panic of f
// becomes an error.
func spawn(f func() error) <-chan error {
	answer := make(chan error, 1)
	go func() {
		err := errors.New("the goroutine has ended early")
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
			answer <- err
		}()
		err = f()
	}()
	return answer
}

// clock gives every event of the suite a different time.
var clock atomic.Int64

// cutTime gives every cut of the suite a different time. A store takes the time of its
// creation from the clock of the machine, and no cut may be earlier than its parents.
var cutTime atomic.Int64

func init() {
	clock.Store(1_700_000_000_000_000_000)   // any time that is not zero
	cutTime.Store(4_102_444_800_000_000_000) // the year 2100
}

// bench is an open directory in a test.
type bench struct {
	t       T
	open    Opener
	dir     string
	storage journal.Storage
}

func newBench(t T, open Opener) *bench {
	b := &bench{t: t, open: open, dir: t.TempDir()}
	b.storage = open(t, b.dir)
	t.Cleanup(func() { b.close() })
	return b
}

func (b *bench) close() {
	if b.storage == nil {
		return
	}
	if err := b.storage.Close(); err != nil {
		b.t.Errorf("Close: %v", err)
	}
	b.storage = nil
}

// restart closes the directory and opens it again.
func (b *bench) restart() {
	b.t.Helper()
	b.close()
	b.storage = b.open(b.t, b.dir)
}

func (b *bench) create(spec journal.StoreSpec) *writer {
	b.t.Helper()
	return b.createAll(spec)[0]
}

func (b *bench) createAll(specs ...journal.StoreSpec) (out []*writer) {
	b.t.Helper()
	for i := range specs {
		specs[i].Durability = max(specs[i].Durability, journal.Normal)
		if specs[i].Graph == "" {
			specs[i].Graph = "g"
		}
	}
	stores, err := b.storage.Create(b.t.Context(), specs...)
	if err != nil || len(stores) != len(specs) {
		b.t.Fatalf("Create made %d of %d stores: %v", len(stores), len(specs), err)
	}
	for _, s := range stores {
		out = append(out, &writer{s, b.t, s.Durable()}) // the first record is durable
	}
	return out
}

func (b *bench) reopen(session journal.SessionID) *writer {
	b.t.Helper()
	s, err := b.storage.Open(b.t.Context(), session)
	if err != nil {
		b.t.Fatalf("Open(%s): %v", session, err)
	}
	return &writer{s, b.t, 0}
}

func (b *bench) saved() []journal.SavedGraph {
	b.t.Helper()
	graphs, problems, err := b.storage.Saved(b.t.Context())
	if err != nil || len(problems) > 0 {
		b.t.Fatalf("Saved: %v, problems %v", err, problems)
	}
	return graphs
}

// writer is a store that numbers the events that are appended.
type writer struct {
	journal.Store
	t    T
	last uint64
}

// stamp gives events their ids and times.
func (j *writer) stamp(r *journal.Record) *journal.Record {
	for i := range r.Events {
		j.last++
		r.Events[i].ID = journal.EventID{Origin: j.Origin(), Seq: j.last}
		if r.Events[i].Time == 0 {
			r.Events[i].Time = clock.Add(1)
		}
	}
	return r
}

// put appends a record and returns its events.
func (j *writer) put(r journal.Record) []journal.Event {
	j.stamp(&r)
	events := slices.Clone(r.Events)
	j.Append(&r)
	return events
}

// messages appends n messages to a channel, each in its own record with the new head.
func (j *writer) messages(channel journal.ChannelID, from, n int) []journal.Event {
	var out []journal.Event
	for i := range n {
		seq := uint64(from + i)
		out = append(out, j.put(journal.Record{
			Events: []journal.Event{message(channel, seq)},
			Heads:  []journal.HeadRow{{Channel: channel, Seq: seq}},
		})...)
	}
	return out
}

func message(channel journal.ChannelID, seq uint64) journal.Event {
	return journal.Event{Kind: journal.EventChannelMessage, Graph: "g", Channel: channel, Seq: seq, Payload: fmt.Appendf(nil, "%s %d", channel, seq)}
}

func (j *writer) wait() {
	j.t.Helper()
	if err := j.Wait(j.t.Context(), j.last); err != nil {
		j.t.Fatalf("Wait(%d): %v", j.last, err)
	}
}

func (j *writer) history(q journal.HistoryQuery) []journal.Event {
	j.t.Helper()
	events, err := j.History(j.t.Context(), q)
	if err != nil {
		j.t.Fatalf("History(%+v): %v", q, err)
	}
	return events
}

func (j *writer) shut() {
	j.t.Helper()
	if err := j.Close(context.Background()); err != nil {
		j.t.Fatalf("Close: %v", err)
	}
}

// equal fails the test if two values differ. An absent list equals an empty one, but nil
// bytes differ from empty bytes, because they are different payloads.
func equal(t T, what string, got, want any) {
	t.Helper()
	if diff := difference(got, want); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// difference describes the difference between two values, or returns "" if they are equal. It
// avoids the slow comparison of long lists.
func difference(got, want any) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	a, ok := got.([]journal.Event)
	b, both := want.([]journal.Event)
	if ok && both && len(b) > 0 {
		at := 0
		for at < min(len(a), len(b)) && reflect.DeepEqual(a[at], b[at]) {
			at++
		}
		const window = 3
		part := func(list []journal.Event) []journal.Event { return list[at:min(len(list), at+window)] }
		return fmt.Sprintf("%d events instead of %d, and from event %d on:\n%s", len(a), len(b), at, cmp.Diff(part(b), part(a), lists))
	}
	return cmp.Diff(want, got, lists)
}

var lists = cmp.Options{
	equateEmpty[journal.Event](), equateEmpty[journal.CreatureRow](), equateEmpty[journal.ChannelRow](), equateEmpty[journal.HeadRow](),
	equateEmpty[journal.EdgeRow](), equateEmpty[journal.CursorRow](), equateEmpty[journal.ProducerRow](), equateEmpty[journal.SessionID](),
	equateEmpty[journal.TimerRow](), equateEmpty[journal.RequestRow](), equateEmpty[journal.DeadLetterRow](), equateEmpty[journal.OutputWire](), equateEmpty[string](),
}

func equateEmpty[T any]() cmp.Option {
	return cmp.FilterValues(func(a, b []T) bool { return len(a) == 0 && len(b) == 0 }, cmp.Comparer(func(_, _ []T) bool { return true }))
}

// wantCode checks that an error has a code and a remedy.
func wantCode(t T, what string, err error, code abi.Code) {
	t.Helper()
	if abi.CodeOf(err) != code {
		t.Errorf("%s: got %v (code %s), want the code %s", what, err, abi.CodeOf(err), code)
		return
	}
	var typed *abi.Error
	if errors.As(err, &typed) && typed.Message == "" {
		t.Errorf("%s: %v has no message", what, err)
	}
}
