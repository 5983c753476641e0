package catalog

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// catalogTries is how often the outcome of a failed commit is looked up.
const catalogTries = 5

// Take opens the catalogue of a directory that this process owns.
func Take(path string, h failpoint.Hooks) (*Catalog, error) {
	k := &Catalog{path: path, hooks: h}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.connection.ready(path)
}

// ready opens the catalogue at path, unless it is open, and makes its content certain.
//
// After a commit that failed, or whose process was killed, the file does not show what a
// power loss would leave. Content of the file may not have reached the disk. Content that
// the file lacks may be on the disk nevertheless: after the place that SQLite takes for
// the end of the write-ahead log, or in a log that it has removed. No caller may act on
// either, so ready makes an empty commit before it lets any caller read.
func (k *connection) ready(path string) error {
	if k.Conn != nil {
		return nil
	}
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Sync(Schema), setUp(c)); err != nil {
		return errors.Join(err, c.Close())
	}
	k.Conn = c
	return nil
}

// ErrUnknown is in the chain of an error after which it is not known whether the
// catalogue was changed. The files concerned must then be left alone: the next start
// finds out.
var ErrUnknown = errors.New("the outcome is unknown")

// commit runs change in the transaction of a step, and makes it durable, unless the step
// says that it need not be. If the commit itself fails, it is unknown what has reached
// the disk. In that case the query landed decides whether commit has succeeded: it
// returns a row if the change was made.
//
// Callers that read, or make another change meanwhile, do not wait for the disk: a later
// commit is never present without the earlier one. A lock, if given, is held while the
// change is made, but not while it is made durable.
func (k *Catalog) commit(lock sync.Locker, s step, change func(t *Tx) error, landed string, args ...driver.Value) error {
	if lock != nil {
		lock.Lock()
	}
	tried, err := k.transact(s, change)
	if lock != nil {
		lock.Unlock()
	}
	if err == nil && !s.loose {
		err = k.hooks.SyncLog(k.path)
	}
	if err == nil {
		err = k.hooks.At(s.after, k.path)
	}
	if err == nil || !tried || sqlite.FullDisk(err) { // on a full disk, the end of the transaction was not written completely
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
			Remedy:  "close the directory, and open it again once the disk works",
			IDs:     map[string]string{"path": k.path},
			Err:     errors.Join(ErrUnknown, err, lookErr),
		}
	case found:
		return nil
	}
	return err
}

// transact runs change in a transaction, which is not durable yet, and reports whether it
// has tried to commit.
func (k *Catalog) transact(s step, change func(t *Tx) error) (tried bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.connection.ready(k.path); err != nil {
		return false, err
	}
	err = k.connection.Transact(func() error {
		err := change(&Tx{k.connection.Conn})
		if err == nil {
			err = k.hooks.At(s.before, k.path)
		}
		tried = err == nil
		return err
	})
	if err != nil && k.connection.Rollback() != nil {
		k.connection.disconnect()
	}
	if k.wrote != nil {
		k.wrote()
	}
	return tried, err
}

// look reads the outcome from the file, through a new connection; see ready.
func (k *Catalog) look(landed string, args []driver.Value) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.connection.disconnect()
	if err := k.connection.ready(k.path); err != nil {
		return false, err
	}
	_, found, err := k.connection.Integer(landed, args...)
	return found, err
}

// disconnect closes the connection, if there is one, and ignores its errors.
func (k *connection) disconnect() {
	if k.Conn != nil {
		_ = k.Close()
		k.Conn = nil
	}
}

// commitWithin is commit with a context: if ctx ends before the transaction has begun,
// nothing happens.
func (k *Catalog) commitWithin(ctx context.Context, s step, change func(t *Tx) error, landed string, args ...driver.Value) error {
	var decided atomic.Bool // the change has begun, or the caller has left
	done := make(chan error, 1)
	go func() {
		done <- k.commit(nil, s, func(t *Tx) error {
			if decided.Swap(true) {
				return ctx.Err()
			}
			return change(t)
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
