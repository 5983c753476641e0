package sqlitestore

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Problems lists what is wrong with the directory at present: open stores that cannot be
// written, background work that cannot be done, such as copying a history while the disk
// is full, and histories with missing parts. It may be called by any goroutine.
func (d *Directory) Problems() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []error
	for _, session := range slices.Sorted(maps.Keys(d.open)) {
		if err := d.open[session].Err(); err != nil {
			out = append(out, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.troubles)) {
		known := func(other error) bool { return other.Error() == d.troubles[key].Error() }
		if !slices.ContainsFunc(out, known) { // work that waits for such a store reports the same
			out = append(out, d.troubles[key])
		}
	}
	return out
}

// report records what is wrong with some work at present; nil: nothing.
func (d *Directory) report(work string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.troubles, work)
		return
	}
	d.troubles[work] = err
}

// historyOf names the work that is blocked as long as a part of a history is missing.
func historyOf(session journal.SessionID) string { return "history of " + string(session) }

// Settle waits until the history of every open session is in its own file, and files that
// are no longer needed are removed. It returns an error if something prevents that at
// present. It may be called by any goroutine.
func (d *Directory) Settle(ctx context.Context) error {
	for _, s := range d.openBySize() {
		// How much may be pruned depends on written cursors. Stores that cannot be
		// written do not block it.
		if err := s.flush(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	if err := d.keeper.settle(ctx); err != nil {
		return err
	}
	return d.hydrator.settle(ctx)
}
