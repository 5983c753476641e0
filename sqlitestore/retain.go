package sqlitestore

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// Retention is how much history a store keeps. The zero value keeps all of it. What is
// still to be delivered, and everything after it, is kept in any case, and so is
// everything that is not history: state, timers, dead letters.
//
// Old history is pruned in the background, by writing the rest to a new file. So that
// this is worth the cost, a store may have up to a quarter more than it keeps afterwards.
type Retention struct {
	Age    time.Duration // events younger than this are kept; 0: of any age
	Events int64         // how many of the newest events are kept; 0: all
	Bytes  int64         // the size that the file of a store should have at most; 0: any

	now int64 // the time, if Age depends on it: see [Retention.cutoff]
}

func (r Retention) bounded() bool { return r != Retention{} }

// slack is how far a bound may be exceeded before the store is pruned.
const slack = 1.25

// retainAll keeps every open store within its bounds, and the directory within its
// budget.
func (h *hydrator) retainAll(ctx context.Context) error {
	d := h.d
	if !d.options.Retain.bounded() && d.options.MaxDiskBytes <= 0 {
		return nil
	}
	var errs []error
	for _, s := range d.openBySize() {
		if !s.complete.Load() || d.opened(s.info.Session) != s {
			continue // an incomplete store will get only what it keeps; or the store has been cut meanwhile
		}
		err := h.retain(ctx, s, h.bound(ctx, 0))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// bound returns how much history a store keeps. When the directory, together with what is
// about to be written, exceeds its budget, every open store gets an equal share.
func (d *Directory) bound(ctx context.Context, more int64) Retention {
	r := d.options.Retain
	if d.excess(ctx)+more > 0 && d.options.MaxDiskBytes > 0 {
		d.mu.Lock()
		share := max(d.options.MaxDiskBytes-d.indexSize(), 1) / int64(max(len(d.open), 1))
		d.mu.Unlock()
		if r.Bytes == 0 || share < r.Bytes {
			r.Bytes = share
		}
	}
	return r
}

// bound is [Directory.bound] at the present time. No history is too old while the clock may
// be wrong.
func (h *hydrator) bound(ctx context.Context, more int64) Retention {
	r := h.d.bound(ctx, more)
	if r.Age > 0 {
		now := h.d.options.Now()
		if r.now = now.UnixNano(); !h.jumps.calm(r.now, now.Sub(h.begun)) {
			r.Age = 0
		}
	}
	return r
}

// excess returns by how many bytes the directory exceeds its budget.
func (d *Directory) excess(ctx context.Context) (n int64) {
	if d.options.MaxDiskBytes <= 0 {
		return 0
	}
	entries, err := d.catalog.Entries(ctx)
	if err != nil {
		return 0
	}
	n = d.indexSize()
	for _, e := range entries {
		if e.File != "" {
			n += sqlite.DiskSize(e.Path)
		}
	}
	return n - d.options.MaxDiskBytes
}

// overBudget returns an error if the directory exceeds its budget although nothing can be
// pruned. It prunes once more before it reports that, because events may have been written
// since the round pruned.
func (h *hydrator) overBudget(ctx context.Context) error {
	d := h.d
	if d.excess(ctx) <= 0 {
		return nil
	}
	if err := errors.Join(h.retainAll(ctx), h.sweep(ctx)); err != nil || d.excess(ctx) <= 0 {
		return err
	}
	return &abi.Error{
		Code:    abi.LimitExceeded,
		Op:      "retain",
		Message: fmt.Sprintf("%s exceeds its budget of %d bytes: what is left still has to be delivered, or is not history", d.dir, d.options.MaxDiskBytes),
		Remedy:  "let slow creatures catch up, or raise the budget",
		IDs:     map[string]string{"path": d.dir},
	}
}

// openBySize lists the open stores, the largest first.
func (d *Directory) openBySize() []*Store {
	out := d.allOpen()
	size := map[*Store]int64{}
	for _, s := range out {
		size[s] = sqlite.DiskSize(s.path())
	}
	slices.SortFunc(out, func(a, b *Store) int {
		return cmp.Or(cmp.Compare(size[b], size[a]), cmp.Compare(a.info.Session, b.info.Session))
	})
	return out
}

// retain prunes a store if it has too much.
func (h *hydrator) retain(ctx context.Context, s *Store, bound Retention) error {
	since, err := s.since(ctx, bound, sqlite.DiskSize(s.path()))
	if err != nil && h.d.opened(s.info.Session) != s {
		return nil // it has been cut meanwhile
	}
	if err != nil || since == 0 {
		return err
	}
	e, err := h.d.catalog.Entry(ctx, "retain", s.info.Session)
	if err != nil {
		return err
	}
	if err := h.rewrite(ctx, e, since); !errors.Is(err, errCutAgain) {
		h.d.indexer.lookAgain()
		return err
	}
	return nil
}

// since returns the time from which a store keeps its history, which takes size bytes now;
// 0: it keeps all of it.
func (s *Store) since(ctx context.Context, bound Retention, size int64) (since int64, err error) {
	if !bound.bounded() {
		return 0, nil
	}
	err = s.read(ctx, "retain", func(f *family) (err error) {
		since, err = f.since(ctx, bound, size)
		return err
	})
	return since, err
}

// rewrite makes a new file with what a session keeps.
func (h *hydrator) rewrite(ctx context.Context, e catalog.Entry, since int64) error {
	y := catalog.Hydration{Session: e.Session, File: h.d.catalog.NextFile(e)}
	path, err := h.d.catalog.FilePath(y.File)
	if err != nil {
		return err
	}
	if err := sqlite.Remove(h.d.options.hooks, path); err != nil { // of an attempt that was interrupted
		return storageError("retain", path, err)
	}
	if err := h.d.catalog.Note(y); err != nil {
		return err
	}
	content, err := storefile.Schema.Template()
	if err == nil {
		err = h.d.options.hooks.WriteWhole(path, content)
	}
	if err != nil {
		return storageError("retain", path, err)
	}
	return storageError("retain", path, h.build(ctx, path, since, e, nil, y))
}

// since returns the time from which history is kept, or 0 if nothing is to be pruned now.
func (f *family) since(ctx context.Context, bound Retention, size int64) (since int64, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	if err != nil || len(spans) == 0 {
		return 0, err
	}
	h := summary(spans)
	if since, err = bound.from(ctx, spans, h, size, slack); err != nil {
		return 0, err
	}
	needed, err := v.neededFrom(ctx)
	if err != nil {
		return 0, err
	}
	if since = min(since, needed); since <= h.oldest {
		return 0, nil
	}
	// What is pruned must be worth the cost of writing the rest.
	left, err := countFrom(ctx, spans, since)
	if err != nil || float64(h.count) < float64(left)*1.1 {
		return 0, err
	}
	return since, nil
}

// extent is how much history there is, and its times.
type extent struct{ count, oldest, newest int64 }

func summary(spans []span) extent {
	h := extent{oldest: math.MaxInt64}
	for _, s := range spans {
		h.count += s.high - s.low + 1
		h.oldest, h.newest = min(h.oldest, s.from), max(h.newest, s.to)
	}
	return h
}

// from returns the time from which the bound keeps history; 0 if it keeps all. The bound
// may be exceeded by a factor before anything is pruned.
func (bound Retention) from(ctx context.Context, spans []span, h extent, size int64, factor float64) (since int64, err error) {
	if bound.Age > 0 {
		if since, err = bound.cutoff(ctx, spans, h, factor); err != nil {
			return 0, err
		}
	}
	keep := h.count
	if bound.Events > 0 && float64(h.count) > float64(bound.Events)*factor {
		keep = bound.Events
	}
	if bound.Bytes > 0 && size > bound.Bytes {
		keep = min(keep, int64(float64(h.count)*float64(bound.Bytes)/float64(size)/slack))
	}
	if keep < h.count {
		from, err := newestFrom(ctx, spans, keep, h.oldest, h.newest)
		if err != nil {
			return 0, err
		}
		since = max(since, from)
	}
	return since, nil
}

// cutoff returns the time from which events are young enough. Their age is measured from
// the newest event, because the clock may have been set back since. But if the clock was
// ahead when the newest events were logged, their age is measured from now, as long as
// some events are young enough by the clock.
func (bound Retention) cutoff(ctx context.Context, spans []span, h extent, factor float64) (since int64, err error) {
	newest := h.newest
	if 0 < bound.now && newest-bound.now >= int64(time.Minute) { // a smaller difference does not show that the clock was ahead
		young, err := countFrom(ctx, spans, bound.now-int64(bound.Age))
		if err != nil {
			return 0, err
		}
		ahead, err := countFrom(ctx, spans, bound.now+1)
		if err != nil {
			return 0, err
		}
		if young > ahead {
			newest = bound.now
		}
	}
	if newest-h.oldest > int64(float64(bound.Age)*factor) {
		since = newest - int64(bound.Age)
	}
	return since, nil
}

// newestFrom finds the time from which there are at most keep events.
func newestFrom(ctx context.Context, spans []span, keep, low, high int64) (int64, error) {
	high++
	for low < high {
		middle := low + (high-low)/2
		n, err := countFrom(ctx, spans, middle)
		if err != nil {
			return 0, err
		}
		if n > keep {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// countFrom counts the events from a time on.
func countFrom(ctx context.Context, spans []span, from int64) (n int64, err error) {
	for _, s := range spans {
		if s.to < from {
			continue
		}
		if s.from < from {
			if err := s.bisect(ctx, place{ts: from, id: -1}); err != nil {
				return 0, err
			}
		}
		n += s.high - s.low + 1
	}
	return n, nil
}

// noteKept records the time before which the file may lack events.
func (b *builder) noteKept() error {
	if b.pruned == 0 {
		return nil
	}
	return b.c.Exec("INSERT OR REPLACE INTO main.store (key, value) VALUES (?, ?)", storefile.Pruned, strconv.FormatInt(b.pruned, 10))
}

// lowerBound returns the number after which an origin's events are kept.
func (b *builder) lowerBound(p numbers) (int64, error) {
	if b.since == 0 {
		return 0, nil
	}
	// Times rise with the numbers. Invariant: what is kept begins in (low, high].
	low, high := p.old<<storefile.SeqBits, (p.old+1)<<storefile.SeqBits
	last, found, err := b.c.Integer("SELECT max(id) FROM parent.event WHERE id > ? AND id < ?", low, high)
	if err != nil {
		return 0, err
	}
	if found {
		high = last + 1
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		first, older := high, false
		err := b.c.Query("SELECT id, ts < ? FROM parent.event WHERE id >= ? AND id < ? ORDER BY id LIMIT 1", []driver.Value{b.since, middle, high},
			func(v []driver.Value) error {
				first, older = v[0].(int64), v[1].(int64) != 0
				return nil
			})
		if err != nil {
			return 0, err
		}
		if older {
			low = first
		} else {
			high = middle
		}
	}
	return high&storefile.SeqMask - 1, nil
}
