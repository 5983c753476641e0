package storetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/journal"
)

// waitEnds waits for an event that is never appended.
func waitEnds(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	ctx, cancel := context.WithCancel(t.Context())
	answer := spawn(func() error { return j.Wait(ctx, 1) })
	cancel()
	if err := <-answer; err == nil {
		t.Error("Wait for an event that was not appended succeeded")
	}
}

func closeAnswers(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	answer := spawn(func() error { return j.Wait(context.Background(), 1) })
	j.shut()
	if err := <-answer; err == nil {
		t.Error("Wait succeeded although the store was closed before the event was written")
	}
}

// manyWaiters appends from many goroutines, each in a critical section as in an engine, and
// reads at the same time.
func manyWaiters(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{Durability: journal.Full})
	const producers, each = 64, 25
	var critical sync.Mutex
	var answers []<-chan error
	for p := range producers {
		answers = append(answers, spawn(func() error {
			for i := range each {
				critical.Lock()
				seq := j.put(journal.Record{
					Events:  []journal.Event{{Kind: journal.EventTurnEnded, Attempt: p + 1}},
					Cursors: []journal.CursorRow{{Reader: "a", Channel: "c", Seq: j.last}},
				})[0].ID.Seq
				critical.Unlock()
				if err := j.Wait(t.Context(), seq); err != nil {
					return err
				}
				if j.Durable() < seq {
					t.Errorf("Durable is %d after Wait(%d)", j.Durable(), seq)
				}
				if i%8 == 0 {
					if _, err := j.History(t.Context(), journal.HistoryQuery{Newest: true, Limit: 3}); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if n := len(j.history(journal.HistoryQuery{Limit: producers*each + 1})); n != producers*each {
		t.Errorf("%d events, want %d", n, producers*each)
	}
}

// room appends far more than the queue can hold, and waits for room as an engine does.
func room(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	payload := make([]byte, 1<<20)
	for range 64 {
		if err := j.Room(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.put(journal.Record{Events: []journal.Event{{Kind: journal.EventOutput, Payload: payload}}})
	}
	j.wait()
	if err := j.Room(t.Context()); err != nil {
		t.Errorf("Room when everything is written: %v", err)
	}
	if j.Err() != nil {
		t.Errorf("Err: %v", j.Err())
	}
}

func notify(t T, open Opener) {
	j := newBench(t, open).create(journal.StoreSpec{})
	var highest atomic.Uint64
	risen := make(chan struct{}, 1)
	j.Notify(func() {
		highest.Store(j.Durable())
		select {
		case risen <- struct{}{}:
		default:
		}
	})
	last := j.messages("c", 1, 100)[99].ID.Seq
	for highest.Load() < last {
		select {
		case <-risen:
		case <-t.Context().Done():
			t.Fatalf("Durable was %d at the last call of Notify, want %d", highest.Load(), last)
		}
	}
	j.Notify(nil)
	j.messages("c", 101, 1)
	j.wait()
}
