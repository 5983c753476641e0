package sqlitestore

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// The bounds of [Options.SyncEvery]. A shorter time is what the durability full is for, and a
// longer one is no better than none.
const (
	minSyncEvery = 10 * time.Millisecond
	maxSyncEvery = 24 * time.Hour
)

// checkSyncEvery refuses a time that makes no sense.
func checkSyncEvery(d time.Duration) error {
	if d == 0 || minSyncEvery <= d && d <= maxSyncEvery {
		return nil
	}
	return invalid("open", fmt.Sprintf("syncing every %v makes no sense", d),
		fmt.Sprintf("use a time from %v to %v, or 0 to leave it to the system", minSyncEvery, maxSyncEvery))
}

// syncs makes the write-ahead logs of stores of the durability normal durable from time to
// time: each log at most once in a period, and none to which nothing was written.
//
// Its goroutine waits until something is written, then for one period, and then syncs what
// was written until then. A log whose sync fails stays in the set.
type syncs struct {
	every  time.Duration
	hooks  failpoint.Hooks
	report func(error)
	empty  func(path string) // asks for a checkpoint

	working sync.Mutex // held while a log is synced; taken before mu

	mu      sync.Mutex
	written map[string]bool  // stores with records that are not durable
	named   map[string]bool  // whose logs have durable names
	failed  map[string]error // whose syncs have failed at any time

	wake chan struct{} // has room for one: something was written
	stop chan struct{}
	done chan struct{}
}

// startSyncs returns nil, of which all methods do nothing, if there is no period.
func startSyncs(d *Directory) *syncs {
	if d.options.SyncEvery == 0 {
		return nil
	}
	y := &syncs{
		every: d.options.SyncEvery, hooks: d.options.hooks, report: func(err error) { d.report("sync", err) }, empty: d.checkpoints.ask,
		failed: map[string]error{}, written: map[string]bool{}, named: map[string]bool{}, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go y.run()
	return y
}

// wrote notes that records of a store were written.
func (y *syncs) wrote(path string, durability journal.Durability) {
	if y == nil || durability != journal.Normal {
		return
	}
	y.mu.Lock()
	y.written[path] = true
	y.mu.Unlock()
	nudge(y.wake)
}

// forget drops a store whose file is no longer written to.
func (y *syncs) forget(path string) {
	if y == nil {
		return
	}
	y.working.Lock()
	defer y.working.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.written, path)
	delete(y.named, path) // SQLite removes the log
	if y.failed[path] != nil {
		delete(y.failed, path)
		nudge(y.wake) // the next round no longer reports it
	}
}

func (y *syncs) run() {
	defer close(y.done)
	for {
		select {
		case <-y.wake:
		case <-y.stop:
			return
		}
		period, end := y.hooks.Wait(y.every)
		select {
		case <-period:
		case <-y.stop:
			end()
			return
		}
		y.report(y.round())
	}
}

// round makes everything durable that has been written.
func (y *syncs) round() error {
	y.mu.Lock()
	paths := make([]string, 0, len(y.written))
	for path := range y.written {
		paths = append(paths, path)
	}
	y.mu.Unlock()
	slices.Sort(paths)
	for _, path := range paths {
		if y.sync(path) != nil {
			y.empty(path)
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(y.failed)) {
		errs = append(errs, storageError("sync", path, y.failed[path]))
	}
	return errors.Join(errs...)
}

// sync makes the log of a store durable, if something was written to it.
func (y *syncs) sync(path string) error {
	if y == nil {
		return nil
	}
	y.working.Lock()
	defer y.working.Unlock()
	y.mu.Lock()
	written := y.written[path]
	named := y.named[path]
	delete(y.written, path) // what is written from now on is for the next round
	y.mu.Unlock()
	if !written {
		return nil // it has been closed meanwhile
	}
	err := y.hooks.SyncLog(path)
	if err == nil && !named {
		err = y.hooks.SyncDirectory(filepath.Dir(path))
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if err != nil {
		y.written[path] = true
		y.failed[path] = err
		nudge(y.wake)
		return err
	}
	y.named[path] = true
	return nil
}

func (y *syncs) close() {
	if y == nil {
		return
	}
	close(y.stop)
	<-y.done
}
