package sqlitestore

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// looseCut is a cut that has happened and is not durable yet. In a store of the
// durability normal, acknowledged events survive the process without any sync; a store of
// the durability full acknowledges nothing before the cut is durable. So a cut need not
// wait for the disk. Right after it, everything is synced, and then the cut is firm.
//
// If the power fails before that, any part of the cut may be missing: the end of the
// parents' logs, the first content of a child, the catalogue's transaction. Each of them
// is one of the last transactions of a write-ahead log. A prefix of the log survives, so it
// is enough to check whether the transaction is present. If all are present, the cut has
// happened; otherwise the parents continue with what is left of them; see
// [Directory.decide].
type looseCut struct {
	id       string
	files    []string // of the parents and of the children
	children []*Store
	firm     *atomic.Bool // shared with the children's writers
}

// newLooseCut describes a cut that has just been committed, before its children are
// returned to the caller.
func newLooseCut(id string, parents map[journal.SessionID]*Store, children []*child) *looseCut {
	l := &looseCut{id: id, firm: new(atomic.Bool)}
	for _, p := range parents {
		l.files = append(l.files, p.path())
	}
	for _, c := range children {
		c.store.restOn(l.firm)
		l.files = append(l.files, c.Path)
		l.children = append(l.children, c.store)
	}
	return l
}

// looseCuts are the loose cuts of a directory. Its methods may be called by any
// goroutine.
type looseCuts struct {
	firming sync.Mutex // held while some of them are made durable

	mu     sync.Mutex
	cuts   []*looseCut
	failed error // why the last attempt to make them durable failed
}

func (l *looseCuts) add(cut *looseCut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = append(l.cuts, cut)
}

// waiting returns the cuts that are not durable yet.
func (l *looseCuts) waiting() []*looseCut {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.cuts)
}

// done records the outcome for the first n cuts.
func (l *looseCuts) done(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed = err; err == nil {
		l.cuts = slices.Delete(l.cuts, 0, n)
	}
}

// due reports whether cuts are to be made durable now. After a failure, the keeper tries
// again after a pause.
func (l *looseCuts) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.cuts) > 0 && l.failed == nil
}

// stuck reports whether the last attempt has failed.
func (l *looseCuts) stuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed != nil
}

// makeFirm makes all cuts durable that have happened. Until then, nothing is removed that
// would be needed to undo a cut, and only other loose cuts depend on it. An error is one
// of the directory's problems until a later call succeeds. It may be called by any
// goroutine.
func (d *Directory) makeFirm() error {
	d.loose.firming.Lock()
	defer d.loose.firming.Unlock()
	cuts := d.loose.waiting()
	if len(cuts) == 0 {
		return nil
	}
	err := d.options.hooks.At(failpoint.Loose, d.dir)
	if err == nil {
		err = d.syncAll(d.filesOf(cuts))
	}
	if err == nil {
		err = d.catalog.Firm(idsOf(cuts)...)
	}
	err = storageError("cut", d.dir, err)
	d.report("make a cut durable", err)
	for _, l := range cuts {
		l.firm.Store(err == nil)
		for _, s := range l.children {
			s.cutSynced(err)
		}
	}
	d.loose.done(len(cuts), err)
	return err
}

// restOn records that the store was made by a cut that is not durable until firm is true.
func (s *Store) restOn(firm *atomic.Bool) {
	s.w.firm = firm
	if !s.asDurable() {
		s.durable.reached.Store(0)
	}
}

// asDurable reports whether written events are as durable as the store promises. In a
// store of the durability full, they are not until the cut that made it is durable.
func (s *Store) asDurable() bool {
	return s.durability == journal.Normal || s.w.firm == nil || s.w.firm.Load()
}

// cutSynced receives the outcome of an attempt to make durable the cut that made the
// store.
func (s *Store) cutSynced(err error) {
	if err != nil {
		if !s.asDurable() {
			s.durable.fail(err)
			s.tell()
		}
		return
	}
	// Either this call sees what the writer has written, or the writer sees that the cut
	// is firm.
	s.durable.raise(s.highest.Load())
	s.queue.ifRunning(func() {
		if s.Err() == nil {
			s.durable.open()
		}
	})
	s.tell()
	nudge(s.queue.wake) // so that the writer removes the mark of an unused file
}

// filesOf returns the files of the catalogue and of all sessions that took part in cuts,
// each once.
func (d *Directory) filesOf(cuts []*looseCut) []string {
	paths := []string{d.catalog.Path()}
	for _, l := range cuts {
		paths = append(paths, l.files...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// syncAll makes everything durable that has been written to files, and waits for all of
// them concurrently. All of it is in write-ahead logs; a checkpoint makes a log durable
// before it empties the log into its file.
func (d *Directory) syncAll(paths []string) error {
	var tasks []func() error
	for _, path := range paths {
		tasks = append(tasks, func() error { return d.options.hooks.SyncLog(path) })
	}
	return atOnce(tasks)
}

func idsOf(cuts []*looseCut) (ids []string) {
	for _, l := range cuts {
		ids = append(ids, l.id)
	}
	return ids
}
