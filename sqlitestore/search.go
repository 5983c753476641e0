package sqlitestore

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// DefaultFound is how many events a search finds at most if it is not told.
const DefaultFound = 20

// MostFound is how many it may be told.
const MostFound = 1000

// SearchQuery selects events by what they say. Empty fields do not restrict;
// restrictions combine with AND, and those of a list with OR.
type SearchQuery struct {
	// Text has words, "phrases" and beginnings* of words, with AND (which may be
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
	Snippet string            // what it says, around the first match
}

// SearchResult is what a search has found, the newest first.
type SearchResult struct {
	Found []Found
	More  bool // there may be older ones
	// Problem is why the index was not used, if it was not; the answer is the same,
	// but took longer.
	Problem error
}

// Search finds events of the directory, each once whatever merges and splits have
// made of its session; also those that the index does not have yet. It answers
// invalid_argument for a query that cannot be understood, and not_found for a
// session that is not there. What has been given up is not found.
func (d *Directory) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	s := search{query: q, from: d, open: d.withSession, path: filepath.Join(d.dir, searchName)}
	if d.indexer != nil {
		s.problem = extend(ctx, s.path, d, time.Now().UnixNano(), hurry)
	}
	if s.indexed() {
		s.indexMode, s.problem = readWrite, nil
	}
	return s.run(ctx)
}

// Search finds events of the directory; see [Directory.Search]. If nobody uses the
// directory, it brings the index up to date, if that can be written.
func (v *View) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	s := search{query: q, from: v, open: v.withSession, path: filepath.Join(filepath.Dir(v.catalog.path), searchName)}
	if v.visitor.lone[v.catalog.path] {
		s.problem = extend(ctx, s.path, v, everything, hurry)
	}
	if s.indexed() {
		s.indexMode, s.problem = v.visitor.visit(ctx, s.path)
	}
	return s.run(ctx)
}

// withSession opens the files of a session for one look.
func (d *Directory) withSession(ctx context.Context, session journal.SessionID, look func(*family) error) error {
	if s := d.opened(session); s != nil {
		return s.read(ctx, "search", look)
	}
	return d.catalog.withFamily(ctx, "search", session, d.owned, func(_ entry, f *family) error { return look(f) })
}

func (v *View) withSession(ctx context.Context, session journal.SessionID, look func(*family) error) error {
	return v.catalog.withFamily(ctx, "search", session, v.readable, func(_ entry, f *family) error { return look(f) })
}

// indexed reports whether there is an index to be tried; one that could not be
// extended may serve.
func (s *search) indexed() bool {
	if err := refuseDirectory(s.path); err != nil {
		s.problem = err
		return false
	}
	return !missing(s.path) && !damaged(s.problem)
}

// search is one search.
type search struct {
	query     SearchQuery
	from      journal.Chronicle
	open      func(ctx context.Context, session journal.SessionID, look func(*family) error) error
	path      string // of the index; "" for none
	indexMode fileMode
	problem   error // why it cannot be used

	text    searchText
	match   string
	history map[journal.Origin]numberRange // of the session asked for; nil for none
	result  SearchResult
}

// numberRange are the numbers of an origin that a history has.
type numberRange struct{ low, high uint64 }

func (s *search) run(ctx context.Context) (SearchResult, error) {
	if s.query.Limit < 0 || s.query.Limit > MostFound {
		return s.result, invalid("search", "the limit is not a number from 0 to 1,000", "ask for less, and narrow the query")
	}
	if s.query.Limit == 0 {
		s.query.Limit = DefaultFound
	}
	var err error
	if s.text, err = parseSearch(s.query.Text); err != nil {
		return s.result, err
	}
	s.match = matchFor(s.text, &s.query)
	if s.query.Session != "" {
		if err := s.lookUp(ctx); err != nil {
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
		ours, s.problem, s.result = false, ofAnother(s.path, err), SearchResult{}
		err = s.tail(ctx, journal.FromStart)
	}
	if err == nil && ours {
		err = s.in(ctx, ix)
	}
	s.result.Problem = s.problem
	return s.result, err
}

// ofAnother says that an index is not of this directory.
func ofAnother(path string, err error) error {
	return &abi.Error{
		Code: abi.Storage, Op: "search", Message: path + " is the index of another session directory",
		Remedy: "nothing needs to be done: the process that has the directory makes it again, or the next search when none has it; searching takes longer until then", IDs: map[string]string{"path": path}, Err: err,
	}
}

// lookUp finds out which events the session has.
func (s *search) lookUp(ctx context.Context) error {
	s.history = map[journal.Origin]numberRange{}
	return s.open(ctx, s.query.Session, func(f *family) (err error) {
		v, err := f.look(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.end()) }()
		spans, err := v.spans(ctx)
		for _, p := range spans {
			s.history[p.origin] = numberRange{uint64(p.low & seqMask), uint64(p.high & seqMask)}
		}
		return err
	})
}

// openIndex opens the index as it is at one moment, and answers behind which events
// it is. Without one everything is to be read in the stores.
func (s *search) openIndex(ctx context.Context) (journal.EventCursor, *searchIndex) {
	if s.problem != nil || s.indexMode == "" {
		return journal.FromStart, nil
	}
	c, err := openConn(s.path, s.indexMode)
	if err == nil {
		ix := newIndex(c)
		if err = ix.prepare(ctx, true); err == nil {
			err = errors.Join(c.exec("BEGIN"), ix.read())
		}
		if err == nil {
			return ix.cursor, ix
		}
		err = errors.Join(err, ix.close())
	}
	if !errors.Is(err, errNoIndex) {
		s.problem = storageError("search", s.path, err)
	}
	return journal.FromStart, nil
}

// tail searches what the index does not have, which is newer, in an index made for
// that.
func (s *search) tail(ctx context.Context, after journal.EventCursor) error {
	x := &extension{nil, s.from, everything, hurry}
	err := x.follow(ctx, after)
	if x.ix == nil {
		return err
	}
	if err == nil {
		err = s.in(ctx, x.ix)
	}
	return errors.Join(err, x.ix.close())
}

// in searches an index, until one more is found than is wanted.
func (s *search) in(ctx context.Context, ix *searchIndex) error {
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

func (r numberRange) has(seq uint64) bool { return r.low <= seq && seq <= r.high }

// show reads what was found in the stores. What is not there has been given up.
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
		err := s.open(ctx, session, func(f *family) error { return f.pick(ctx, ids, events) })
		if err != nil {
			return err
		}
	}
	for _, i := range page {
		ev, there := events[i.id]
		if !there || !s.query.fits(&ev) {
			continue
		}
		if len(s.result.Found) == s.query.Limit {
			s.result.More = true
			break
		}
		s.result.Found = append(s.result.Found, Found{ev, i.session, s.text.snippet(textOf(&ev))})
	}
	return nil
}

// fits compares what the index knows by its tags only.
func (q *SearchQuery) fits(ev *journal.Event) bool {
	return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, ev.Kind)) &&
		(len(q.Creatures) == 0 || slices.Contains(q.Creatures, ev.Creature)) &&
		(len(q.Channels) == 0 || slices.Contains(q.Channels, ev.Channel))
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
		packed := s.low&^seqMask | int64(id.Seq&seqMask)
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
