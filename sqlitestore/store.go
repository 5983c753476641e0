package sqlitestore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Store is the log and the live rows of one graph: a [journal.Store]. One
// goroutine writes the queue; everything else only reads.
type Store struct {
	info       journal.SessionInfo // as it was when the store was opened
	durability journal.Durability
	origin     journal.Origin

	owner       storeOwner
	changing    exclusion // the directory's
	acks        *catalog.Acknowledgements
	checkpoints *checkpoints
	syncs       *syncs
	wear        *wear

	shelf *shelf
	said  *catalog.Slot             // belongs to the writing goroutine; nil until something was acknowledged
	w     *writer                   // belongs to the writing goroutine, while it is not parked
	wrote map[journal.Origin]uint64 // origins before it was opened, with the highest number of each
	sleep sleep

	queue  *queue
	metaMu sync.Mutex
	meta   map[string]string
	every  atomic.Int64  // see [Store.syncEvery]; follows from meta
	done   chan struct{} // closed when the writing goroutine has ended

	complete atomic.Bool // has its whole history in its file
	pages    pages
	cuts     cutNotes
	// stateless says that no creature has had state since the store was created, so that
	// the file need not be read for it.
	stateless atomic.Bool

	highest atomic.Uint64 // event number of the origin that is written
	durable gate          // event numbers of the origin
	written gate          // records
	err     atomic.Pointer[error]
	notify  atomic.Pointer[func()]

	closing closing
	lastErr error // of the writing goroutine, valid after done
}

// closing is the outcome of closing a store, once it has been closed.
type closing struct {
	sync.Once
	err error
}

// cutNotes are what cuts need to know of a store.
type cutNotes struct {
	made   time.Time            // when a cut made the store; zero if it was opened
	needs  []journal.SessionID  // of an incomplete one: see [catalog.Entry]
	ending *catalog.Description // by the present cut, if it ends the session; nil: not known
}

var _ journal.Store = (*Store)(nil)

// storeOwner is what a store needs from the directory that has opened it.
type storeOwner interface {
	makeFirm() error
	refresh(ctx context.Context, s *Store, stale *loan) error
	roomMaker
	smallest() int64
	outgrew()
	forget(s *Store)
	bury(s *Store)
}

// newStore makes the store of a file. The writer has written the events of its origin up
// to first; wrote is what its session wrote before. Nothing is written before start.
func newStore(d *Directory, e catalog.Entry, w *writer, f *family, first uint64, wrote map[journal.Origin]uint64) *Store {
	meta := map[string]string{}
	maps.Copy(meta, e.Meta)
	w.wear = d.wear
	e.MadeBy = e.Kind
	s := &Store{
		info: e.SessionInfo, meta: meta, durability: w.durability, origin: w.own,
		owner: d, changing: d.changing, acks: d.acks, checkpoints: d.checkpoints, syncs: d.syncs, wear: d.wear,
		shelf: newShelf(f), w: w, wrote: wrote, sleep: sleep{in: d.awake, calm: true}, queue: newQueue(d.options.MaxQueueBytes), done: make(chan struct{}),
	}
	s.cuts.needs = e.Needs
	s.complete.Store(e.Complete)
	s.pages.small.Store(w.small)
	s.every.Store(int64(d.syncs.periodOf(meta)))
	s.highest.Store(first)
	s.durable.advance(first)
	return s
}

func (s *Store) start() *Store {
	if !s.sleep.asleep {
		s.sleep.in.used(s)
	}
	go s.run()
	return s
}

// path returns where the store's file is, or was when the store was closed.
func (s *Store) path() string { return s.shelf.path() }

// Info describes the session, except for what would have to be counted or measured.
func (s *Store) Info() journal.SessionInfo {
	info := s.info
	info.Path = s.path()
	info.Complete = s.complete.Load()
	info.Bytes, info.Events = 0, -1
	s.metaMu.Lock()
	info.Meta = maps.Clone(s.meta)
	s.metaMu.Unlock()
	info.Parents = slices.Clone(info.Parents)
	return info
}

// metaText returns the metadata of the session as JSON.
func (s *Store) metaText() string {
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	text, _ := textOf(s.meta) // texts can always be encoded
	return text
}

// authored returns the origins under which the session has written, with the highest
// number of each. That of the present origin is final only when the store is parked or
// closed.
func (s *Store) authored() map[journal.Origin]uint64 {
	out := map[journal.Origin]uint64{}
	maps.Copy(out, s.wrote)
	out[s.origin] = s.highest.Load()
	return out
}

// Origin returns the origin in the ids of appended events.
func (s *Store) Origin() journal.Origin { return s.origin }

// Durable returns the highest event number for which Wait returns at once.
func (s *Store) Durable() uint64 { return s.durable.reached.Load() }

