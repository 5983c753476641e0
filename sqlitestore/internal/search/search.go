package search

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// DefaultFound is how many events a search finds at most by default.
const DefaultFound = 20

// MostFound is the largest number of events that a query can request.
const MostFound = 1000

// Query selects events by their content. Empty fields do not restrict; restrictions
// combine with AND, and those of a list with OR.
type Query struct {
	// Text consists of words, "phrases" and beginnings* of words, with AND (which may be
	// left out), OR, NOT and parentheses. Case and accents do not count.
	Text      string
	Session   journal.SessionID // only what is in its history
	Kinds     []journal.EventKind
	Creatures []journal.CreatureID
	Channels  []journal.ChannelID
	Limit     int // 0: DefaultFound
}

// Found is an event that a search has found.
type Found struct {
	journal.Event
	Session journal.SessionID // that wrote it
	Snippet string            // its text, around the first match
}

// Result is what a search has found, the newest first.
type Result struct {
	Found []Found
	More  bool // there may be older ones
	// Problem is why the index was not used, if it was not; the result is the same, but
	// took longer.
	Problem error
}

// Stores hold the events whose words an index has.
type Stores interface {
	journal.Chronicle
	// Ranges returns which events of each origin the history of a session has.
	Ranges(ctx context.Context, session journal.SessionID) (map[journal.Origin]Range, error)
	// Pick reads events of a session into a map. Events that it omits have been pruned.
	Pick(ctx context.Context, session journal.SessionID, ids []journal.EventID, into map[journal.EventID]journal.Event) error
}

// Range is the range of numbers of an origin that a history has, from the first to the
// last.
type Range struct{ Low, High uint64 }

// Index is an index that may be used for a search.
type Index struct {
	Path    string
	Mode    sqlite.Mode // the mode in which it can be opened; "": not to be opened
	Problem error       // why it cannot be used
}

// Usable reports whether an index can be tried. An index that could not be extended may
// still be usable.
func (f *Index) Usable() bool {
	if err := Refuse(f.Path); err != nil {
		f.Problem = err
		return false
	}
	return !files.Missing(f.Path) && !sqlite.Damaged(f.Problem)
}

// search is one search.
type search struct {
	query Query
	from  Stores
	index Index

	text    asked
	match   string
	history map[journal.Origin]Range // of the requested session; nil for none
	result  Result
}

// Run finds events in stores, and uses an index if possible.
func Run(ctx context.Context, q Query, from Stores, index Index) (Result, error) {
	return (&search{query: q, from: from, index: index}).run(ctx)
}

func (s *search) run(ctx context.Context) (Result, error) {
	if s.query.Limit < 0 || s.query.Limit > MostFound {
		return s.result, &abi.Error{
			Code: abi.InvalidArgument, Op: "search", Message: "the limit is not a number from 0 to 1,000", Remedy: "lower the limit, and narrow the query",
		}
	}
	if s.query.Limit == 0 {
		s.query.Limit = DefaultFound
	}
	var err error
	if s.text, err = parse(s.query.Text); err != nil {
		return s.result, err
	}
	s.match = matchFor(s.text, &s.query)
	if s.query.Session != "" {
		if s.history, err = s.from.Ranges(ctx, s.query.Session); err != nil {
			return s.result, err
		}
	}
	cursor, ix := s.openIndex(ctx)
	if ix != nil {
		defer func() { _ = ix.close() }() // it was only read
	}
	err = s.tail(ctx, cursor)
	ours := ix != nil
	if code := abi.CodeOf(err); ours && (code == abi.NotFound || code == abi.InvalidArgument) {
		ours, s.index.Problem, s.result = false, ofAnother(s.index.Path, err), Result{}
		err = s.tail(ctx, journal.FromStart)
	}
	if err == nil && ours {
		err = s.in(ctx, ix)
	}
	s.result.Problem = s.index.Problem
	return s.result, err
}

// ofAnother is the error for an index of another directory.
func ofAnother(path string, err error) error {
	return &abi.Error{
		Code: abi.Storage, Op: "search", Message: path + " is the index of another session directory",
		Remedy: "no action is needed: the process that owns the directory makes a new one or, if there is no such process, the next search does; searching takes longer until then", IDs: map[string]string{"path": path}, Err: err,
	}
}

// openIndex opens the index as it is at one moment, and returns the cursor after its
// events. Without an index, everything is read from the stores.
func (s *search) openIndex(ctx context.Context) (journal.EventCursor, *index) {
	if s.index.Problem != nil || s.index.Mode == "" {
		return journal.FromStart, nil
	}
	c, err := sqlite.Open(s.index.Path, s.index.Mode)
	if err == nil {
		ix := newIndex(c)
		if err = ix.prepare(ctx, true); err == nil {
			err = errors.Join(c.Exec("BEGIN"), ix.read())
		}
		if err == nil {
			return ix.cursor, ix
		}
		err = errors.Join(err, ix.close())
	}
	if !errors.Is(err, errNoIndex) {
		s.index.Problem = explained(s.index.Path, err)
	}
	return journal.FromStart, nil
}

// tail searches the newer events that the index lacks, in a temporary index.
func (s *search) tail(ctx context.Context, after journal.EventCursor) error {
	x := &extension{nil, s.from, Everything, Hurry}
	err := x.follow(ctx, after)
	if x.ix == nil {
		return err
	}
	if err == nil {
		err = s.in(ctx, x.ix)
	}
	return errors.Join(err, x.ix.close())
}

// in searches an index, until it has found one more than requested.
func (s *search) in(ctx context.Context, ix *index) error {
	before := int64(math.MaxInt64)
	for !s.result.More {
		wanted := s.query.Limit - len(s.result.Found) + 1
		var page []indexed
		err := ix.find(ctx, s.match, before, func(i indexed) bool {
			before = i.place
			if s.history == nil || s.history[i.id.Origin].has(i.id.Seq) {
				page = append(page, i)
			}
			return len(page) < wanted && ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := s.show(ctx, page); err != nil {
			return err
		}
		if len(page) < wanted {
			return nil
		}
	}
	return nil
}

func (r Range) has(seq uint64) bool { return r.Low <= seq && seq <= r.High }

// show reads the found events from the stores. Events that are missing there have been
// pruned.
func (s *search) show(ctx context.Context, page []indexed) error {
	wanted := map[journal.SessionID][]journal.EventID{}
	for _, i := range page {
		session := i.session
		if s.history != nil {
			session = s.query.Session
		}
		wanted[session] = append(wanted[session], i.id)
	}
	events := map[journal.EventID]journal.Event{}
	for session, ids := range wanted {
		if err := s.from.Pick(ctx, session, ids, events); err != nil {
			return err
		}
	}
	for _, i := range page {
		ev, there := events[i.id]
		if !there || !s.query.Fits(&ev) {
			continue
		}
		if len(s.result.Found) == s.query.Limit {
			s.result.More = true
			break
		}
		s.result.Found = append(s.result.Found, Found{ev, i.session, s.text.snippet(TextOf(&ev))})
	}
	return nil
}

// Fits reports whether an event meets the restrictions for which the index has only tags.
func (q *Query) Fits(ev *journal.Event) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, ev.Kind)) &&
		(len(q.Creatures) == 0 || slices.Contains(q.Creatures, ev.Creature)) &&
		(len(q.Channels) == 0 || slices.Contains(q.Channels, ev.Channel))
}
