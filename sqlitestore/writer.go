package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const (
	// walLimit is the size to which an emptied write-ahead log is truncated.
	walLimit = 16 << 20
)

// writer writes records into one file. It is used by one goroutine at a time.
//
// It is open, or has no connection (c is nil). After a commit that fails, it is unknown
// what the connection has written: reopen closes it, and reads what the file has. If the
// file cannot be opened, there is no connection until the next reopen.
type writer struct {
	path       string
	durability journal.Durability
	own        journal.Origin
	hooks      failpoint.Hooks
	wear       *wear // nil while the file is made

	c       *sqlite.Conn
	st      statements
	origins map[journal.Origin]int64 // the numbers of this file
	last    int64                    // the highest of them
	pending batch
	// marked says that the file carries a mark that holds until its session is written
	// to, and that the next commit removes: see [storefile.Marks].
	marked bool
	// firm, if not nil, becomes true when the cut that made the file is durable. Until
	// then the file keeps its marks: after a power failure it would be of no use.
	firm *atomic.Bool
	// claimed says that the file lists our origin among those of its session. If not, the
	// next commit adds it.
	claimed   bool
	small     bool  // the file has small pages
	size      int64 // of the file when it was opened, and what was written to it since, about
	unindexed int   // messages after the end of the index
	unspanned int   // events after it
	// unindexedOf has their channels, as far as they were appended by this writer.
	unindexedOf map[journal.ChannelID]struct{}

	// chain is the chain of our last event in the file. begun is the same for the
	// predecessor of the next event while a group is written.
	chain, begun uint32
	summer       storefile.Summer
	unsummed     bool // events get no sums, so that a benchmark can tell what those cost

	// For recording the changes of live rows: see [writer.noteChanges].
	based  bool   // the file has a base
	lossy  bool   // the file of an ancestor lacks some of the values written to states
	behind uint64 // the number of our last event
	parts  int64  // of the changes after it
}

func openWriter(path string, durability journal.Durability, own journal.Origin, h failpoint.Hooks) (*writer, error) {
	w := &writer{path: path, durability: durability, own: own, hooks: h}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// open connects. After an error, close must be called.
func (w *writer) open() (err error) {
	if w.c, err = sqlite.Open(w.path, sqlite.ReadWrite); err != nil {
		return err
	}
	if err := w.pace(); err != nil {
		return err
	}
	page, _, err := w.c.Integer("PRAGMA page_size")
	if err != nil {
		return err
	}
	w.small, w.size = page < sqlite.UsualPage, files.Size(w.path)+files.Size(w.path+logSuffix)
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", sqlite.CheckpointPages*sqlite.UsualPage/max(page, 512)),
		fmt.Sprintf("PRAGMA journal_size_limit = %d", walLimit),
	} {
		if err := w.c.Exec(pragma); err != nil {
			return err
		}
	}
	if w.hooks.Opened != nil {
		if err := w.hooks.Opened(w.path, func(pragma string) error { return w.c.Exec(pragma) }); err != nil {
			return err
		}
	}
	if err := errors.Join(storefile.NameKinds(w.c), w.loadOrigins(), w.loadIndex()); err != nil {
		return err
	}
	if _, w.marked, err = w.c.Integer("SELECT 1 FROM store WHERE key IN " + storefile.Marks); err != nil {
		return err
	}
	if _, w.claimed, err = w.c.Integer("SELECT 1 FROM own WHERE uuid = ?", w.own[:]); err != nil {
		return err
	}
	w.st = newStatements(w.c)
	return errors.Join(w.loadChain(), w.loadChanges())
}

// pace makes commits as durable as the store promises.
func (w *writer) pace() error { return w.c.SetDurable(w.durability != journal.Normal) }

// sync makes everything durable that has been written, whatever the store's
// durability.
func (w *writer) sync() error {
	w.wear.committed(journal.Full)
	return errors.Join(w.c.Sync(storefile.Schema), w.pace())
}

