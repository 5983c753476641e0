package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// silent is a storage whose stores write, but cannot confirm that for a while, as if the disk
// were full and had room again later.
type silent struct {
	journal.Storage
	on   atomic.Bool
	full atomic.Bool // Room waits
}

type silentStore struct {
	journal.Store
	s *silent
}

var errDiskFull = &abi.Error{Code: abi.Storage, Op: "append", Message: "the disk is full", Remedy: "free some space"}

func (s *silent) wrap(store journal.Store) journal.Store { return &silentStore{store, s} }

func (s *silent) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	return createThrough(ctx, s.Storage, specs, s.wrap)
}

func (s *silent) Open(ctx context.Context, id journal.SessionID) (journal.Store, error) {
	store, err := s.Storage.Open(ctx, id)
	return s.wrap(store), err
}

func (s *silent) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	return cutThrough(ctx, s.Storage, cut, s.wrap)
}

func (s *silentStore) wrapped() journal.Store { return s.Store }

func (s *silentStore) Wait(ctx context.Context, seq uint64) error {
	if s.s.on.Load() {
		return errDiskFull
	}
	return s.Store.Wait(ctx, seq)
}

func (s *silentStore) Room(ctx context.Context) error {
	if s.s.full.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.Room(ctx)
}

func newSilent(t *testing.T) (*saved, *silent) {
	s := &saved{t: t, dir: t.TempDir(), o: engine.Options{Host: operators()}}
	disk := &silent{}
	s.wrap = func(storage journal.Storage) journal.Storage {
		disk.Storage = storage
		return disk
	}
	s.open()
	t.Cleanup(s.shut)
	return s, disk
}

// wantUnknown checks that an error is an unknown outcome that names its cause.
func wantUnknown(t *testing.T, what string, err error, cause error) {
	t.Helper()
	if abi.CodeOf(err) != abi.UnknownOutcome || cause != nil && !errors.Is(err, cause) {
		t.Errorf("%s returns %v (%s), want unknown_outcome because of %v", what, err, abi.CodeOf(err), cause)
	}
}

// If a message was accepted but its durability cannot be confirmed, Send does not refuse it. The
// message can be repeated without being sent twice.
func TestADurableSendThatTheDiskCannotPromiseIsNotRefused(t *testing.T) {
	s, disk := newSilent(t)
	a, b := s.add("a", "relay"), s.add("b", "record")
	ch := s.connect(a, b, "in")
	disk.on.Store(true)
	out := engine.Outgoing{Payload: []byte("one"), Durable: true, Producer: "p", Offset: 1}
	sent, err := s.Send(t.Context(), ch, out)
	wantUnknown(t, "Send", err, errDiskFull)
	var e *abi.Error
	if errors.As(err, &e); !strings.Contains(e.Remedy, "same producer and offset") || e.IDs["message"] != sent.Message.String() || e.IDs["channel"] != string(ch) {
		t.Errorf("the error does not say how to repeat the message: %v %v", err, e.IDs)
	}
	s.wait()
	if _, err = s.Send(t.Context(), ch, out); abi.CodeOf(err) != abi.UnknownOutcome {
		t.Errorf("a duplicate of a message that is not confirmed returns %v, want unknown_outcome", err)
	}
	disk.on.Store(false)
	if again, err := s.Send(t.Context(), ch, out); err != nil || !again.Duplicate {
		t.Errorf("sent again: %v, %v, want a duplicate", again, err)
	}
	if err := sent.Wait(t.Context()); err != nil {
		t.Errorf("waiting again: %v", err)
	}
	s.wait()
	if got := s.state(b, "heard"); got != "in:one\n" {
		t.Errorf("b has heard %q, want the message once", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	disk.on.Store(true)
	cancel()
	if _, err := s.SendTo(ended, b, engine.Outgoing{Payload: []byte("two"), Durable: true}); abi.CodeOf(err) != abi.UnknownOutcome || strings.Contains(err.Error(), "same producer") {
		t.Errorf("SendTo returns %v, want unknown_outcome", err)
	}
	disk.on.Store(false)

	direct := engine.Outgoing{Payload: []byte("three"), Durable: true, Producer: "p", Offset: 1}
	if _, err := s.SendTo(t.Context(), b, direct); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	if again, err := s.SendTo(t.Context(), b, direct); err != nil || !again.Duplicate {
		t.Errorf("sent directly again after a restart: %v, %v, want a duplicate", again, err)
	}
}

// A caller that stops waiting for room gets a refusal, which is another error.
func TestASendThatFindsNoRoomIsRefused(t *testing.T) {
	s, disk := newSilent(t)
	a, b := s.add("a", "relay"), s.add("b", "record")
	ch := s.connect(a, b, "in")
	disk.full.Store(true)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Send(ended, ch, engine.Outgoing{Payload: []byte("one"), Durable: true}); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("Send returns %v (%s), want unavailable", err, abi.CodeOf(err))
	}
	disk.full.Store(false)
	s.wait()
	if got := s.state(b, "heard"); got != "" {
		t.Errorf("b has heard %q of a message that was refused", got)
	}
}

// A change, a tool or a request that the disk cannot confirm has an unknown outcome, as has a
// request whose caller stops waiting or whose engine is closed.
func TestEverythingThatWaitsForTheDiskTellsUnknownFromRefused(t *testing.T) {
	s, disk := newSilent(t)
	s.host.on("oracle", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindRequest {
			return codeErr(t, t.Reply([]byte("yes")))
		}
		return nil
	})
	a := s.add("a", "relay", func(c *deploy.CreatureSpec) { c.Privileged = true })
	b := s.add("b", "oracle")
	s.connect(a, b, "in")
	s.wait()
	disk.on.Store(true)

	var made *engine.Batch
	s.try(func(batch *engine.Batch) error {
		made = batch
		_, err := batch.Do(t.Context(), topology.SetStopped{ID: a, Stopped: true})
		return err
	})
	wantUnknown(t, "a change", made.Wait(t.Context()), errDiskFull)
	s.change(topology.SetStopped{ID: a})

	_, err := s.Tool(t.Context(), a, "group_status", nil)
	wantUnknown(t, "a tool", err, errDiskFull)
	_, err = s.Request(t.Context(), b, engine.Outgoing{Payload: []byte("?"), Durable: true}, 0)
	wantUnknown(t, "a request", err, errDiskFull)
	disk.on.Store(false)

	s.change(topology.SetStopped{ID: b, Stopped: true})
	ended, cancel := context.WithCancel(t.Context())
	call, err := s.Ask(ended, b, engine.Outgoing{Payload: []byte("?")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = call.Reply(ended)
	wantUnknown(t, "a request whose caller is gone", err, context.Canceled)
	if call, err = s.Ask(t.Context(), b, engine.Outgoing{Payload: []byte("?")}, 0); err != nil {
		t.Fatal(err)
	}
	s.shut()
	_, err = call.Reply(t.Context())
	wantUnknown(t, "a request whose engine is closed", err, nil)
}
