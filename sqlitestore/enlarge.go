package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
)

const (
	// smallPage is the size of the pages of the file of a new session, if there are many. Each
	// table and each index of an empty file takes a page, so that the file takes 30 KB instead
	// of 130.
	smallPage = 512
	// outgrownBytes is the size from which a file gets pages of the usual size: writing to
	// small ones takes a third more processor time.
	outgrownBytes = 256 << 10
)

// pages records whether the file of a store has small pages, and whether it is too large
// for them.
type pages struct{ small, outgrown atomic.Bool }

// smallest returns the size from which a file gets pages of the usual size.
func (d *Directory) smallest() int64 { return cmp.Or(d.options.hooks.Outgrown, outgrownBytes) }

// outgrew wakes the background, which enlarges the pages of stores that are marked as
// outgrown.
func (d *Directory) outgrew() { d.hydrator.nudge() }

// enlargeAll rewrites the files of stores that have outgrown their small pages, each to a
// new file beside it, as when history is pruned. This includes files that an earlier process
// has begun to rewrite. Without space for a new file, a file stays as it is.
func (h *hydrator) enlargeAll(ctx context.Context) error {
	begun, err := h.d.catalog.Hydrations(ctx)
	if err != nil {
		return storageError("enlarge", h.d.catalog.Path(), err)
	}
	h.d.mu.Lock()
	for _, y := range begun {
		if s := h.d.open[y.Session]; s != nil && s.pages.small.Load() {
			s.pages.outgrown.Store(true)
		}
	}
	var outgrown []*Store
	for _, s := range h.d.open {
		if s.pages.outgrown.Load() && s.complete.Load() {
			outgrown = append(outgrown, s)
		}
	}
	h.d.mu.Unlock()
	var errs []error
	for _, s := range outgrown {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := h.enlarge(ctx, s); !errors.Is(err, errCutAgain) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (h *hydrator) enlarge(ctx context.Context, s *Store) error {
	e, err := h.d.catalog.Entry(ctx, "enlarge", s.info.Session)
	if err != nil || !e.Live || h.d.room(e, nil) != nil {
		return err
	}
	return h.rewrite(ctx, e, 0)
}
