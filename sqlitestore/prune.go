package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// PruneReport describes the part of a history that has been pruned, or would be pruned.
type PruneReport struct {
	Session journal.SessionID
	Events  int64 // before
	Given   int64 // how many of them are pruned, the oldest
	Since   int64 // the time from which everything is kept; 0: nothing is pruned
	// Held says that more is kept than requested, because it is still to be read.
	Held bool
	// The size of the session's history and rows in files, before and after. For files in
	// use it is less than their size on disk: their logs are removed when they are closed.
	Bytes, Left int64
}

// PlanPrune reports what [Directory.Prune] would prune. It changes nothing.
func (v *View) PlanPrune(ctx context.Context, session journal.SessionID, bound Retention) (r PruneReport, err error) {
	err = v.catalog.withFamily(ctx, "prune", session, func(e catalog.Entry, f *family) (err error) {
		if err := prunable(e); err != nil {
			return err
		}
		r, err = f.planPrune(ctx, e, bound)
		return err
	})
	return r, err
}

// Prune removes the oldest part of the history of a live session, at once and exactly down
// to the bound; retention in the background waits until it is worth rewriting a file. What
// is still to be read, and everything later, is kept. Prune returns when this is done and
// durable. The session need not be open.
func (d *Directory) Prune(ctx context.Context, session journal.SessionID, bound Retention) (r PruneReport, err error) {
	e, err := d.catalog.Entry(ctx, "prune", session)
	if err == nil {
		err = prunable(e)
	}
	if err != nil {
		return r, err
	}
	s := d.opened(session)
	if s == nil {
		opened, err := d.Open(ctx, session)
		if err != nil {
			return r, err
		}
		s = opened.(*Store)
		defer func() { err = errors.Join(err, s.Close(ctx)) }()
	}
	if err := s.flush(ctx); err != nil {
		return r, err
	}
	done := make(chan PruneReport, 1)
	err = d.hydrator.call(ctx, func(ctx context.Context) error {
		r, err := d.hydrator.prune(ctx, s, bound)
		done <- r
		return err
	})
	if err != nil {
		return r, err
	}
	return <-done, nil
}

// prunable refuses a session that has ended: its history is in the files of its
// descendants, or its own file is all that is left of it.
func prunable(e catalog.Entry) error {
	if e.Live {
		return nil
	}
	return &abi.Error{
		Code: abi.InvalidArgument, Op: "prune", Message: fmt.Sprintf("session %s has ended, and keeps its history", e.Session),
		Remedy: "prune the live ones; session list shows them", IDs: map[string]string{"session": string(e.Session)},
	}
}

// prune prunes a store, in the goroutine that makes files.
func (h *hydrator) prune(ctx context.Context, s *Store, bound Retention) (r PruneReport, err error) {
	e, err := h.d.catalog.Entry(ctx, "prune", s.info.Session)
	if err != nil {
		return r, err
	}
	if !e.Complete {
		if err := h.attend(ctx, e, false, manyFiles); err != nil {
			return r, h.whyNotPruned(ctx, e, err)
		}
		if e, err = h.d.catalog.Entry(ctx, "prune", s.info.Session); err != nil {
			return r, err
		}
	}
	err = s.read(ctx, "prune", func(f *family) (err error) {
		r, err = f.planPrune(ctx, e, bound)
		return err
	})
	if err != nil || r.Since == 0 {
		r.Left = r.Bytes
		return r, err
	}
	if err := h.rewrite(ctx, e, r.Since); err != nil {
		return r, h.whyNotPruned(ctx, e, err)
	}
	h.d.indexer.lookAgain()
	err = s.read(ctx, "prune", func(f *family) (err error) {
		r.Left, err = f.size(ctx)
		return err
	})
	return r, errors.Join(err, h.sweep(ctx))
}

// whyNotPruned is the error for a session that was cut while its file was written.
func (h *hydrator) whyNotPruned(ctx context.Context, e catalog.Entry, err error) error {
	if !errors.Is(err, errCutAgain) {
		return err
	}
	now, lookErr := h.d.catalog.Entry(ctx, "prune", e.Session)
	if lookErr != nil || now.Live {
		return storageError("prune", e.Path, err)
	}
	return prunable(now)
}

// planPrune determines what a bound prunes, without slack.
func (f *family) planPrune(ctx context.Context, e catalog.Entry, bound Retention) (r PruneReport, err error) {
	r = PruneReport{Session: e.Session}
	if r.Bytes, err = f.size(ctx); err != nil {
		return r, err
	}
	v, err := f.look(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	if err != nil || len(spans) == 0 {
		return r, err
	}
	h := summary(spans)
	r.Events = h.count
	since, err := bound.from(ctx, spans, h, r.Bytes, 1)
	if err != nil || since <= h.oldest {
		return r, err
	}
	needed, err := v.neededFrom(ctx)
	if err != nil {
		return r, err
	}
	r.Held = needed < since
	if since = min(since, needed); since <= h.oldest {
		return r, nil
	}
	left, err := countFrom(ctx, spans, since)
	if r.Given = r.Events - left; r.Given > 0 {
		r.Since = since
	}
	return r, err
}

// size returns the size of a family's files at rest.
func (f *family) size(ctx context.Context) (bytes int64, err error) {
	for _, r := range f.members() {
		n, err := r.size(ctx)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// size returns the size of the file after a checkpoint.
func (r *reader) size(ctx context.Context) (bytes int64, err error) {
	err = sqlite.Each(ctx, r.db, func(scan func(...any) error) error { return scan(&bytes) },
		"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
	return bytes, err
}