func (w *writer) close() error {
	if w.c == nil {
		return nil
	}
	err := errors.Join(w.st.close(), w.c.Rollback(), w.c.Close())
	w.c = nil
	return err
}

// reopen starts over after an error that leaves unknown how much reached the disk. If it
// fails there is no connection.
func (w *writer) reopen() error {
	_ = w.close() // the connection is dropped, whatever it says
	w.pending.reset()
	if err := w.open(); err != nil {
		return errors.Join(err, w.close())
	}
	return nil
}

// errNoConnection says that the file could not be opened again; see reopen.
var errNoConnection = errors.New("the file is not open")

func (w *writer) loadOrigins() error {
	w.origins, w.last = map[journal.Origin]int64{}, 0
	return w.c.Query("SELECT no, uuid FROM origin", nil, func(v []driver.Value) error {
		var no int64
		var origin journal.Origin
		if err := sqlite.TakeRow(v, &no, (*[16]byte)(&origin)); err != nil {
			return err
		}
		w.origins[origin] = no
		w.last = max(w.last, no)
		return nil
	})
}

// claim records in the file that its session writes under our origin.
func (w *writer) claim() error {
	return w.c.Exec("INSERT OR IGNORE INTO own (uuid) VALUES (?)", w.own[:])
}

// pack converts an id to the form that it has in this file. An origin that the file does
// not know yet gets a number.
func (w *writer) pack(id journal.EventID) (int64, error) {
	no, err := w.number(id.Origin)
	if err != nil {
		return 0, err
	}
	if id.Seq == 0 || id.Seq > storefile.SeqMask {
		return 0, &abi.Error{Code: abi.Internal, Op: "append", Message: fmt.Sprintf("event id %s is out of range", id)}
	}
	return no<<storefile.SeqBits | int64(id.Seq), nil
}

// number returns the number of an origin in this file, and assigns one if there is none.
func (w *writer) number(origin journal.Origin) (int64, error) {
	if no, ok := w.origins[origin]; ok {
		return no, nil
	}
	return w.assign(origin)
}

// assign gives an origin a number.
func (w *writer) assign(origin journal.Origin) (int64, error) {
	no := w.last + 1
	if err := w.st.origin.Values(no, origin[:]); err != nil {
		return 0, err
	}
	w.origins[origin], w.last = no, no
	return no, nil
}

// originOf returns the origin that a number of this file stands for.
func (w *writer) originOf(no int64) (found journal.Origin) {
	for origin, is := range w.origins {
		if is == no {
			found = origin
		}
	}
	return found
}

// loadChain finds out what the next event is chained to. If all events under our origin
// have been pruned, only the writer still has the chain.
func (w *writer) loadChain() error {
	if w.chain == 0 {
		w.chain = storefile.ChainSeed(w.own)
	}
	no := w.origins[w.own] // which is 0 where it is not known
	sum, found, err := w.c.Integer("SELECT sum FROM event WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 1", no<<storefile.SeqBits, (no+1)<<storefile.SeqBits)
	if found {
		w.chain = storefile.ChainOf(sum)
	}
	w.begun = w.chain
	return err
}

// find is pack for an id whose origin may be unknown here: then it assigns no number, and
// returns false.
func (w *writer) find(id journal.EventID) (int64, bool) {
	no, ok := w.origins[id.Origin]
	return no<<storefile.SeqBits | int64(id.Seq&storefile.SeqMask), ok
}

// packRef is pack for a reference, which may be absent: then it is 0.
func (w *writer) packRef(id journal.EventID) (int64, error) {
	if id.IsZero() {
		return 0, nil
	}
	return w.pack(id)
}

