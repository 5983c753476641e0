package sqlitestore

import (
	"context"
	"maps"
	"slices"
)

// Problems lists what is wrong with the directory at present: files that were set
// aside when it was opened, and what cannot be done in the background, such as
// copying a history while the disk is full. It may be called by any goroutine.
func (d *Directory) Problems() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.problems)
	for _, key := range slices.Sorted(maps.Keys(d.troubles)) {
		out = append(out, d.troubles[key])
	}
	return out
}

// problem notes something that stays wrong as long as the directory is open.
func (d *Directory) problem(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = append(d.problems, err)
}

// report notes what is wrong with some work at present; nil: nothing.
func (d *Directory) report(work string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.troubles, work)
		return
	}
	d.troubles[work] = err
}

// Settle waits until the history of every session that is open is in its own
// file, and files that nobody needs are gone. It answers what stands in the way
// of that at present. It may be called by any goroutine.
func (d *Directory) Settle(ctx context.Context) error { return d.hydrator.settle(ctx) }
