package sqlitestore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

const (
	// crowdTries is how often a file is opened when too many are open.
	crowdTries = 8
	// crowdWait bounds the wait for the first store that falls asleep: all that are to may be
	// busy. shortWait bounds the wait if none is to, since some may just be waking up.
	crowdWait, shortWait = 100 * time.Millisecond, 20 * time.Millisecond
	// shortageTime is how long open files are expected to be short after they were.
	shortageTime = time.Minute
)

// roomMaker closes files that are not in use, so that another one can be opened.
type roomMaker interface{ makeRoom() }

// withRoom calls open, which opens the files at some paths. While that fails because too many
// files are open, it makes room and calls open again, a few times; not if it is unknown
// whether open has changed something. If an error names a path, that path counts.
func withRoom(m roomMaker, paths func() []string, open func() error) error {
	err := open()
	for try := 1; try < crowdTries && err != nil && crowded(err, paths) && !errors.Is(err, catalog.ErrUnknown); try++ {
		m.makeRoom()
		err = open()
	}
	return err
}

// noPaths is for calls whose errors name the path.
func noPaths() []string { return nil }

func crowded(err error, paths func() []string) bool {
	var typed *abi.Error
	if errors.As(err, &typed) && typed.IDs["path"] != "" {
		return sqlite.TooManyFiles(err, typed.IDs["path"])
	}
	return sqlite.TooManyFiles(err, paths()...)
}

// shortage remembers when the process was last short of open files, by the machine's clock,
// which cannot be set back. Its methods may be called by any goroutine.
type shortage struct{ at atomic.Pointer[time.Time] }

func (s *shortage) note() {
	now := time.Now()
	s.at.Store(&now)
}

// lasts reports whether files were short a short while ago.
func (s *shortage) lasts() bool {
	at := s.at.Load()
	return at != nil && time.Since(*at) < shortageTime
}

// makeRoom closes spare files, connections for reading that are not in use, and the files of
// stores that nothing has been written to for some time.
func (d *Directory) makeRoom() {
	d.short.note()
	if d.spares == nil {
		return // the directory is being opened
	}
	wait := shortWait
	if d.closeUnused() {
		wait = crowdWait
	}
	d.awake.await(wait)
}

// closeUnused closes what it can, and reports whether a store will fall asleep.
func (d *Directory) closeUnused() bool {
	d.spares.shed()
	for _, s := range d.allOpen() {
		s.shelf.rest()
	}
	return d.awake.tireOldest()
}

// roomAhead makes room for a change of the topology, which opens files in several steps, if
// the process was short of files a short while ago.
func (d *Directory) roomAhead() {
	if d.short.lasts() && d.closeUnused() {
		d.awake.await(crowdWait)
	}
}