// commit writes a group of records in one transaction. After an error it is
// unknown whether the group was written; see reopen and holds.
func (w *writer) commit(group []*journal.Record) error {
	if w.c == nil {
		return errNoConnection
	}
	if err := w.c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.noteChanges(group); err != nil {
		return err
	}
	if err := w.apply(group); err != nil {
		return err
	}
	unmark := w.due()
	if unmark {
		if err := w.unmark(); err != nil {
			return err
		}
	}
	if !w.claimed {
		if err := w.claim(); err != nil {
			return err
		}
	}
	if err := w.hooks.At(failpoint.Appending, w.path); err != nil {
		return err
	}
	if err := w.c.Exec("COMMIT"); err != nil {
		return err
	}
	w.wear.committed(w.durability)
	w.marked, w.claimed, w.chain = w.marked && !unmark, true, w.begun
	return w.hooks.At(failpoint.Appended, w.path)
}

// due reports whether the next commit, even of nothing, removes marks.
func (w *writer) due() bool { return w.marked && (w.firm == nil || w.firm.Load()) }

// apply writes records within a transaction.
func (w *writer) apply(group []*journal.Record) error {
	if err := w.insertEvents(group); err != nil {
		return err
	}
	if err := w.index(group); err != nil {
		return err
	}
	for _, r := range group {
		if err := w.drop(&r.Drop); err != nil {
			return err
		}
		if err := w.writeOwn(r); err != nil {
			return err
		}
		w.pending.add(r)
	}
	return w.flush()
}

// insertEvents writes the events of all records, several with one statement.
func (w *writer) insertEvents(group []*journal.Record) error {
	for _, r := range group {
		for i := range r.Events {
			if err := w.insertEvent(&r.Events[i]); err != nil {
				return err
			}
		}
	}
	return w.st.events.End()
}

func (w *writer) insertEvent(e *journal.Event) error {
	if e.ID.Origin != w.own {
		return &abi.Error{Code: abi.Internal, Op: "append", Message: fmt.Sprintf("event %s is not of the store's origin %s", e.ID, w.own)}
	}
	id, err := w.pack(e.ID)
	if err != nil {
		return err
	}
	turn, err := w.packRef(e.Turn)
	if err != nil {
		return err
	}
	cause, err := w.packRef(e.Cause)
	if err != nil {
		return err
	}
	b := w.st.events
	b.Integer(id)
	b.Integer(e.Time)
	b.Integer(int64(e.Kind))
	b.OptionalText(string(e.Graph))
	b.OptionalText(string(e.Creature))
	b.OptionalInteger(turn)
	b.OptionalInteger(int64(e.Attempt))
	b.OptionalText(string(e.Channel))
	b.OptionalInteger(int64(e.Seq))
	b.OptionalBlob(e.Headers)
	b.OptionalBlob(e.Payload)
	b.OptionalInteger(cause)
	b.Integer(w.sum(e))
	return b.EndRow()
}

// sum returns the checksum of the next event.
func (w *writer) sum(e *journal.Event) int64 {
	if w.unsummed {
		return 0
	}
	digest := w.summer.Digest(e)
	w.begun = w.summer.Chain(w.begun, digest)
	return storefile.JoinSum(w.begun, digest)
}

// holds reports whether the group was written after all, once the file has
// been reopened. It returns false for a group without events: writing its rows again
// changes nothing.
func (w *writer) holds(group []*journal.Record) (bool, error) {
	for i := len(group) - 1; i >= 0; i-- {
		events := group[i].Events
		if len(events) == 0 {
			continue
		}
		no, ok := w.origins[w.own]
		if !ok {
			return false, nil
		}
		id := no<<storefile.SeqBits | int64(events[len(events)-1].ID.Seq)
		_, found, err := w.c.Integer("SELECT 1 FROM event WHERE id = ?", id)
		return found, err
	}
	return false, nil
}

// unmark removes the marks of the file, within a transaction.
func (w *writer) unmark() error { return w.c.Exec("DELETE FROM store WHERE key IN " + storefile.Marks) }
