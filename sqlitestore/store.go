package sqlitestore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine"
)

// Store is the log and the live rows of one graph: an [engine.Store]. One
// goroutine writes the queue; everything else only reads.
type Store struct {
	info       engine.SessionInfo // as it was when the store was opened
	before     int64              // events of other origins
	path       string
	durability engine.Durability
	origin     engine.Origin
	dir        *Directory
	maxBytes   int64

	reads *reader
	w     *writer // belongs to the writing goroutine, while it is not parked

	mu       sync.Mutex
	queue    []*engine.Record // appended and not yet taken by the writer
	bytes    int64            // of all records that are not yet written
	appended uint64           // records, since the store was opened
	meta     map[string]string
	lastSeq  uint64        // of the last appended event
	room     chan struct{} // if not nil, closed when bytes falls below the bound
	parking  chan error    // if not nil, closed by the writer when it stands still, or answered why it cannot
	resumed  chan struct{} // closed to let a parked writer go on
	expected int           // the length of the queue that the writer lingers for
	stop     stopMode

	wake     chan struct{} // has room for one: the queue is not empty
	filled   chan struct{} // has room for one: the queue is as long as expected
	stopping chan struct{} // closed when the store is to be closed
	done     chan struct{} // closed when the writing goroutine has ended

	durable gate // event numbers of the origin
	written gate // records
	err     atomic.Pointer[error]
	notify  atomic.Pointer[func()]

	closing  sync.Once
	closeErr error
	lastErr  error // of the writing goroutine, valid after done
}

type stopMode uint8

const (
	running stopMode = iota
	draining
	closed
)

var _ engine.Store = (*Store)(nil)

