package journal

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
)

// Chronicle is a session directory that a [Replay] reads.
type Chronicle interface {
	// Catalogue lists every session, oldest first, without reading their files: details
	// that are only in the files may be missing.
	Catalogue(ctx context.Context) ([]SessionInfo, error)
	// History reads a session, live or ended; see [Store.History].
	History(ctx context.Context, session SessionID, q HistoryQuery) ([]Event, error)
}

// Replay reads the events of a session directory after a cursor, each once. The events of
// one session come in the order of its log. Events of different sessions are ordered by
// time; if their times are equal, their order is not defined.
//
// Its methods must be called by one goroutine at a time.
type Replay struct {
	from    Chronicle
	only    func(*SessionInfo) bool
	at      Position
	age     int           // of the session that at.through names; -1: none
	waiting []*sessionLog // not yet begun, oldest first
	logs    []*sessionLog // those with a mark
	asked   bool          // the sessions were looked up since every log was read to its end
	last    SessionID     // the session of the last event that Next returned
	before  Mark          // of that session, before that event
}

// sessionLog is the part of a session's log that has been read.
type sessionLog struct {
	info  SessionInfo
	age   int // its place in the catalogue
	page  []Event
	size  int  // of the previous page; it grows with every full page
	ended bool // there is nothing after page at present
}

// The events of a session are read in pages. The first ones are small, so that a reader
// gets its first event soon. Each page costs as much as opening the file, if the session is
// not in use, so later ones are larger. Their bytes are bounded too.
const (
	firstReplayPage = 256
	maxReplayPage   = 4096
	maxReplayBytes  = 4 << 20
)

// NewReplay returns a replay that begins after a cursor. only, if it is not nil, selects
// sessions. The error has the code not_found for a cursor of another directory.
func NewReplay(ctx context.Context, from Chronicle, after EventCursor, only func(*SessionInfo) bool) (*Replay, error) {
	at, err := ParseCursor(after)
	if err != nil {
		return nil, err
	}
	if only == nil {
		only = func(*SessionInfo) bool { return true }
	}
	r := &Replay{from: from, only: only, at: at}
	return r, r.ask(ctx)
}

// Position returns the position of the replay. Its marks belong to the replay, and must not
// be modified.
func (r *Replay) Position() Position { return r.at }

// Cursor returns the position after the last event that Next returned.
func (r *Replay) Cursor() EventCursor { return r.at.Cursor() }

// Before returns the position before the last event that Next returned. A replay from there
// returns this event again. The marks belong to the caller.
func (r *Replay) Before() Position {
	at := Position{Through: r.at.Through, Marks: maps.Clone(r.at.Marks)}
	if r.last != "" {
		at.Marks[r.last] = r.before
	}
	return at
}

// Next returns the next event and the session that wrote it. more is false if there is no
// event to return at present; a later call may return one.
func (r *Replay) Next(ctx context.Context) (ev Event, session SessionID, more bool, err error) {
	if !r.asked {
		if err := r.ask(ctx); err != nil {
			return ev, "", false, err
		}
	}
	for {
		if err := r.fill(ctx); err != nil {
			return ev, "", false, err
		}
		log := r.earliest()
		if len(r.waiting) > 0 && (log == nil || r.waiting[0].info.Created <= log.page[0].Time) {
			r.begin()
			continue
		}
		if log == nil {
			r.asked = false
			return ev, "", false, nil
		}
		ev, log.page = log.page[0], log.page[1:]
		r.last, r.before = log.info.Session, r.at.Marks[log.info.Session]
		r.at.Marks[r.last] = r.before.Next(&ev)
		return ev, log.info.Session, true, nil
	}
}

// ask looks up the sessions, and which of them are live.
func (r *Replay) ask(ctx context.Context) error {
	list, err := r.from.Catalogue(ctx)
	if err != nil {
		return err
	}
	known := map[SessionID]*sessionLog{}
	for _, log := range r.logs {
		known[log.info.Session] = log
	}
	r.waiting, r.asked = nil, true
	r.age = slices.IndexFunc(list, func(i SessionInfo) bool { return i.Session == r.at.Through })
	found := 0
	for i, info := range list {
		_, marked := r.at.Marks[info.Session]
		if marked {
			found++
		}
		switch log := known[info.Session]; {
		case log != nil:
			log.info, log.ended = info, false
		case !r.only(&info): // a reader that continues from the position still needs its mark
		case marked:
			r.logs = append(r.logs, &sessionLog{info: info, age: i})
		case i > r.age:
			r.waiting = append(r.waiting, &sessionLog{info: info, age: i})
		}
	}
	if r.age < 0 && r.at.Through != "" || found < len(r.at.Marks) {
		return foreignCursor("subscribe")
	}
	return nil
}

// begin continues with the next session.
func (r *Replay) begin() {
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.age, r.at.Through = next.age, next.info.Session
	r.at.Marks[next.info.Session] = Mark{}
	r.logs = append(r.logs, next)
}

// fill reads the next page of each log whose page is used up. It drops sessions that have
// ended and have been read to their end.
func (r *Replay) fill(ctx context.Context) error {
	for _, log := range r.logs {
		if len(log.page) > 0 || log.ended {
			continue
		}
		log.size = min(max(2*log.size, firstReplayPage), maxReplayPage)
		q := HistoryQuery{Own: true, Behind: r.at.Marks[log.info.Session], Limit: log.size, Bytes: maxReplayBytes}
		page, err := r.from.History(ctx, log.info.Session, q)
		if err != nil {
			return err
		}
		if log.page = page; len(page) < log.size && bytesOf(page) < maxReplayBytes {
			log.size, log.ended = 0, true
		}
	}
	r.logs = slices.DeleteFunc(r.logs, func(log *sessionLog) bool {
		over := len(log.page) == 0 && log.ended && !log.info.Live
		if over && log.age <= r.age { // otherwise the mark is still needed to show that it has been read
			delete(r.at.Marks, log.info.Session)
		}
		return over
	})
	return nil
}

func bytesOf(list []Event) (n int64) {
	for i := range list {
		n += list[i].Size()
	}
	return n
}

// earliest returns the log with the earliest next event, or nil.
func (r *Replay) earliest() (first *sessionLog) {
	for _, log := range r.logs {
		if len(log.page) > 0 && (first == nil || earlier(&log.page[0], &first.page[0])) {
			first = log
		}
	}
	return first
}

// earlier orders events as histories do.
func earlier(a, b *Event) bool {
	return cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.ID.Origin[:], b.ID.Origin[:]), cmp.Compare(a.ID.Seq, b.ID.Seq)) < 0
}

// inspected is a [Chronicle] for a storage that has no faster way to list its sessions.
type inspected struct{ Storage }

// Catalogue implements [Chronicle].
func (s inspected) Catalogue(ctx context.Context) ([]SessionInfo, error) { return s.Sessions(ctx) }

// ChronicleOf returns the storage as a [Chronicle], for a [Replay].
func ChronicleOf(s Storage) Chronicle {
	if c, ok := s.(Chronicle); ok {
		return c
	}
	return inspected{s}
}
