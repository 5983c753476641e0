package sqlitestore

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const (
	defaultLimit = 1000
	// historyPage and historyBytes bound how many events of one origin are read ahead while
	// several are merged.
	historyPage  = 256
	historyBytes = 1 << 20
)

// place is the position of an event in the history.
type place struct {
	ts     int64
	origin journal.Origin
	id     int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.ts, q.ts), bytes.Compare(p.origin[:], q.origin[:]), cmp.Compare(p.id, q.id))
}

// span is the part of the event table with the events of one origin. Within it, ids and
// times rise together, so the history of a store is a merge of its spans. That makes an
// index on time unnecessary, which would halve the speed of appending.
type span struct {
	in        *snapshot // of the file that has it
	origin    journal.Origin
	low, high int64 // the lowest and the highest packed id
	from, to  int64 // their times
}

func (s *snapshot) spans(ctx context.Context) ([]span, error) {
	var out []span
	err := sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		found := span{in: s}
		var no int64
		var uuid []byte
		if err := scan(&no, &uuid, &found.low, &found.from, &found.high, &found.to); err != nil {
			return err
		}
		var err error
		found.origin, err = storefile.OriginIn(uuid)
		out = append(out, found)
		return err
	}, `SELECT o.no, o.uuid, a.id, a.ts, b.id, b.ts FROM origin o
		CROSS JOIN event a ON a.id = (SELECT id FROM event WHERE id > o.no << 40 ORDER BY id LIMIT 1)
		CROSS JOIN event b ON b.id = (SELECT id FROM event WHERE id < (o.no + 1) << 40 ORDER BY id DESC LIMIT 1)
		WHERE a.id >> 40 = o.no`)
	return out, err
}

// history lists events. own are the origins under which the session has written, for a
// query that selects only those.
func (f *family) history(ctx context.Context, q journal.HistoryQuery, own map[journal.Origin]uint64) (events []journal.Event, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	if q.Own {
		v.only = own
	}
	m := merge{ctx: ctx, query: q, newest: q.Newest, limit: q.Limit, room: q.Bytes, conditions: map[*snapshot]condition{}}
	if m.limit <= 0 {
		m.limit = defaultLimit
	}
	spans, err := v.spans(ctx)
	if err != nil {
		return nil, err
	}
	if !q.After.IsZero() {
		if spans, err = v.after(ctx, spans, q.After); err != nil {
			return nil, err
		}
	}
	if !q.Behind.IsZero() {
		if spans, err = behind(ctx, spans, q.Behind); err != nil {
			return nil, err
		}
	}
	if events, err = m.run(spans); err != nil {
		return nil, err
	}
	if q.Newest {
		slices.Reverse(events)
	}
	return events, nil
}

// merge reads spans side by side, each page only when it is needed.
type merge struct {
	ctx        context.Context
	query      journal.HistoryQuery
	conditions map[*snapshot]condition
	newest     bool // from the end
	limit      int
	room       int64 // for payloads and headers; 0 or less at the beginning: no bound
	heap       []*source
}

type source struct {
	span
	next  place         // of the first event of page; before reading, the bound of the span
	read  bool          // page has been read
	page  []packedEvent // read and not yet taken
	ended bool          // nothing is left after page
}

// condition restricts what is read of a file.
type condition struct {
	where string // with a leading AND
	args  []any
	never bool // no event matches
}

// conditionFor turns the query's filters into conditions for a file.
func (m *merge) conditionFor(s *snapshot) (condition, error) {
	if c, ok := m.conditions[s]; ok {
		return c, nil
	}
	var c condition
	q := m.query
	if len(q.Kinds) > 0 {
		c.where += " AND kind IN (?" + strings.Repeat(", ?", len(q.Kinds)-1) + ")"
		for _, k := range q.Kinds {
			c.args = append(c.args, int64(k))
		}
	}
	if q.Creature != "" {
		c.where += " AND creature = ?"
		c.args = append(c.args, string(q.Creature))
	}
	if q.Channel != "" {
		c.where += " AND channel = ?"
		c.args = append(c.args, string(q.Channel))
	}
	if !q.Turn.IsZero() {
		turn, err := numberOf(m.ctx, s.tx, q.Turn)
		if err != nil {
			return c, err
		}
		c.where += " AND turn = ?"
		c.args, c.never = append(c.args, turn), turn == 0
	}
	m.conditions[s] = c
	return c, nil
}

func (m *merge) run(spans []span) ([]journal.Event, error) {
	for _, s := range spans {
		src := &source{span: s, next: place{s.from, s.origin, s.low}}
		if m.newest {
			src.next = place{s.to, s.origin, s.high}
		}
		m.heap = append(m.heap, src)
	}
	heap.Init(m)
	var out []journal.Event
	bounded := m.room > 0
	for len(m.heap) > 0 && len(out) < m.limit && (!bounded || m.room > 0) {
		src := m.heap[0]
		if src.read && len(src.page) > 0 {
			ev, err := src.in.unpackEvent(m.ctx, &src.page[0])
			if err != nil {
				return nil, err
			}
			out = append(out, ev)
			m.room -= ev.Size()
			src.page = src.page[1:]
		}
		if len(src.page) == 0 && !src.ended {
			if err := m.fill(src, m.limit-len(out)); err != nil {
				return nil, err
			}
			out = slices.Grow(out, len(src.page))
		}
		if len(src.page) == 0 {
			heap.Pop(m)
			continue
		}
		src.next = place{src.page[0].Time, src.origin, src.page[0].id}
		heap.Fix(m, 0)
	}
	return out, nil
}

