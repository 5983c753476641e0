package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Store is an open session. Its methods may be called from any goroutine.
type Store struct {
	d      *Disk
	s      *session
	boot   int
	origin journal.Origin
	last   uint64 // number of the last appended event
	saved  uint64 // number of the last event that is as durable as promised
	notice func()
	change sync.Cond // signals an append, a write or a close
	closed bool
}

var _ journal.Store = (*Store)(nil)

func (d *Disk) open(s *session) *Store {
	h := &Store{d: d, s: s, boot: d.boot, origin: d.origin()}
	h.change.L = &d.mu
	s.handle, s.wrote[h.origin] = h, true
	return h
}

// dead reports whether calls to the store no longer have an effect.
func (h *Store) dead() bool { return h.d.boot != h.boot || h.d.crashed }

// usable returns why the store cannot be used, if it cannot.
func (h *Store) usable(op string) error {
	switch {
	case h.dead():
		return fault(op, "the process is dead")
	case h.closed:
		return &abi.Error{Code: abi.Stopped, Op: op, Message: "the store is closed", Remedy: "open it again"}
	}
	return nil
}

// Info implements [journal.Store].
func (h *Store) Info() journal.SessionInfo {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	info := h.s.info
	info.Meta = maps.Clone(h.s.rows.meta)
	return info
}

// Origin implements [journal.Store].
func (h *Store) Origin() journal.Origin { return h.origin }

// Append implements [journal.Store].
func (h *Store) Append(r *journal.Record) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.dead() {
		return
	}
	if h.closed {
		h.d.Violations = append(h.d.Violations, "a record was appended to a closed store")
		return
	}
	h.append(r)
	if !h.d.Manual && !h.d.Broken {
		h.s.written, h.s.synced = len(h.s.records), len(h.s.records)
		h.s.notify()
	}
	h.change.Broadcast()
}

func (h *Store) append(r *journal.Record) {
	for i := range r.Events {
		id := r.Events[i].ID
		if want := (journal.EventID{Origin: h.origin, Seq: h.last + 1}); id != want {
			h.d.Violations = append(h.d.Violations, fmt.Sprintf("event %s was appended where %s belongs", id, want))
		}
		h.last = id.Seq
	}
	h.s.add(r)
}

// appendFirst appends the record that the session comes with.
func (h *Store) appendFirst(first func(journal.Origin) *journal.Record) error {
	if first == nil {
		return nil
	}
	r := first(h.origin)
	if r == nil {
		return nil
	}
	before := len(h.d.Violations)
	h.append(r)
	if len(h.d.Violations) > before {
		return &abi.Error{Code: abi.InvalidArgument, Op: "create", Message: "a first record is not of the store's origin"}
	}
	return nil
}

// flush writes the queue as durably as promised.
func (s *session) flush() {
	s.written = len(s.records)
	if s.info.Durability == journal.Full {
		s.synced = s.written
	}
	s.notify()
}

// notify tells the session's user how much of it is durable.
func (s *session) notify() {
	h := s.handle
	if h == nil {
		return
	}
	n := s.written
	if s.info.Durability == journal.Full {
		n = s.synced
	}
	for i := n - 1; i >= 0; i-- {
		if events := s.records[i].Events; len(events) > 0 {
			if id := events[len(events)-1].ID; id.Origin == h.origin {
				h.saved = max(h.saved, id.Seq)
			}
			break
		}
	}
	h.change.Broadcast()
	if h.notice != nil {
		h.notice()
	}
}

// Room implements [journal.Store].
func (h *Store) Room(ctx context.Context) error {
	h.d.pause()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.usable("room"); err != nil {
		return err
	}
	if h.d.Bound == 0 || len(h.s.records)-h.s.written < h.d.Bound {
		return nil
	}
	if h.d.Broken {
		return fault("room", "the queue is full and the disk is broken")
	}
	h.s.flush()
	return nil
}

// Wait implements [journal.Store]. It writes appended events itself, and waits
// for events not appended yet.
func (h *Store) Wait(ctx context.Context, seq uint64) error {
	stop := context.AfterFunc(ctx, func() {
		h.d.mu.Lock()
		defer h.d.mu.Unlock()
		h.change.Broadcast()
	})
	defer stop()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	for {
		if err := h.usable("wait"); h.saved >= seq && !h.dead() {
			return nil
		} else if err != nil {
			return err
		}
		switch {
		case h.d.Broken:
			return fault("wait", "the disk is broken")
		case h.last >= seq:
			h.s.flush()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			h.change.Wait()
		}
	}
}

// Durable implements [journal.Store].
func (h *Store) Durable() uint64 {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return h.saved
}

// Notify implements [journal.Store].
func (h *Store) Notify(f func()) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.notice = nil; f != nil {
		h.notice = func() {
			h.d.mu.Unlock()
			defer h.d.mu.Lock()
			f()
		}
	}
}

// Err implements [journal.Store].
func (h *Store) Err() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.Broken {
		return fault("write", "the disk is broken")
	}
	return nil
}

