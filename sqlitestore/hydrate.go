package sqlitestore

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"

	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	firstHydrationRetry = 50 * time.Millisecond
	lastHydrationRetry  = time.Minute

	// quiet is how old a session must be before its history is copied: cuts come in
	// bursts, and copying is wasted on a session that is cut again. But a session is read
	// from at most manyFiles files. If ended sessions have left too many files altogether,
	// that bound is lower, but not below fewFiles.
	quiet     = 500 * time.Millisecond
	manyFiles = 64
	fewFiles  = 4
)

// hydrator gives the children of cuts their history, one after the other, and then
// removes the files that are no longer needed.
//
// The whole file of a session is made beside the one that it writes to: the largest of the
// ancestors' files that it needs is copied as it is; then the events of the others are
// added, and those that the session itself has written. The writer is parked only for the
// last of these. Then the catalogue names the file as the session's, and the writer
// continues in it. Creatures do not wait meanwhile.
//
// Such a file goes through these states. If the process ends, the next start continues at
// the last state that the catalogue has recorded; the later ones are repeated, which
// changes nothing.
//
//	noted      choose: the catalogue records what it begins with, a copy or nothing
//	copied     copyBase: the copy is durable and recorded; its progress is recorded now and then
//	stripped   the live rows that came with the copy are removed
//	trimmed    if an earlier attempt began it: events that no source still has are removed
//	united     it has the history of the ancestors
//	followed   it has what the session has written by then
//	standing   the session's writer is parked, so that nothing is written to the session
//	finished   it has the rest, and the live rows, and names its session; it is durable
//	completed  the catalogue names it as the session's, and the one before is left over
//	moved      the writer continues in it
//
// Three transitions lead elsewhere:
//
//	standing -> stripped   a reader has come that needs older history than is kept (keepMore)
//	followed -> copied     the session has been cut again (errCutAgain): the file serves one of its children
//	finished -> left       the directory is closed before the catalogue has answered whether the file is the
//	                       session's: the store is frozen, and the next start finds out
//
// An ended session has no writer: its file is completed without standing or moving. A file
// that keeps only a part of its history (retain.go) begins with nothing, and is made in the
// same way.
type hydrator struct {
	d    *Directory
	wake chan struct{} // has room for one
	done chan struct{}
	end  context.CancelFunc

	begun time.Time // by the clock of the directory
	jumps jumps

	mu     sync.Mutex
	asked  uint64 // how often work was announced
	did    uint64 // the value of asked when the last finished round began
	failed error  // what went wrong in that round
	urgent int    // how many callers wait until everything is done
	calls  []call // waiting to be run
	ended  bool   // there will be no more rounds
	change *sync.Cond
}

func startHydrator(d *Directory) *hydrator {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hydrator{d: d, wake: make(chan struct{}, 1), done: make(chan struct{}), end: cancel, begun: d.options.Now()}
	h.change = sync.NewCond(&h.mu)
	go h.run(ctx)
	h.nudge()
	return h
}

// nudge announces that there may be work.
func (h *hydrator) nudge() {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	nudge(h.wake)
}

// close ends the work as soon as it can be interrupted. The next start continues what is
// half done.
func (h *hydrator) close() {
	h.end()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did, h.failed = math.MaxUint64, stopped("settle", h.d.dir)
	h.ended = true
	for _, c := range h.calls { // they came too late
		c.answer <- stopped("prune", h.d.dir)
	}
	h.calls = nil
	h.change.Broadcast()
}

func (h *hydrator) run(ctx context.Context) {
	defer close(h.done)
	pauses := &backoff.ExponentialBackOff{InitialInterval: firstHydrationRetry, MaxInterval: lastHydrationRetry, Multiplier: 2, RandomizationFactor: 0.3}
	pauses.Reset()
	retry := time.NewTimer(lastHydrationRetry)
	defer retry.Stop()
	for {
		select {
		case <-h.wake:
		case <-retry.C:
		case <-ctx.Done():
			return
		}
		h.answer(ctx)
		wait, err := h.round(ctx)
		if err != nil {
			wait = min(wait, pauses.NextBackOff())
		} else {
			pauses.Reset()
		}
		retry.Reset(wait)
	}
}

