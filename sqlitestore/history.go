package sqlitestore

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

const (
	defaultLimit = 1000
	// historyPage bounds how many events of one origin are read ahead while
	// several are merged.
	historyPage = 256
)

// place is where an event stands in the history.
type place struct {
	ts     int64
	origin engine.Origin
	id     int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.ts, q.ts), bytes.Compare(p.origin[:], q.origin[:]), cmp.Compare(p.id, q.id))
}

// span is the part of the event table that one origin has. Within it ids and
// times rise together, so the history of a store is a merge of its spans. No
// index on time is needed, which would halve the speed of appending.
type span struct {
	origin    engine.Origin
	low, high int64 // the lowest and the highest packed id
	from, to  int64 // their times
}

func (r *reader) spans(ctx context.Context, q querier) ([]span, error) {
	var out []span
	err := each(ctx, q, func(scan func(...any) error) error {
		var s span
		var no int64
		var uuid []byte
		if err := scan(&no, &uuid, &s.low, &s.from, &s.high, &s.to); err != nil {
			return err
		}
		s.origin = engine.Origin(uuid)
		out = append(out, s)
		return nil
	}, `SELECT o.no, o.uuid, a.id, a.ts, b.id, b.ts FROM origin o
		CROSS JOIN event a ON a.id = (SELECT id FROM event WHERE id > o.no << 40 ORDER BY id LIMIT 1)
		CROSS JOIN event b ON b.id = (SELECT id FROM event WHERE id < (o.no + 1) << 40 ORDER BY id DESC LIMIT 1)
		WHERE a.id >> 40 = o.no`)
	return out, err
}

// history lists events. All of it reads one snapshot.
func (r *reader) history(ctx context.Context, q engine.HistoryQuery) (events []engine.Event, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, endRead(tx)) }()
	m := merge{ctx: ctx, tx: tx, newest: q.Newest, limit: q.Limit}
	if m.limit <= 0 {
		m.limit = defaultLimit
	}
	if known, err := m.restrict(q); err != nil || !known {
		return nil, err
	}
	spans, err := r.spans(ctx, tx)
	if err != nil {
		return nil, err
	}
	if !q.After.IsZero() {
		if spans, err = behind(ctx, tx, spans, q.After); err != nil {
			return nil, err
		}
	}
	packed, err := m.run(spans)
	if err != nil {
		return nil, err
	}
	if q.Newest {
		slices.Reverse(packed)
	}
	return r.unpackAll(ctx, tx, packed)
}

// merge reads spans side by side, and each only when its turn comes.
type merge struct {
	ctx    context.Context
	tx     *sql.Tx
	where  string // conditions, each with a leading AND
	args   []any
	newest bool // from the end
	limit  int
	heap   []*source
}

type source struct {
	span
	next  place         // of the first event of page; before reading, the bound of the span
	read  bool          // page has been read
	page  []packedEvent // read and not yet taken
	ended bool          // nothing is left behind page
}

// restrict turns the query's filters into conditions. It answers false when
// nothing can fit.
func (m *merge) restrict(q engine.HistoryQuery) (bool, error) {
	var where strings.Builder
	if len(q.Kinds) > 0 {
		where.WriteString(" AND kind IN (?" + strings.Repeat(", ?", len(q.Kinds)-1) + ")")
		for _, k := range q.Kinds {
			m.args = append(m.args, int64(k))
		}
	}
	if q.Creature != "" {
		where.WriteString(" AND creature = ?")
		m.args = append(m.args, string(q.Creature))
	}
	if q.Channel != "" {
		where.WriteString(" AND channel = ?")
		m.args = append(m.args, string(q.Channel))
	}
	if !q.Turn.IsZero() {
		turn, err := numberOf(m.ctx, m.tx, q.Turn)
		if err != nil || turn == 0 {
			return false, err
		}
		where.WriteString(" AND turn = ?")
		m.args = append(m.args, turn)
	}
	m.where = where.String()
	return true, nil
}

func (m *merge) run(spans []span) ([]packedEvent, error) {
	for _, s := range spans {
		src := &source{span: s, next: place{s.from, s.origin, s.low}}
		if m.newest {
			src.next = place{s.to, s.origin, s.high}
		}
		m.heap = append(m.heap, src)
	}
	heap.Init(m)
	var out []packedEvent
	for len(m.heap) > 0 && len(out) < m.limit {
		src := m.heap[0]
		if src.read && len(src.page) > 0 {
			out = append(out, src.page[0])
			src.page = src.page[1:]
		}
		if len(src.page) == 0 && !src.ended {
			if err := m.fill(src, m.limit-len(out)); err != nil {
				return nil, err
			}
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
	limit := min(wanted, historyPage)
	if len(m.heap) == 1 {
		limit = wanted
	}
	if limit == 0 {
		src.ended = true
		return nil
	}
	order := ""
	if m.newest {
		order = " DESC"
	}
	args := append([]any{src.low, src.high}, m.args...)
	page, err := scanEvents(m.ctx, m.tx, nil, "SELECT "+eventFields+" FROM event WHERE id >= ? AND id <= ?"+m.where+
		" ORDER BY id"+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return err
	}
	src.page, src.read, src.ended = page, true, len(page) < limit
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

// Push is never called: sources only leave.
func (m *merge) Push(x any) { m.heap = append(m.heap, x.(*source)) }

// Pop removes the last source.
func (m *merge) Pop() any {
	last := m.heap[len(m.heap)-1]
	m.heap = m.heap[:len(m.heap)-1]
	return last
}

// behind cuts spans down to what the history lists after an event.
func behind(ctx context.Context, q querier, spans []span, after engine.EventID) ([]span, error) {
	id, err := numberOf(ctx, q, after)
	if err != nil {
		return nil, err
	}
	at, found, err := firstFrom(ctx, q, id, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "history", Message: "the session has no event " + after.String(),
			Remedy: "continue behind an event that this session listed", IDs: map[string]string{"event": after.String()},
		}
	}
	limit := place{at.ts, after.Origin, id}
	out := spans[:0]
	for _, s := range spans {
		if (place{s.to, s.origin, s.high}).compare(limit) <= 0 {
			continue
		}
		if (place{s.from, s.origin, s.low}).compare(limit) <= 0 {
			if err := s.bisect(ctx, q, limit); err != nil {
				return nil, err
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// bisect moves the start of a span behind a place that lies within it.
func (s *span) bisect(ctx context.Context, q querier, limit place) error {
	if s.origin == limit.origin {
		s.low = limit.id + 1
	} else {
		// Invariant: low is not behind the place, high is.
		low, high := s.low, s.high
		for high-low > 1 {
			middle, found, err := firstFrom(ctx, q, low+(high-low)/2, high)
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
	first, found, err := firstFrom(ctx, q, s.low, s.high)
	if found {
		s.low, s.from = first.id, first.ts
	}
	return err
}

// firstFrom finds the first event with a packed id from low to high.
func firstFrom(ctx context.Context, q querier, low, high int64) (p place, found bool, err error) {
	err = each(ctx, q, func(scan func(...any) error) error {
		found = true
		return scan(&p.id, &p.ts)
	}, "SELECT id, ts FROM event WHERE id >= ? AND id <= ? ORDER BY id LIMIT 1", low, high)
	return p, found, err
}