// Missing implements [journal.Store]: the disk loses no files.
func (h *Store) Missing() error { return nil }

// State implements [journal.Store].
func (h *Store) State(_ context.Context, c journal.CreatureID) (map[string][]byte, error) {
	h.d.pause()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.readable("state"); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for k, v := range h.s.rows.state {
		if k.creature == c {
			out[k.name] = v
		}
	}
	return out, nil
}

// Messages implements [journal.Store].
func (h *Store) Messages(_ context.Context, ch journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	h.d.pause()
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.readable("messages"); err != nil {
		return nil, err
	}
	var out []journal.Event
	h.s.look()
	for i := range h.s.len() {
		ev := h.s.at(i)
		if ev.Channel == ch && ev.Kind.IsMessage() && ev.Seq > after && (until == 0 || ev.Seq <= until) {
			out = append(out, *ev)
		}
	}
	slices.SortStableFunc(out, func(a, b journal.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	out = out[:min(limit, len(out))]
	var read int64
	for i := range out {
		if read += int64(len(out[i].Payload) + len(out[i].Headers)); bytes > 0 && read >= bytes {
			return out[:i+1], nil
		}
	}
	return out, nil
}

// History implements [journal.Store].
func (h *Store) History(_ context.Context, q journal.HistoryQuery) ([]journal.Event, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.usable("history"); err != nil {
		return nil, err
	}
	return h.s.history(q)
}

func (s *session) history(q journal.HistoryQuery) ([]journal.Event, error) {
	s.look()
	from := 0
	if !q.After.IsZero() {
		i, ok := s.places[q.After]
		if !ok {
			return nil, &abi.Error{Code: abi.NotFound, Op: "history", Message: "there is no event " + q.After.String()}
		}
		from = i + 1
	}
	limit, room := cmp.Or(q.Limit, 1000), cmp.Or(q.Bytes, math.MaxInt64)
	var out []journal.Event
	fits := func(ev *journal.Event) bool {
		return (len(q.Kinds) == 0 || slices.Contains(q.Kinds, ev.Kind)) && (q.Creature == "" || ev.Creature == q.Creature) &&
			(q.Channel == "" || ev.Channel == q.Channel) && (q.Turn.IsZero() || ev.Turn == q.Turn) &&
			(!q.Own || s.wrote[ev.ID.Origin]) && !q.Behind.Covers(ev)
	}
	if q.Newest {
		for i := s.len() - 1; i >= from && len(out) < limit && room > 0; i-- {
			if ev := s.at(i); fits(ev) {
				out = append(out, *ev)
				room -= ev.Size()
			}
		}
		slices.Reverse(out)
		return out, nil
	}
	for i := from; i < s.len() && len(out) < limit && room > 0; i++ {
		if ev := s.at(i); fits(ev) {
			out = append(out, *ev)
			room -= ev.Size()
		}
	}
	return out, nil
}

// DeadLetters implements [journal.Store].
func (h *Store) DeadLetters(_ context.Context, c journal.CreatureID, after journal.EventID, limit int) ([]journal.DeadLetterRow, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.usable("dead_letters"); err != nil {
		return nil, err
	}
	order := func(a, b journal.EventID) int {
		return cmp.Or(cmp.Compare(h.s.ranks[a.Origin], h.s.ranks[b.Origin]), strings.Compare(string(a.Origin[:]), string(b.Origin[:])), cmp.Compare(a.Seq, b.Seq))
	}
	h.s.look()
	if _, known := h.s.places[after]; !known && !after.IsZero() {
		if _, known = h.s.rows.letters[after]; !known {
			return nil, &abi.Error{Code: abi.NotFound, Op: "dead_letters", Message: "there is no dead letter " + after.String()}
		}
	}
	var out []journal.DeadLetterRow
	for _, row := range sorted(h.s.rows.letters, func(a, b journal.DeadLetterRow) int { return order(a.ID, b.ID) }) {
		if (c == "" || row.Creature == c) && (after.IsZero() || order(row.ID, after) > 0) {
			out = append(out, row)
		}
	}
	return out[:min(cmp.Or(limit, 1000), len(out))], nil
}

// Close implements [journal.Store].
func (h *Store) Close(context.Context) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.closed || h.dead() {
		return nil
	}
	var err error
	if h.d.Broken && h.s.written < len(h.s.records) {
		err = fault("close", "the disk is broken")
		h.s.truncate(h.s.written) // the queue is lost with the process
	} else {
		h.s.flush()
	}
	h.shut()
	return err
}

func (h *Store) shut() {
	h.closed = true
	h.s.handle = nil
	h.change.Broadcast()
}

func (d *Disk) pause() {
	if d.Pause != nil && !d.Calm && !d.crashed {
		d.Pause()
	}
}

// readable returns why the store cannot be read, if it cannot.
func (h *Store) readable(op string) error {
	if err := h.usable(op); err != nil {
		return err
	}
	if h.d.FailReads > 0 && !h.d.Calm {
		h.d.FailReads--
		return fault(op, "the file cannot be read")
	}
	return nil
}