// round does all work that can be done now, and returns how long to wait for more.
func (h *hydrator) round(ctx context.Context) (wait time.Duration, err error) {
	h.mu.Lock()
	asked, urgent := h.asked, h.urgent > 0
	h.mu.Unlock()
	wait, err = h.hydrateAll(ctx, urgent)
	err = errors.Join(err, h.release(ctx), h.sweep(ctx), h.describe(ctx), h.retainAll(ctx), h.enlargeAll(ctx), h.sweep(ctx), h.count(ctx), h.overBudget(ctx))
	if ctx.Err() == nil {
		h.d.report("hydrate", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.did, h.failed = asked, err
	h.change.Broadcast()
	return wait, err
}

// count counts the files that ended sessions have left.
func (h *hydrator) count(ctx context.Context) error {
	n, err := h.d.catalog.Remains(ctx)
	if err != nil {
		return storageError("hydrate", h.d.catalog.Path(), err)
	}
	h.d.remains.Store(int64(n))
	return nil
}

// idle reports whether a round has finished since work was last announced. What is left then
// cannot be done at present.
func (h *hydrator) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.did >= h.asked
}

// settle waits until all work is done that can be done at present, and returns an error
// for the rest.
func (h *hydrator) settle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.change.Broadcast()
	})
	defer stop()
	h.hurry(1)
	defer h.hurry(-1)
	h.nudge()
	h.mu.Lock()
	defer h.mu.Unlock()
	for want := h.asked; h.did < want; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.change.Wait()
	}
	return h.failed
}

// hurry records that a caller begins, or stops, waiting for everything to be done.
func (h *hydrator) hurry(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.urgent += n
}

// hydrateAll completes every session that it can. A failure does not delay the others.
// Unless urgent is set, it skips sessions that are too young, and returns how long to wait
// for these.
func (h *hydrator) hydrateAll(ctx context.Context, urgent bool) (wait time.Duration, err error) {
	wait = lastHydrationRetry
	waiting, err := h.d.catalog.Incomplete(ctx)
	if err != nil {
		return wait, err
	}
	many := manyFiles
	if h.d.Behind() {
		many = max(fewFiles, min(many, h.d.options.pacing.remains/2/max(1, len(waiting))))
	}
	var errs []error
	held := map[journal.SessionID]bool{}
	for _, e := range waiting {
		h.d.crossing.giveWay()
		s := h.d.opened(e.Session)
		if e.Live && s == nil { // it is not open, so it has no writer to stop
			errs = append(errs, h.hold(ctx, e, held))
			continue
		}
		young := false
		if s != nil && !urgent {
			if due := quiet - time.Since(s.cuts.made); due > 0 {
				wait, young = min(wait, due), true
			}
			if young && s.shelf.files() <= many {
				continue
			}
		}
		switch err := h.attend(ctx, e, young, many); {
		case ctx.Err() != nil:
			return wait, ctx.Err()
		case err != nil && !errors.Is(err, errCutAgain):
			errs = append(errs, h.hold(ctx, e, held),
				fmt.Errorf("the history of session %s is not in its own file yet: %w", e.Session, storageError("hydrate", h.d.catalog.Path(), err)))
		case h.d.Behind(): // changes may be waiting
			errs = append(errs, h.release(ctx), h.sweep(ctx), h.count(ctx))
		}
	}
	h.d.held.Store(int64(len(held)))
	return wait, errors.Join(errs...)
}

// hold adds to held the sessions whose files e needs, because e cannot get its whole file
// at present. If e has been cut meanwhile, hold adds none: its children, which need those
// files now, may get theirs.
func (h *hydrator) hold(ctx context.Context, e catalog.Entry, held map[journal.SessionID]bool) error {
	now, err := h.d.catalog.Entry(ctx, "hydrate", e.Session)
	if err != nil || now.Live != e.Live {
		return err
	}
	needed, err := h.d.catalog.Needed(ctx, e.Session)
	for _, p := range needed {
		held[p.Session] = true
	}
	return storageError("hydrate", h.d.catalog.Path(), err)
}

// attend makes the whole file of a session. If the session is read from many files, attend
// first makes those of some of its ancestors. A young session gets no file, but is read
// from the files that it then still needs.
func (h *hydrator) attend(ctx context.Context, e catalog.Entry, young bool, many int) error {
	for {
		target, err := h.target(ctx, e, many)
		if err != nil {
			return err
		}
		if young && target.Session == e.Session {
			return h.d.readAgain(ctx, e)
		}
		if err := h.hydrate(ctx, target); err != nil || target.Session == e.Session {
			return err
		}
	}
}

// target returns the session whose history is merged next, so that a given one is read
// from fewer files: the session itself or, if the files are many, its youngest incomplete
// ancestor. That ancestor has ended and cannot be cut again, so the number of files stays
// bounded even if cuts never cease.
func (h *hydrator) target(ctx context.Context, e catalog.Entry, many int) (catalog.Entry, error) {
	needed, err := h.d.catalog.Needed(ctx, e.Session)
	if err != nil || len(needed) <= many {
		return e, err
	}
	for _, p := range slices.Backward(needed) {
		if !p.Complete && !h.d.keeper.holds(p.Session) {
			return p, nil
		}
	}
	return e, nil
}
