// Package closing bounds how long a caller waits for a shutdown, and reports what the
// shutdown leaves open.
//
// A shutdown begins once, runs in the background, and is not interrupted: every caller
// waits for the same one, within a bound of its own. After a third of the bound, or when
// the caller's context ends, what can be interrupted without loss is interrupted.
package closing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ErrLeftOpen is a cause of the error of a shutdown that has reached its bound.
var ErrLeftOpen = errors.New("closing has reached its time limit")

// Store is a store that is not closed and may have events to write.
type Store struct {
	journal.Store
	Last uint64 // number of the last event
}

// Shutdown is the end of an engine. Its methods may be called by several goroutines.
type Shutdown struct {
	begin sync.Once
	over  chan struct{} // closed when the shutdown has ended
	err   error         // valid when over is closed

	mu     sync.Mutex
	stores []Store // not closed yet; not nil once closing them has begun
}

// New makes a shutdown that has not begun.
func New() *Shutdown { return &Shutdown{over: make(chan struct{})} }

// Begin begins the shutdown, unless it has begun: it calls first, and then run in a
// goroutine of its own, which ends when run returns.
func (s *Shutdown) Begin(first func(), run func() error) {
	s.begin.Do(func() {
		first()
		go func() {
			defer close(s.over)
			s.err = run()
		}()
	})
}

// Wait waits for the end of the shutdown, at most for the bound. It calls interrupt after
// a third of the bound, or when ctx ends. It reports whether the shutdown has ended, and
// with which result.
func (s *Shutdown) Wait(ctx context.Context, bound time.Duration, interrupt func()) (ended bool, err error) {
	patience, end := time.NewTimer(bound/3), time.NewTimer(bound)
	defer patience.Stop()
	defer end.Stop()
	select {
	case <-s.over:
		return true, s.err
	case <-patience.C:
	case <-ctx.Done():
	}
	interrupt()
	select {
	case <-s.over:
		return true, s.err
	case <-end.C:
		return false, nil
	}
}

// CloseStores closes stores one after the other, except for the last ones, which the
// caller closes next: live is the number of those to be closed here.
func (s *Shutdown) CloseStores(ctx context.Context, stores []Store, live int) error {
	var errs []error
	for i, store := range stores[:live] {
		s.remaining(stores[i:])
		errs = append(errs, store.Close(ctx))
	}
	s.remaining(stores[live:])
	return errors.Join(errs...)
}

func (s *Shutdown) remaining(stores []Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores = stores
}

// LeftOpen is the error of a shutdown that has reached its bound; it names what is left
// open. The function running lists the turns that do not end and the stores with
// unwritten events; it is called if no store has been closed yet. attempts are those of
// capabilities.
func (s *Shutdown) LeftOpen(bound time.Duration, running func() (turns []string, stores []Store), attempts []string) error {
	s.mu.Lock()
	stores := s.stores
	s.mu.Unlock()
	var left []string
	if stores == nil {
		left, stores = running()
	}
	for _, store := range stores {
		if durable := store.Durable(); store.Last > durable {
			are := map[bool]string{true: "is", false: "are"}[store.Last-durable == 1]
			left = append(left, fmt.Sprintf("%s of the session %s that %s not written", errtext.Count(store.Last-durable, "event"), store.Info().Session, are))
		} else if len(left) == 0 {
			left = append(left, fmt.Sprintf("the open store of the session %s, with all events written", store.Info().Session))
		}
	}
	left = append(left, attempts...)
	if len(left) == 0 {
		left = append(left, "a change of the topology that does not end")
	}
	return &abi.Error{
		Code: abi.Deadline, Op: "close", Message: fmt.Sprintf("the engine did not close within %v; what is left: %s", bound, strings.Join(errtext.Few(left), ", ")),
		Remedy: "all acknowledged events are kept, and the session can be resumed after the process has ended; if the disk is slow, raise the shutdown timeout",
		Err:    ErrLeftOpen,
	}
}

// LeftOutside is the error for attempts of capabilities that ignore that they were
// interrupted; nil if there are none.
func LeftOutside(attempts []string) error {
	if len(attempts) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.Deadline, Op: "close", Message: "the engine has closed, but some attempts do not end: " + strings.Join(errtext.Few(attempts), ", "),
		Remedy: "end the process, and correct the capability: its method Do must end when its context ends", Err: ErrLeftOpen,
	}
}

// Bound is how long a shutdown may take: timeout, or until the deadline of ctx if that is
// earlier and has not passed yet.
func Bound(ctx context.Context, timeout time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		return max(0, min(timeout, time.Until(deadline)))
	}
	return timeout
}
