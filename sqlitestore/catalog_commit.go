package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed47132306/terrarium/abi"
)

// catalogTries is how often a catalogue whose commit failed is asked what
// became of it.
const catalogTries = 5

// takeCatalog opens the catalogue of a directory that this process owns.
func takeCatalog(path string) (*catalog, error) {
	k := &catalog{path: path}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.ready()
}

// ready opens the catalogue, unless it is open, and makes certain what it says.
// The caller holds mu.
//
// After a commit that failed, or whose process was killed, a power loss may still
// decide otherwise than the file: what is found may not have reached the disk, and
// what is not found may be there all the same, behind what SQLite takes for the end
// of the write-ahead log, or in a log that it has removed. Nobody may act on either,
// so there is a commit, of nothing, before anything is answered.
func (k *catalog) ready() error {
	if k.c != nil {
		return nil
	}
	c, err := openCatalogFile(k.path, readWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.sync(catalogSchema), c.tempo(false)); err != nil {
		return errors.Join(err, c.close())
	}
	k.c = c
	return nil
}

// errUnknown is in the chain of an error after which nobody knows whether the
// catalogue was changed. The files concerned must then be left alone: the next
// start finds out.
var errUnknown = errors.New("the outcome is unknown")

// commit runs change in the transaction of a step, and makes it durable, unless the
// step says that it need not be. When the commit itself fails it is unknown what
// reached the disk; then landed, a query that answers a row if the change was made,
// decides whether commit succeeded.
//
// Nobody has to wait for the disk who only wants to ask or change something else
// meanwhile: what is committed later is not there without what was before.
func (k *catalog) commit(h hooks, s step, change func() error, landed string, args ...driver.Value) error {
	tried, err := k.transact(h, s, change)
	return k.conclude(h, s, tried, err, landed, args...)
}

// commitBriefly is commit for somebody who has to keep others out while the change is
// made, but not while it is made durable.
func (k *catalog) commitBriefly(lock sync.Locker, h hooks, s step, change func() error, landed string, args ...driver.Value) error {
	lock.Lock()
	tried, err := k.transact(h, s, change)
	lock.Unlock()
	return k.conclude(h, s, tried, err, landed, args...)
}

// conclude is the rest of commit after the transaction.
func (k *catalog) conclude(h hooks, s step, tried bool, err error, landed string, args ...driver.Value) error {
	if err == nil && !s.loose {
		err = h.syncLog(k.path)
	}
	if err == nil {
		err = h.at(s.after, k.path)
	}
	if err == nil || !tried || fullDisk(err) { // what would have ended the transaction was not written as a whole
		return err
	}
	found, lookErr := backoff.Retry(context.Background(), func() (bool, error) {
		return k.look(landed, args)
	}, backoff.WithMaxTries(catalogTries), backoff.WithMaxElapsedTime(time.Second))
	switch {
	case lookErr != nil:
		return &abi.Error{
			Code:    abi.UnknownOutcome,
			Op:      "commit",
			Message: k.path + ": it is unknown whether the change was made",
			Remedy:  "close the directory and open it again, when the disk works",
			IDs:     map[string]string{"path": k.path},
			Err:     errors.Join(errUnknown, err, lookErr),
		}
	case found:
		return nil
	}
	return err
}

// transact runs change in a transaction, which is not durable yet, and answers
// whether it has tried to commit that.
func (k *catalog) transact(h hooks, s step, change func() error) (tried bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ready(); err != nil {
		return false, err
	}
	err = k.c.transact(func() error {
		err := change()
		if err == nil {
			err = h.at(s.before, k.path)
		}
		tried = err == nil
		return err
	})
	if err != nil && k.c.rollback() != nil {
		k.giveUp()
	}
	if k.wrote != nil {
		k.wrote()
	}
	return tried, err
}

// look asks the file itself, through a new connection; see ready.
func (k *catalog) look(landed string, args []driver.Value) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.giveUp()
	if err := k.ready(); err != nil {
		return false, err
	}
	_, found, err := k.c.integer(landed, args...)
	return found, err
}

// giveUp closes the connection, if there is one, whatever that says. The caller
// holds mu.
func (k *catalog) giveUp() {
	if k.c != nil {
		_ = k.c.close()
		k.c = nil
	}
}

// commitWithin is commit for somebody who does not wait for longer than ctx lasts:
// if that ends before the transaction has begun, nothing happens.
func (k *catalog) commitWithin(ctx context.Context, h hooks, s step, change func() error, landed string, args ...driver.Value) error {
	var decided atomic.Bool // that the change is made, or that nobody waits for it
	done := make(chan error, 1)
	go func() {
		done <- k.commit(h, s, func() error {
			if decided.Swap(true) {
				return ctx.Err()
			}
			return change()
		}, landed, args...)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if decided.Swap(true) {
			return <-done
		}
		return ctx.Err()
	}
}