// newStore makes the store of a file. The writer has written the events of its
// origin up to first, and info.Events counts them. Nothing is written before
// start.
func newStore(d *Directory, info engine.SessionInfo, w *writer, first uint64) (*Store, error) {
	reads, err := openReader(w.path, readOnly)
	if err != nil {
		return nil, err
	}
	s := &Store{
		info: info, meta: info.Meta, before: info.Events - int64(first),
		path: w.path, durability: w.durability, origin: w.own, dir: d, maxBytes: d.options.MaxQueueBytes,
		reads: reads, w: w, lastSeq: first,
		wake: make(chan struct{}, 1), filled: make(chan struct{}, 1),
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	s.durable.advance(first)
	return s, nil
}

func (s *Store) start() *Store {
	go s.run()
	return s
}

// Info describes the session. Events counts what has been written.
func (s *Store) Info() engine.SessionInfo {
	info := s.info
	info.Bytes = diskSize(s.path)
	info.Events = s.before + int64(s.Durable())
	s.mu.Lock()
	info.Meta = maps.Clone(s.meta)
	s.mu.Unlock()
	info.Parents = slices.Clone(info.Parents)
	return info
}

// Origin is what the ids of appended events carry.
func (s *Store) Origin() engine.Origin { return s.origin }

// Durable is the highest event number that Wait would not wait for.
func (s *Store) Durable() uint64 { return s.durable.reached.Load() }

// Notify sets the function that the writer calls whenever Durable has risen or
// writing has begun to fail.
func (s *Store) Notify(f func()) { s.notify.Store(&f) }

func (s *Store) tell() {
	if f := s.notify.Load(); f != nil && *f != nil {
		(*f)()
	}
}

// Err is the reason why writing fails at present, or nil.
func (s *Store) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Append queues a record. After Close it does nothing.
func (s *Store) Append(r *engine.Record) {
	size := recordSize(r)
	s.mu.Lock()
	if s.stop != running {
		s.mu.Unlock()
		return
	}
	s.queue = append(s.queue, r)
	s.bytes += size
	s.appended++
	if n := len(r.Events); n > 0 {
		s.lastSeq = r.Events[n-1].ID.Seq
	}
	maps.Copy(s.meta, r.Meta)
	first, full := len(s.queue) == 1, len(s.queue) == s.expected
	s.mu.Unlock()
	if first {
		nudge(s.wake)
	}
	if full {
		nudge(s.filled)
	}
}

// nudge wakes whoever waits on a channel with room for one, now or later.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Room waits until fewer bytes are unwritten than [Options.MaxQueueBytes].
func (s *Store) Room(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.bytes < s.maxBytes {
			s.mu.Unlock()
			return nil
		}
		if s.stop != running {
			s.mu.Unlock()
			return stopped("append", s.path)
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		select {
		case <-room:
		case <-s.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait waits until every event up to seq is as durable as promised.
func (s *Store) Wait(ctx context.Context, seq uint64) error { return s.durable.wait(ctx, seq) }

// flush waits until everything that was appended before can be read.
func (s *Store) flush(ctx context.Context) error {
	s.mu.Lock()
	appended, gone := s.appended, s.stop == closed
	s.mu.Unlock()
	if gone {
		return stopped("read", s.path)
	}
	return s.written.wait(ctx, appended)
}

// State returns a creature's state.
func (s *Store) State(ctx context.Context, creature engine.CreatureID) (map[string][]byte, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	out, err := s.reads.state(ctx, creature)
	return out, storageError("state", s.path, err)
}

// Messages returns messages of a channel, in order. A limit of zero or less
// does not limit.
func (s *Store) Messages(ctx context.Context, channel engine.ChannelID, after, until uint64, limit int, bytes int64) ([]engine.Event, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	out, err := s.reads.messages(ctx, channel, after, until, limit, bytes)
	return out, storageError("messages", s.path, err)
}

// History lists events in the order that the package documentation states. It
// answers the code not_found when the store does not have q.After.
func (s *Store) History(ctx context.Context, q engine.HistoryQuery) ([]engine.Event, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	out, err := s.reads.history(ctx, q)
	return out, storageError("history", s.path, err)
}

// DeadLetters returns dead letters by rising id, origin by origin, in the order
// in which the file came to know the origins. It answers the code not_found
// when the store does not know the origin of after.
func (s *Store) DeadLetters(ctx context.Context, creature engine.CreatureID, after engine.EventID, limit int) ([]engine.DeadLetterRow, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	out, err := s.reads.letters(ctx, creature, after, limit)
	return out, storageError("dead_letters", s.path, err)
}

// verify checks the store; see [Directory.Verify].
func (s *Store) verify(ctx context.Context, e entry) (engine.VerifyReport, error) {
	if err := s.flush(ctx); err != nil {
		return engine.VerifyReport{}, err
	}
	report, err := s.reads.verify(ctx, e)
	return report, storageError("verify", s.path, err)
}

// Close writes what is queued and closes the store. It blocks until both are
// done, whatever becomes of ctx: nothing may still be written to a file that
// its owner believes closed. Later calls answer the same.
func (s *Store) Close(context.Context) error {
	s.closing.Do(func() { s.closeErr = s.shut() })
	return s.closeErr
}

// freeze closes a parked store that a cut has ended, and writes nothing more.
func (s *Store) freeze() {
	s.mu.Lock()
	s.queue = nil
	s.mu.Unlock()
	// The children have all of it, so an error concerns nobody.
	_ = s.Close(context.Background())
}

func (s *Store) shut() error {
	s.mu.Lock()
	s.stop = draining
	s.mu.Unlock()
	s.resume()
	close(s.stopping)
	<-s.done
	s.mu.Lock()
	s.stop = closed
	s.queue = nil
	s.mu.Unlock()
	gone := stopped("wait", s.path)
	s.durable.fail(gone)
	s.written.fail(gone)
	s.dir.forget(s.info.Session)
	// The reading connections go first: the last one to be closed empties the
	// write-ahead log into the file, which a reader is not able to.
	s.dir.checkpoints.forget(s.path)
	err := errors.Join(s.reads.close(), s.w.close())
	return errors.Join(s.lastErr, storageError("close", s.path, err))
}
