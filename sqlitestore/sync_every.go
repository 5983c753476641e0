package sqlitestore

import (
	"context"
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

// checkSyncEvery refuses a time that is out of range.
func checkSyncEvery(d time.Duration) error {
	if d == 0 || journal.MinSyncEvery <= d && d <= journal.MaxSyncEvery {
		return nil
	}
	return invalid("open", fmt.Sprintf("the time between syncs, %v, is out of range", d),
		fmt.Sprintf("use a time from %v to %v, or 0 to leave it to the system", journal.MinSyncEvery, journal.MaxSyncEvery))
}

// syncEvery returns the time after which what the store writes is synced, or 0.
func (s *Store) syncEvery() time.Duration {
	if s.durability != journal.Normal {
		return 0
	}
	return time.Duration(s.every.Load())
}

// SyncDue syncs the stores that are due by [Options.Now], and returns the time until the next
// one is due. It is for a clock that the caller advances, and whose timers do not fire.
// What was appended is written first, so that the result depends on the clock alone. A
// sync that fails is one of the [Directory.Problems].
func (d *Directory) SyncDue(ctx context.Context) (wait time.Duration, ok bool) {
	for _, s := range d.allOpen() {
		if s.syncEvery() > 0 {
			_ = s.flush(ctx) // what is not written needs no sync yet
		}
	}
	now := d.options.Now()
	d.syncs.round(now)
	at, ok := d.syncs.first(now, false)
	return at.Sub(now), ok
}

// syncs makes the write-ahead logs of stores of the durability normal durable from time to
// time: each log at most once in its period, and none to which nothing was written.
//
// A log is due one period after the first record that is not durable. The goroutine waits
// for the log that is due first. A log whose sync fails is due again after another period.
type syncs struct {
	every  time.Duration // [Options.SyncEvery]
	now    func() time.Time
	timer  func(time.Duration) (<-chan time.Time, func())
	hooks  failpoint.Hooks
	report func(error)
	empty  func(path string) // requests a checkpoint

	working sync.Mutex // held while a log is synced; taken before mu

	mu     sync.Mutex
	due    map[string]dueSync // stores with records that are not durable
	armed  time.Time          // when the goroutine wakes up by itself; zero: never
	named  map[string]bool    // whose logs have durable names
	failed map[string]error   // whose syncs have failed at any time

	wake chan struct{} // has room for one: something is due before armed
	stop chan struct{}
	done chan struct{}
}

// dueSync is when a log is to be synced.
type dueSync struct {
	at    time.Time
	every time.Duration
}

func startSyncs(d *Directory) *syncs {
	y := &syncs{
		every: d.options.SyncEvery, now: d.options.Now, timer: d.options.Timer, hooks: d.options.hooks,
		report: func(err error) { d.report("sync", err) }, empty: d.checkpoints.ask,
		due: map[string]dueSync{}, named: map[string]bool{}, failed: map[string]error{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go y.run()
	return y
}

// periodOf returns the time after which a store with certain metadata is synced, or 0.
func (y *syncs) periodOf(meta map[string]string) time.Duration {
	if y.every != 0 {
		return y.every
	}
	return journal.SyncEvery(meta)
}

// wrote records that a store was written to, and is to be synced after a time.
func (y *syncs) wrote(path string, every time.Duration) {
	if every == 0 {
		return
	}
	at := y.now().Add(every)
	y.mu.Lock()
	before, waits := y.due[path]
	if waits = waits && !at.Before(before.at); !waits {
		y.due[path] = dueSync{at, every}
	}
	first := !waits && (y.armed.IsZero() || at.Before(y.armed))
	y.mu.Unlock()
	if first {
		nudge(y.wake)
	}
}

// forget drops a store whose file is no longer written to.
func (y *syncs) forget(path string) {
	y.working.Lock()
	defer y.working.Unlock()
	y.mu.Lock()
	delete(y.due, path)
	delete(y.named, path) // SQLite removes the log
	_, failed := y.failed[path]
	delete(y.failed, path)
	y.mu.Unlock()
	if failed {
		y.report(y.failures())
	}
}

func (y *syncs) run() {
	defer close(y.done)
	for {
		at, ok := y.first(y.now(), true)
		if !ok {
			select {
			case <-y.wake:
				continue
			case <-y.stop:
				return
			}
		}
		passed, end := y.timer(at.Sub(y.now()))
		select {
		case <-passed:
			y.round(at) // even if the clock has been set back
		case <-y.wake:
			end()
		case <-y.stop:
			end()
			return
		}
	}
}

// first returns when the next log is due. No log is due in more than its period, however the
// clock is set. With arm, the goroutine is woken up if one becomes due before that.
func (y *syncs) first(now time.Time, arm bool) (at time.Time, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for path, d := range y.due {
		if latest := now.Add(d.every); d.at.After(latest) {
			d.at = latest
			y.due[path] = d
		}
		if !ok || d.at.Before(at) {
			at, ok = d.at, true
		}
	}
	if arm {
		y.armed = at
	}
	return at, ok
}

// round makes durable what has been written to the logs that are due at a time.
func (y *syncs) round(at time.Time) {
	y.mu.Lock()
	var paths []string
	for path, d := range y.due {
		if !d.at.After(at) {
			paths = append(paths, path)
		}
	}
	y.mu.Unlock()
	if len(paths) == 0 {
		return
	}
	slices.Sort(paths)
	for _, path := range paths {
		if y.sync(path) != nil {
			y.empty(path)
		}
	}
	y.report(y.failures())
}

// failures returns the errors of syncs of open stores.
func (y *syncs) failures() error {
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
	y.working.Lock()
	defer y.working.Unlock()
	y.mu.Lock()
	was, written := y.due[path]
	named := y.named[path]
	delete(y.due, path) // what is written from now on is for the next round
	y.mu.Unlock()
	if !written {
		return nil // it has been closed meanwhile
	}
	err := y.hooks.SyncLog(path)
	if err == nil && !named {
		err = y.hooks.SyncDirectory(filepath.Dir(path))
	}
	if err != nil {
		y.wrote(path, was.every)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if err != nil {
		y.failed[path] = err
		return err
	}
	y.named[path] = true
	return nil
}

func (y *syncs) close() {
	close(y.stop)
	<-y.done
}
