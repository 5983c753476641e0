package closing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// fakeStore is a store that has nothing but a durable part.
type fakeStore struct {
	journal.Store
	session journal.SessionID
	durable uint64
	closed  func() error
}

func (s *fakeStore) Durable() uint64           { return s.durable }
func (s *fakeStore) Info() journal.SessionInfo { return journal.SessionInfo{Session: s.session} }
func (s *fakeStore) Close(context.Context) error {
	return s.closed()
}

// TestAllCallersWaitForOneShutdown lets the first caller stop waiting before the shutdown ends.
// The second caller gets the result of the same shutdown.
func TestAllCallersWaitForOneShutdown(t *testing.T) {
	s, begun, failed := New(), 0, errors.New("the disk failed")
	goOn := make(chan struct{})
	begin := func() {
		s.Begin(func() { begun++ }, func() error { <-goOn; return failed })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin()
	interrupted := 0
	if ended, err := s.Wait(ctx, 0, func() { interrupted++ }); ended || err != nil || interrupted != 1 {
		t.Fatalf("the first caller gets %v, %v, and has interrupted %d times, want once", ended, err, interrupted)
	}
	begin()
	ended, err := s.Wait(ctx, time.Hour, func() { interrupted++; close(goOn) })
	if !ended || !errors.Is(err, failed) || begun != 1 || interrupted != 2 {
		t.Fatalf("the second caller gets %v, %v; the shutdown has begun %d times and was interrupted %d times", ended, err, begun, interrupted)
	}
	if ended, err := s.Wait(t.Context(), time.Hour, func() { t.Error("a shutdown that has ended was interrupted") }); !ended || !errors.Is(err, failed) {
		t.Errorf("the third caller gets %v, %v", ended, err)
	}
}

// TestTheErrorSaysWhatIsLeft compares the errors before, while and after stores are closed.
func TestTheErrorSaysWhatIsLeft(t *testing.T) {
	s := New()
	idle := func() ([]string, []Store) { return nil, nil }
	says := func(when, want string, running func() ([]string, []Store), attempts ...string) {
		t.Helper()
		err := s.LeftOpen(time.Second, running, attempts)
		if abi.CodeOf(err) != abi.Deadline || !errors.Is(err, ErrLeftOpen) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s the error is %q, want %q in it", when, err, want)
		}
	}
	says("with nothing left", "a change of the topology", idle)
	says("with an attempt", "left: an attempt of http", idle, "an attempt of http")
	late := &fakeStore{session: "s1", durable: 7}
	busy := func() ([]string, []Store) { return []string{"a turn of c"}, []Store{{late, 9}} }
	says("in a turn", "left: a turn of c, 2 events of the session s1", busy)

	var order []journal.SessionID
	never := func() ([]string, []Store) { t.Error("turns were listed while stores are closed"); return nil, nil }
	late.closed = func() error {
		order = append(order, late.session)
		says("while a store is closed", "left: 2 events of the session s1", never)
		return errors.New("s1 failed")
	}
	next := &fakeStore{session: "s2", durable: 9}
	next.closed = func() error {
		order = append(order, next.session)
		says("while a written store is closed", "the open store of the session s2, with all events written", never)
		return nil
	}
	last := &fakeStore{session: "s3", durable: 1, closed: func() error { t.Error("the store s3 was closed, although it is left to the end"); return nil }}
	if err := s.CloseStores(t.Context(), []Store{{late, 9}, {next, 9}, {last, 2}}, 2); err == nil || err.Error() != "s1 failed" {
		t.Errorf("CloseStores returns %v, want only the failure of s1", err)
	}
	if len(order) != 2 || order[0] != "s1" {
		t.Errorf("CloseStores has closed %v, want s1 and s2", order)
	}
	says("after them", "left: 1 event of the session s3 that is not written", never)
	if err := LeftOutside(nil); err != nil {
		t.Errorf("without attempts, LeftOutside returns %v", err)
	}
	if err := LeftOutside([]string{"an attempt"}); abi.CodeOf(err) != abi.Deadline || !errors.Is(err, ErrLeftOpen) {
		t.Errorf("with an attempt, LeftOutside returns %v, want deadline", err)
	}
}