// Notify sets the function that the writer calls whenever Durable has risen or
// writing has begun to fail.
func (s *Store) Notify(f func()) { s.notify.Store(&f) }

func (s *Store) tell() {
	if f := s.notify.Load(); f != nil && *f != nil {
		(*f)()
	}
}

// Err returns the reason why writing fails at present, or nil.
func (s *Store) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Append queues a record. After Close it does nothing.
func (s *Store) Append(r *journal.Record) {
	if len(r.State) > 0 {
		s.stateless.Store(false)
	}
	meta := r.Meta // the record may be recycled once it is queued
	if !s.queue.add(r) || len(meta) == 0 {
		return
	}
	s.metaMu.Lock()
	maps.Copy(s.meta, meta)
	s.every.Store(int64(s.syncs.periodOf(s.meta)))
	s.metaMu.Unlock()
}

// Room waits until fewer bytes are unwritten than [Options.MaxQueueBytes].
func (s *Store) Room(ctx context.Context) error {
	for {
		room, running := s.queue.full()
		if room == nil {
			return nil
		}
		if !running {
			return stopped("append", s.path())
		}
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
	appended, mode := s.queue.state()
	if mode == closed {
		return stopped("read", s.path())
	}
	return s.written.wait(ctx, appended)
}

// Missing returns an error that names an ancestor whose file the store needs and cannot
// read, or nil.
func (s *Store) Missing() error {
	l, open := s.shelf.borrow()
	if !open {
		return nil
	}
	defer l.users.Done()
	if len(l.missing) == 0 {
		return nil
	}
	return lostAncestor(catalog.Entry{SessionInfo: s.info}, l.missing[0])
}

// State returns a creature's state.
func (s *Store) State(ctx context.Context, creature journal.CreatureID) (out map[string][]byte, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	if s.stateless.Load() {
		return map[string][]byte{}, nil
	}
	err = s.read(ctx, "state", func(f *family) (err error) {
		out, err = f.own.state(ctx, creature)
		return err
	})
	return out, err
}

// Messages returns messages of a channel, in order. A limit of zero or less is no limit.
func (s *Store) Messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) (out []journal.Event, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, "messages", func(f *family) (err error) {
		out, err = f.messages(ctx, channel, after, until, limit, bytes)
		return err
	})
	return out, err
}

// History lists events in the order that the package documentation states. It
// returns the code not_found when the store does not have q.After.
func (s *Store) History(ctx context.Context, q journal.HistoryQuery) (out []journal.Event, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, "history", func(f *family) (err error) {
		out, err = f.history(ctx, q, s.authored())
		return err
	})
	return out, err
}

// DeadLetters returns dead letters by rising id, origin by origin, in the order
// in which the file came to know the origins. It returns the code not_found
// when the store does not know the origin of after.
func (s *Store) DeadLetters(ctx context.Context, creature journal.CreatureID, after journal.EventID, limit int) (out []journal.DeadLetterRow, err error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, "dead_letters", func(f *family) (err error) {
		out, err = f.own.letters(ctx, creature, after, limit)
		return err
	})
	return out, err
}

// Close writes what is queued and closes the store. It ignores its context and blocks
// until both are done, so that nothing is written to the file after Close has returned.
// Later calls return the same error.
func (s *Store) Close(context.Context) error {
	s.closing.Do(func() { s.closing.err = s.shut() })
	return s.closing.err
}

// freeze stops a parked store that a cut has ended: nothing more is written, and the
// directory's keeper closes it later.
func (s *Store) freeze() {
	s.queue.close()
	s.owner.forget(s)
	s.acks.Release(s.info.Session)
	s.owner.bury(s)
}

func (s *Store) shut() error {
	var firmErr error
	if !s.asDurable() {
		firmErr = s.owner.makeFirm()
	}
	s.changing.Lock() // a store that moves to its whole file has two files meanwhile
	s.queue.drain()
	s.changing.Unlock()
	<-s.done
	s.queue.close()
	path := s.path()
	gone := stopped("wait", path)
	s.durable.fail(gone)
	s.written.fail(gone)
	s.owner.forget(s)
	// The reading connections are closed first: the last connection to be closed empties the
	// write-ahead log into the file, which a reader cannot do.
	s.checkpoints.forget(path)
	s.sleep.in.forget(s)
	closed := s.wear.closing(path)
	err := errors.Join(s.shelf.close(), s.w.close())
	if s.sleep.asleep && !missing(path+logSuffix) {
		sqlite.Checkpoint(path) // a reader had the file open when the writer closed it
	}
	closed()
	// Closing makes the store durable, unless another connection has its file open: then
	// SQLite leaves the log as it is.
	err = errors.Join(err, s.syncs.sync(path))
	s.syncs.forget(path)
	return errors.Join(firmErr, s.lastErr, storageError("close", path, err))
}
