package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// readConnections bounds the connections that read one store at a time.
const readConnections = 4

const eventFields = "id, ts, kind, coalesce(graph, ''), coalesce(creature, ''), coalesce(turn, 0), coalesce(attempt, 0), " +
	"coalesce(channel, ''), coalesce(seq, 0), headers, payload, coalesce(cause, 0), sum"

// reader reads one store's file. Its methods may be called by any goroutine.
type reader struct {
	vouched
	mode  sqlite.Mode
	db    *sql.DB
	users atomic.Int32 // families that read it; see share

	mu      sync.Mutex
	origins map[int64]journal.Origin // rows of the origin table, which never change
}

// vouched is a file that holds the history of a session, except for the part that is in
// the files of its ancestors. There are three ways to get one: the catalogue names the
// file as the session's ([heldBy]); it is the file of a child of a cut, which is discarded
// together with its readers unless the catalogue names it ([Directory.newborn]); or the
// catalogue has just been changed to name it ([hydrator.commitMove]). Everything that
// reads or copies history takes a vouched file, not a path: so a file that is still being
// made is never read.
type vouched struct {
	path    string
	session journal.SessionID // "" if that is not known
}

// heldBy returns the file that the catalogue names as a session's.
func heldBy(e catalog.Entry) vouched { return vouched{e.Path, e.Session} }

// openReader makes a reader from a connection to a file, which it takes over.
func openReader(ctx context.Context, file vouched, c *sqlite.Conn) (*reader, error) {
	db, err := c.Pool(ctx, readConnections)
	if err != nil {
		return nil, err
	}
	return newReader(file, c.Mode, db), nil
}

// ownReader makes a reader of a file that this process owns. It opens the file on the
// first read.
func ownReader(file vouched) *reader {
	return newReader(file, sqlite.ReadWrite, sqlite.OpenPool(file.path, sqlite.ReadWrite, readConnections))
}

func newReader(file vouched, mode sqlite.Mode, db *sql.DB) *reader {
	r := &reader{vouched: file, mode: mode, db: db, origins: map[int64]journal.Origin{}}
	r.users.Store(1)
	return r
}

// share adds the reader to another family, and returns it. Each of the families closes
// it.
func (r *reader) share() *reader {
	r.users.Add(1)
	return r
}

// close closes the file when the last family that reads it has closed it. If the file was
// removed while it was open, SQLite leaves its auxiliary files behind.
func (r *reader) close() error {
	if r.users.Add(-1) > 0 {
		return nil
	}
	err := r.db.Close()
	if missing(r.path) {
		for _, suffix := range sqlite.Suffixes[1:] {
			_ = files.Remove(r.path + suffix) // or another process removes them
		}
	}
	return err
}

// rest closes the connections that are not in use.
func (r *reader) rest() {
	r.db.SetMaxIdleConns(-1)
	r.db.SetMaxIdleConns(sqlite.IdleConnections)
}

// authored returns the origins under which the session of the file has written.
func (r *reader) authored(ctx context.Context) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		var uuid []byte
		if err := scan(&uuid); err != nil {
			return err
		}
		origin, err := storefile.OriginIn(uuid)
		out[origin] = storefile.SeqMask
		return err
	}, "SELECT uuid FROM own")
	return out, err
}

func (r *reader) state(ctx context.Context, creature journal.CreatureID) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		var key string
		var value []byte
		if err := scan(&key, &value); err != nil {
			return err
		}
		out[key] = value
		return nil
	}, "SELECT key, value FROM state_value WHERE creature = ?", string(creature))
	return out, err
}

// packedEvent is an event whose ids are still packed, as in the file.
type packedEvent struct {
	journal.Event
	id, turn, cause int64
	sum             int64
}

func scanEvents(ctx context.Context, q sqlite.Querier, room *int64, query string, args ...any) ([]packedEvent, error) {
	var out []packedEvent
	err := eachEvent(ctx, q, func(e *packedEvent) error {
		out = append(out, *e)
		if room != nil {
			if *room -= int64(len(e.Payload) + len(e.Headers)); *room <= 0 {
				*room = -1
				return errEnough
			}
		}
		return nil
	}, query, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// eachEvent calls row for every event of a query of eventFields. row must not keep e.
func eachEvent(ctx context.Context, q sqlite.Querier, row func(e *packedEvent) error, query string, args ...any) error {
	var e packedEvent
	var seq int64
	fields := []any{&e.id, &e.Time, &e.Kind, &e.Graph, &e.Creature, &e.turn, &e.Attempt,
		&e.Channel, &seq, &e.Headers, &e.Payload, &e.cause, &e.sum}
	return sqlite.Each(ctx, q, func(scan func(...any) error) error {
		e = packedEvent{}
		if err := scan(fields...); err != nil {
			return err
		}
		e.Seq = uint64(seq)
		return row(&e)
	}, query, args...)
}

// errEnough ends a scan that has found enough.
var errEnough = errors.New("enough")

// unpackAll replaces the packed ids of events, and checks the events.
func (s *snapshot) unpackAll(ctx context.Context, packed []packedEvent) ([]journal.Event, error) {
	out := make([]journal.Event, len(packed))
	for i := range packed {
		ev, err := s.unpackEvent(ctx, &packed[i])
		if err != nil {
			return nil, err
		}
		out[i] = ev
	}
	return out, nil
}

func (s *snapshot) unpackEvent(ctx context.Context, p *packedEvent) (journal.Event, error) {
	out := p.Event
	for _, field := range []struct {
		to   *journal.EventID
		from int64
	}{{&out.ID, p.id}, {&out.Turn, p.turn}, {&out.Cause, p.cause}} {
		id, err := s.r.unpack(ctx, s.tx, field.from)
		if err != nil {
			return journal.Event{}, err
		}
		*field.to = id
	}
	if storefile.EventDigest(&out) != storefile.DigestOf(p.sum) {
		return journal.Event{}, storefile.Altered(s.r.path, out.ID)
	}
	return out, nil
}

func (r *reader) unpack(ctx context.Context, q sqlite.Querier, packed int64) (journal.EventID, error) {
	if packed == 0 {
		return journal.EventID{}, nil
	}
	origin, err := r.originOf(ctx, q, packed>>storefile.SeqBits)
	return journal.EventID{Origin: origin, Seq: uint64(packed & storefile.SeqMask)}, err
}

func (r *reader) originOf(ctx context.Context, q sqlite.Querier, no int64) (journal.Origin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.origins[no]; ok {
		return o, nil
	}
	err := sqlite.Each(ctx, q, func(scan func(...any) error) error {
		var no int64
		var uuid []byte
		if err := scan(&no, &uuid); err != nil {
			return err
		}
		origin, err := storefile.OriginIn(uuid)
		if err == nil {
			r.origins[no] = origin
		}
		return err
	}, "SELECT no, uuid FROM origin")
	if err != nil {
		return journal.Origin{}, err
	}
	if o, ok := r.origins[no]; ok {
		return o, nil
	}
	return journal.Origin{}, errors.New("an event refers to an origin that the file does not have")
}

// numberOf returns the packed form of an id; 0 when the file does not know its origin.
func numberOf(ctx context.Context, q sqlite.Querier, id journal.EventID) (packed int64, err error) {
	err = sqlite.Each(ctx, q, func(scan func(...any) error) error {
		var no int64
		if err := scan(&no); err != nil {
			return err
		}
		packed = no<<storefile.SeqBits | int64(id.Seq&storefile.SeqMask)
		return nil
	}, "SELECT no FROM origin WHERE uuid = ?", id.Origin[:])
	return packed, err
}