// fill reads the next page of a source.
func (m *merge) fill(src *source, wanted int) error {
	limit, room := min(wanted, historyPage), int64(historyBytes)
	if len(m.heap) == 1 {
		limit, room = wanted, cmp.Or(max(m.room, 0), math.MaxInt64)
	}
	if limit == 0 {
		src.ended = true
		return nil
	}
	order := ""
	if m.newest {
		order = " DESC"
	}
	c, err := m.conditionFor(src.in)
	if err != nil {
		return err
	}
	if c.never {
		src.page, src.ended = nil, true
		return nil
	}
	args := append([]any{src.low, src.high}, c.args...)
	page, err := scanEvents(m.ctx, src.in.tx, &room, "SELECT "+eventFields+" FROM event WHERE id >= ? AND id <= ?"+c.where+
		" ORDER BY id"+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return err
	}
	src.page, src.read, src.ended = page, true, len(page) < limit && room > 0
	if len(page) > 0 && m.newest {
		src.high = page[len(page)-1].id - 1
	} else if len(page) > 0 {
		src.low = page[len(page)-1].id + 1
	}
	return nil
}

// Len, Less, Swap, Push and Pop make a heap of the sources.
func (m *merge) Len() int { return len(m.heap) }

// Less puts the source first whose next event is to be listed first.
func (m *merge) Less(i, j int) bool {
	c := m.heap[i].next.compare(m.heap[j].next)
	if m.newest {
		return c > 0
	}
	return c < 0
}

// Swap exchanges two sources.
func (m *merge) Swap(i, j int) { m.heap[i], m.heap[j] = m.heap[j], m.heap[i] }

// Push is never called: sources are only removed.
func (m *merge) Push(x any) { m.heap = append(m.heap, x.(*source)) }

// Pop removes the last source.
func (m *merge) Pop() any {
	last := m.heap[len(m.heap)-1]
	m.heap = m.heap[:len(m.heap)-1]
	return last
}

// behind limits spans to the events after a mark.
func behind(ctx context.Context, spans []span, mark journal.Mark) ([]span, error) {
	var out, others []span
	for _, s := range spans {
		if s.origin != mark.Event.Origin {
			others = append(others, s)
			continue
		}
		packed, err := numberOf(ctx, s.in.tx, mark.Event)
		if err != nil {
			return nil, err
		}
		s.low = max(s.low, packed+1)
		first, found, err := s.in.firstFrom(ctx, s.low, s.high)
		if err != nil {
			return nil, err
		}
		if found {
			s.low, s.from = first.id, first.ts
			out = append(out, s)
		}
	}
	others, err := cutAt(ctx, others, place{mark.Since, lastOrigin, 0})
	return append(out, others...), err
}

// lastOrigin comes after all other origins.
var lastOrigin = journal.Origin(bytes.Repeat([]byte{0xff}, len(journal.Origin{})))

// after limits spans to the events that the history lists after an event.
func (v *familySnapshot) after(ctx context.Context, spans []span, after journal.EventID) ([]span, error) {
	limit, found, err := v.placeOf(ctx, spans, after)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "history", Message: "the session has no event " + after.String(),
			Remedy: "take the id from an event of this session; history lists them", IDs: map[string]string{"event": after.String()},
		}
	}
	return cutAt(ctx, spans, limit)
}

// cutAt limits spans to the events after a place.
func cutAt(ctx context.Context, spans []span, limit place) ([]span, error) {
	out := spans[:0]
	for _, s := range spans {
		if (place{s.to, s.origin, s.high}).compare(limit) <= 0 {
			continue
		}
		if (place{s.from, s.origin, s.low}).compare(limit) <= 0 {
			if err := s.bisect(ctx, limit); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// placeOf finds an event in the span of its origin.
func (v *familySnapshot) placeOf(ctx context.Context, spans []span, id journal.EventID) (p place, found bool, err error) {
	for _, s := range spans {
		if s.origin != id.Origin {
			continue
		}
		packed, err := numberOf(ctx, s.in.tx, id)
		if err != nil {
			return p, false, err
		}
		p, found, err = s.in.firstFrom(ctx, packed, packed)
		p.origin = id.Origin
		return p, found, err
	}
	return p, false, nil
}

// bisect moves the start of a span after a place that lies within it.
func (s *span) bisect(ctx context.Context, limit place) error {
	if s.origin == limit.origin {
		s.low = limit.id + 1
	} else {
		// Invariant: low is not after the place, high is.
		low, high := s.low, s.high
		for high-low > 1 {
			middle, found, err := s.in.firstFrom(ctx, low+(high-low)/2, high)
			if err != nil {
				return err
			}
			if !found || (place{middle.ts, s.origin, middle.id}).compare(limit) > 0 {
				high = low + (high-low)/2
			} else {
				low = middle.id
			}
		}
		s.low = high
	}
	first, found, err := s.in.firstFrom(ctx, s.low, s.high)
	if found {
		s.low, s.from = first.id, first.ts
	}
	return err
}

// firstFrom finds the first event with a packed id from low to high.
func (s *snapshot) firstFrom(ctx context.Context, low, high int64) (p place, found bool, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		found = true
		return scan(&p.id, &p.ts)
	}, "SELECT id, ts FROM event WHERE id >= ? AND id <= ? ORDER BY id LIMIT 1", low, high)
	return p, found, err
}
