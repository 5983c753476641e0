package sqlitestore

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const (
	// fewestSpares is the smallest number of files that are kept ready: enough for a few
	// cuts in a row.
	fewestSpares = 4
	// mostSpares is the largest number of files that are kept ready. Each takes some 300 KB
	// of memory and 150 KB of disk.
	mostSpares = 32
	// sparesAtOnce is how many files are made together, to save disk syncs. More would
	// delay the next cut.
	sparesAtOnce = 4
	// calm is how long no file must have been taken before fewer are kept.
	calm = time.Minute
)

// spareFile is a file that will become the store of a session: it has its name and its
// layout, is marked as unused, and is durable with its directory entry. Making one takes
// two rounds of syncs, for which no cut then has to wait.
type spareFile struct {
	*writer
	session journal.SessionID
}

// spares are the spare files of a directory. Whenever cuts use them up faster than new
// ones are made, twice as many are kept from then on, until cuts become rare again. Its
// methods may be called by any goroutine.
type spares struct {
	sessions *sessions
	crossing *crossing
	short    *shortage

	mu     sync.Mutex
	ready  pile
	wanted int
	full   bool // there have been as many as wanted since wanted last changed

	wake chan struct{} // has room for one: some have been taken
	stop chan struct{}
	done chan struct{}
}

func startSpares(k *sessions, x *crossing, short *shortage) *spares {
	s := &spares{sessions: k, crossing: x, short: short, wanted: fewestSpares, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *spares) run() {
	defer close(s.done)
	timer := time.NewTimer(calm)
	defer timer.Stop()
	for {
		select {
		case <-s.wake:
			for s.refill() {
			}
		case <-timer.C:
			s.shrink()
		case <-s.stop:
			return
		}
		timer.Reset(calm)
	}
}

// take returns n files, and makes those that are not ready.
func (s *spares) take(n int) ([]*spareFile, error) {
	defer nudge(s.wake)
	s.mu.Lock()
	taken := s.ready.takeAllBut(len(s.ready) - n)
	if len(taken) < n && s.full {
		s.wanted, s.full = min(2*s.wanted, mostSpares), false
	}
	s.mu.Unlock()
	if len(taken) == n {
		return taken, nil
	}
	made, err := s.prepare(n-len(taken), func() {})
	if err != nil {
		s.add(taken)
		return nil, err
	}
	return append(taken, made...), nil
}

// pile are files that are ready.
type pile []*spareFile

// takeAllBut takes the files, except for a given number.
func (p *pile) takeAllBut(stay int) []*spareFile {
	all := *p
	stay = min(max(stay, 0), len(all))
	taken := slices.Clone(all[stay:])
	clear(all[stay:])
	*p = all[:stay]
	return taken
}

// add keeps files that are ready.
func (s *spares) add(files []*spareFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, files...)
}

// refill makes some files, and reports whether more are wanted.
func (s *spares) refill() bool {
	select {
	case <-s.stop:
		return false
	default:
	}
	if s.short.lasts() {
		return false
	}
	s.mu.Lock()
	lacking := s.wanted - len(s.ready)
	s.full = s.full || lacking <= 0
	s.mu.Unlock()
	if lacking <= 0 {
		return false
	}
	made, err := s.prepare(min(lacking, sparesAtOnce), s.crossing.giveWay)
	if err != nil {
		return false // the next take reports the error
	}
	s.add(made)
	return true
}

// shrink removes files that have not been needed for a while.
func (s *spares) shrink() {
	s.mu.Lock()
	s.wanted = max(s.wanted/2, fewestSpares)
	surplus := s.ready.takeAllBut(s.wanted)
	s.mu.Unlock()
	_ = s.discard(surplus) // files that cannot be removed now are removed at the next start
}

// shed removes all spare files, because too many files are open. While that lasts, none are
// kept.
func (s *spares) shed() {
	s.mu.Lock()
	surplus := s.ready.takeAllBut(0)
	s.mu.Unlock()
	_ = s.discard(surplus) // as in shrink
}

// close removes the files that were not taken.
func (s *spares) close() error {
	close(s.stop)
	<-s.done
	s.mu.Lock()
	surplus := s.ready.takeAllBut(0)
	s.mu.Unlock()
	return s.discard(surplus)
}

// discard removes files that no session has.
func (s *spares) discard(files []*spareFile) error {
	var errs []error
	for _, p := range files {
		errs = append(errs, p.close(), sqlite.Remove(s.sessions.hooks, p.path))
	}
	return errors.Join(errs...)
}

// prepare makes files for future sessions, and calls giveWay before each step that uses
// the processor. Names rise with time. However many files it makes, it syncs only twice.
// With an error it returns none.
func (s *spares) prepare(n int, giveWay func()) (made []*spareFile, err error) {
	giveWay()
	paths, err := s.writeLayouts(n)
	for _, path := range paths {
		giveWay()
		var p *spareFile
		if err == nil {
			p, err = s.openSpare(path)
		}
		if err != nil {
			err = errors.Join(err, sqlite.Remove(s.sessions.hooks, path))
			continue
		}
		made = append(made, p)
	}
	if err == nil {
		err = s.makeDurable(made)
	}
	if err != nil {
		return nil, errors.Join(err, s.discard(made))
	}
	return made, nil
}

// writeLayouts writes files without a session, durable except for their names, and
// returns the paths it has written, even with an error.
func (s *spares) writeLayouts(n int) (paths []string, err error) {
	content, err := storefile.Schema.Template()
	if err != nil {
		return nil, err
	}
	var tasks []func() error
	for range n {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		path, err := s.sessions.FilePath(id.String() + files.StoreSuffix)
		if err != nil {
			return paths, err
		}
		paths = append(paths, path)
		tasks = append(tasks, func() error {
			if err := s.sessions.hooks.WriteWhole(path, content); err != nil {
				return err
			}
			return s.sessions.hooks.At(failpoint.SpareWritten, path)
		})
	}
	return paths, atOnce(tasks)
}

// openSpare turns a file that has its layout into a spare file. Its first transaction
// makes the write-ahead log.
func (s *spares) openSpare(path string) (*spareFile, error) {
	origin, err := newOrigin()
	if err != nil {
		return nil, err
	}
	p := &spareFile{session: journal.SessionID(strings.TrimSuffix(filepath.Base(path), files.StoreSuffix))}
	if p.writer, err = openWriter(path, journal.Normal, origin, s.sessions.hooks); err != nil {
		return nil, storageError("create", path, err)
	}
	if err := errors.Join(p.c.Transact(p.claim), p.rehearse(p.session)); err != nil {
		return nil, storageError("create", path, errors.Join(err, p.close()))
	}
	p.claimed = true
	return p, nil
}

// makeDurable makes the write-ahead logs of spare files durable, and the names of both.
// It does not touch the files themselves, which SQLite has locked.
func (s *spares) makeDurable(made []*spareFile) error {
	var tasks []func() error
	for _, p := range made {
		tasks = append(tasks, func() error { return s.sessions.hooks.SyncLog(p.path) })
	}
	if len(made) > 0 {
		tasks = append(tasks, func() error { return s.sessions.hooks.SyncDirectory(filepath.Dir(made[0].path)) })
	}
	if err := atOnce(tasks); err != nil {
		return err
	}
	for _, p := range made {
		if err := s.sessions.hooks.At(failpoint.SpareReady, p.path); err != nil {
			return err
		}
	}
	return nil
}
