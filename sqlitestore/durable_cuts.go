package sqlitestore

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// looseCut is a cut that has happened and is not durable yet. For what is acknowledged
// in a store of the durability normal to survive the process, nothing has to be synced;
// in one of the durability full nothing is acknowledged before. So a cut waits for no
// disk. Right after it all of it is synced, and then it is firm.
//
// When the power fails before that, any part of it may be missing: the end of what
// the parents have written, the first content of a child, the catalogue's
// transaction. Each of them is one of the last transactions of a write-ahead log, of
// which a prefix is left, so it is enough to look whether it is there. If all of them
// are, the cut has happened; otherwise the parents go on with what is left of them;
// see [Directory.decide].
type looseCut struct {
	id       string
	files    []string // of the parents and of the children
	children []*Store
	firm     *atomic.Bool // which the children's writers have, too
}

// newLooseCut describes a cut that has just been committed, and whose children nobody
// has been given yet.
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

// looseCuts are those of a directory. Its methods may be called by any goroutine.
type looseCuts struct {
	firming sync.Mutex // held while some of them are made durable

	mu     sync.Mutex
	cuts   []*looseCut
	failed error // why the last attempt to make them durable did not succeed
}

func (l *looseCuts) add(cut *looseCut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = append(l.cuts, cut)
}

// waiting are the cuts that are not durable.
func (l *looseCuts) waiting() []*looseCut {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.cuts)
}

// done notes what became of the first n cuts.
func (l *looseCuts) done(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed = err; err == nil {
		l.cuts = slices.Delete(l.cuts, 0, n)
	}
}

// due reports whether somebody should try to make cuts durable; when that has failed,
// those try again who depend on it.
func (l *looseCuts) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.cuts) > 0 && l.failed == nil
}

// stuck reports whether that has failed.
func (l *looseCuts) stuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed != nil
}

// makeFirm makes all cuts durable that have happened. Nothing that a cut could be taken
// back to is removed before, and nothing is built upon it but other loose cuts. An
// error is one of the directory's problems until it succeeds. It may be called by any
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

// restOn notes that the store came out of a cut that is not durable before firm is true.
func (s *Store) restOn(firm *atomic.Bool) {
	s.w.firm = firm
	if !s.asDurable() {
		s.durable.reached.Store(0)
	}
}

// asDurable reports whether what is written is as durable as the store promises: in one
// of the durability full it is not before the cut is that the store came out of.
func (s *Store) asDurable() bool {
	return s.durability == journal.Normal || s.w.firm == nil || s.w.firm.Load()
}

// cutSynced is told what became of an attempt to make the cut durable that the store
// came out of.
func (s *Store) cutSynced(err error) {
	if err != nil {
		if !s.asDurable() {
			s.durable.fail(err)
			s.tell()
		}
		return
	}
	// Either this sees what the writer has written, or the writer that the cut is firm.
	s.durable.raise(s.highest.Load())
	s.queue.ifRunning(func() {
		if s.Err() == nil {
			s.durable.open()
		}
	})
	s.tell()
	nudge(s.queue.wake) // so that the file stops saying that it is unused
}

// filesOf are the files of the catalogue and of all who had part in cuts, each once.
func (d *Directory) filesOf(cuts []*looseCut) []string {
	paths := []string{d.catalog.Path()}
	for _, l := range cuts {
		paths = append(paths, l.files...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// syncAll makes durable what has been written to files, and waits for all of them at
// once. All of it is in write-ahead logs; who empties one into its file makes it
// durable before.
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
