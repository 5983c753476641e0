package sqlitestore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/seed47132306/terrarium/engine/journal"
)

// keeper does the work that a cut and its creatures need not wait for: it makes cuts
// durable, and closes the stores that cuts have ended.
type keeper struct {
	d *Directory

	mu     sync.Mutex
	buried []*Store
	loans  []*loan // that were lent, and may still be in use
	closed bool
	idle   *sync.Cond // buried has become empty; uses mu

	wake chan struct{} // has room for one: there is something to do
	stop chan struct{}
	done chan struct{}
}

func startKeeper(d *Directory) *keeper {
	k := &keeper{d: d, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	k.idle = sync.NewCond(&k.mu)
	go k.run()
	return k
}

// run works until the keeper is closed. While cuts cannot be made durable, it tries again,
// as writers do, since some stores acknowledge nothing until then.
func (k *keeper) run() {
	defer close(k.done)
	pauses := &backoff.ExponentialBackOff{InitialInterval: firstRetry, MaxInterval: lastRetry, Multiplier: 2, RandomizationFactor: 0.3}
	pauses.Reset()
	var again <-chan time.Time
	trim := time.NewTicker(calm)
	defer trim.Stop()
	for {
		select {
		case <-k.wake:
		case <-trim.C:
			k.d.awake.trim()
		case <-again:
			again = nil
			_ = k.d.makeFirm() // an error is recorded as a problem of the directory
		case <-k.stop:
			return
		}
		for k.work() {
		}
		switch {
		case !k.d.loose.stuck():
			again = nil
			pauses.Reset()
		case again == nil: // otherwise the timer is already running
			again = time.After(pauses.NextBackOff())
		}
	}
}

// closedTogether is how many stores are closed at the same time: closing waits for the disk,
// and the disk can sync several files at a time.
const closedTogether = 16

// work performs one task of each kind, and reports whether there may be more.
func (k *keeper) work() bool {
	k.d.crossing.giveWay()
	due := k.d.loose.due()
	if due {
		_ = k.d.makeFirm() // an error is recorded as a problem of the directory
	}
	batch := k.closable()
	var closing sync.WaitGroup
	for _, s := range batch {
		closing.Go(func() {
			// Its children have everything that it had, so an error affects no session.
			_ = s.Close(context.Background())
		})
	}
	closing.Wait()
	k.mu.Lock()
	k.buried = k.buried[len(batch):]
	if len(k.buried) == 0 {
		k.idle.Broadcast()
	}
	var l *loan
	if n := len(k.loans); n > 0 {
		l, k.loans = k.loans[n-1], k.loans[:n-1]
	}
	k.mu.Unlock()
	if len(batch) > 0 {
		k.d.hydrator.nudge()
	}
	_ = l.finish() // files that were only read
	return due || len(batch) > 0 || l != nil
}

// closable returns the first of the buried stores that can be closed now. While cuts
// cannot be made durable, stores that depend on one cannot be closed. Callers that wait
// for the keeper are then woken.
func (k *keeper) closable() []*Store {
	stuck := k.d.loose.stuck()
	k.mu.Lock()
	defer k.mu.Unlock()
	if stuck {
		k.idle.Broadcast()
	}
	batch := k.buried[:min(len(k.buried), closedTogether)]
	if stuck {
		if i := slices.IndexFunc(batch, func(s *Store) bool { return !s.asDurable() }); i >= 0 {
			batch = batch[:i]
		}
	}
	return slices.Clone(batch)
}

// waiting returns the number of stores that are still to be closed.
func (k *keeper) waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.buried)
}

// bury lets the background close a store.
func (d *Directory) bury(s *Store) {
	k := d.keeper
	k.mu.Lock()
	k.buried = append(k.buried, s)
	k.mu.Unlock()
	nudge(k.wake)
}

// giveBack closes, in the background, files from which a store is no longer read.
func (k *keeper) giveBack(l *loan) {
	k.mu.Lock()
	k.loans = append(k.loans, l)
	k.mu.Unlock()
	nudge(k.wake)
}

// settle waits until all buried stores are closed, or cannot be closed at present.
func (k *keeper) settle(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.idle.Broadcast()
	})
	defer stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.buried) > 0 && ctx.Err() == nil && !k.closed && !k.d.loose.stuck() {
		k.idle.Wait()
	}
	return ctx.Err()
}

// holds reports whether the store of a session is still to be closed.
func (k *keeper) holds(session journal.SessionID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.buried, func(s *Store) bool { return s.info.Session == session })
}

// close ends the goroutine and closes what is still open.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.idle.Broadcast()
	k.mu.Unlock()
	close(k.stop)
	<-k.done
	for _, s := range k.buried {
		_ = s.Close(context.Background())
	}
	for _, l := range k.loans {
		_ = l.finish()
	}
}
