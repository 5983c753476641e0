package sqlitestore

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// SearchQuery selects events by their content.
type SearchQuery = search.Query

// Found is an event that a search has found.
type Found = search.Found

// SearchResult is what a search has found, the newest first.
type SearchResult = search.Result

const (
	// DefaultFound is how many events a search finds at most by default.
	DefaultFound = search.DefaultFound
	// MostFound is the largest number of events that a query can request.
	MostFound = search.MostFound
)

// Search finds events of the directory, including those that the index does not have yet.
// It finds each event once, however its session was merged and split. It returns
// invalid_argument for a query that cannot be parsed, and not_found for an unknown
// session. Pruned events are not found.
func (d *Directory) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	index := search.Index{Path: filepath.Join(d.dir, search.Name)}
	if d.indexer != nil {
		index.Problem = search.Extend(ctx, index.Path, d, time.Now().UnixNano(), search.Hurry)
	}
	if index.Usable() {
		index.Mode, index.Problem = sqlite.ReadWrite, nil
	}
	return search.Run(ctx, q, searched{d, d.withSession}, index)
}

// Search finds events of the directory; see [Directory.Search]. If no other process uses
// the directory, it brings the index up to date, provided that it can write to it.
func (v *View) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	index := search.Index{Path: filepath.Join(v.catalog.Dir(), search.Name)}
	if v.visitor.Lone(v.catalog.Path()) {
		index.Problem = search.Extend(ctx, index.Path, v, search.Everything, search.Hurry)
	}
	if index.Usable() {
		index.Mode, index.Problem = v.visitor.Visit(ctx, index.Path)
	}
	return search.Run(ctx, q, searched{v, v.withSession}, index)
}

// searched is what a search reads of a directory.
type searched struct {
	journal.Chronicle
	open func(ctx context.Context, session journal.SessionID, look func(*family) error) error
}

// Ranges returns which events of each origin the history of a session has.
func (s searched) Ranges(ctx context.Context, session journal.SessionID) (map[journal.Origin]search.Range, error) {
	out := map[journal.Origin]search.Range{}
	err := s.open(ctx, session, func(f *family) (err error) {
		v, err := f.look(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.end()) }()
		spans, err := v.spans(ctx)
		for _, p := range spans {
			out[p.origin] = search.Range{Low: uint64(p.low & storefile.SeqMask), High: uint64(p.high & storefile.SeqMask)}
		}
		return err
	})
	return out, err
}

// Pick reads single events of a session.
func (s searched) Pick(ctx context.Context, session journal.SessionID, ids []journal.EventID, into map[journal.EventID]journal.Event) error {
	return s.open(ctx, session, func(f *family) error { return f.pick(ctx, ids, into) })
}

// pick reads single events.
func (f *family) pick(ctx context.Context, ids []journal.EventID, into map[journal.EventID]journal.Event) (err error) {
	v, err := f.look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	if err != nil {
		return err
	}
	at := map[journal.Origin]span{}
	for _, s := range spans {
		at[s.origin] = s
	}
	for _, id := range ids {
		s, there := at[id.Origin]
		packed := s.low&^storefile.SeqMask | int64(id.Seq&storefile.SeqMask)
		if !there || packed < s.low || packed > s.high {
			continue
		}
		found, err := scanEvents(ctx, s.in.tx, nil, "SELECT "+eventFields+" FROM event WHERE id = ?", packed)
		if err != nil {
			return err
		}
		for i := range found {
			if into[id], err = s.in.unpackEvent(ctx, &found[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
