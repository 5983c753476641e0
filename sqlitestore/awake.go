package sqlitestore

import (
	"container/list"
	"sync"
	"time"
)

// naps are the settings for when stores fall asleep.
type naps struct {
	// most is how many stores keep their connections even if nothing is written to them for
	// a long time. A connection takes some 300 KB of memory, and two or three descriptors.
	most int
	// first is how long a store that has woken up must go without a record before it may
	// sleep again. It doubles each time, up to lastPatience: falling asleep takes two syncs,
	// and waking up takes ten times as long as writing a record.
	first time.Duration
}

var usualNaps = naps{most: 48, first: time.Second}

const (
	lastPatience = 10 * time.Minute
	// openingAtOnce is how many stores wake up at the same time, so that a thousand that are
	// created together do not all have connections at the same time.
	openingAtOnce = 4
	// crowd is how many stores fall asleep together when the process may not open another
	// file.
	crowd = 8
)

// awake are the stores that have a connection for writing. If there are more than most,
// those that nothing has been written to for the longest time fall asleep. A store that
// has just been created may do so at once: most creatures that are added do nothing for
// some time. Stores that are in use stay awake, however many there are. The methods may
// be called by any goroutine.
type awake struct {
	naps
	now     func() time.Time
	opening chan struct{}  // has room for as many as may wake up at the same time
	slept   func(s *Store) // notifies a test that a store has fallen asleep
	room    chan struct{}  // has room for one: a store has fallen asleep

	mu     sync.Mutex
	recent *list.List // of *Store, the least recently used last
	of     map[*Store]*list.Element
}

func newAwake(n naps, now func() time.Time) *awake {
	return &awake{naps: n, now: now, opening: make(chan struct{}, openingAtOnce), room: make(chan struct{}, 1), recent: list.New(), of: map[*Store]*list.Element{}}
}

// used records that a store has used its file. The writing goroutine of the store calls
// it.
func (a *awake) used(s *Store) {
	now := a.now()
	a.mu.Lock()
	s.sleep.usedAt = now
	if e, known := a.of[s]; known {
		a.recent.MoveToFront(e)
	} else {
		a.of[s] = a.recent.PushFront(s)
	}
	tired := a.tired(now)
	a.mu.Unlock()
	for _, s := range tired {
		s.queue.tire()
	}
}

// woke raises the patience of a store that has opened its file again.
func (a *awake) woke(s *Store) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.sleep.patience = min(max(2*s.sleep.patience, a.first), lastPatience)
}

// trim lets stores fall asleep even while no store is used.
func (a *awake) trim() {
	a.mu.Lock()
	tired := a.tired(a.now())
	a.mu.Unlock()
	for _, s := range tired {
		s.queue.tire()
	}
}

// tired removes from the list the stores that are to fall asleep, and returns them. A store
// that is in use does not fall asleep, and is added again after that use.
func (a *awake) tired(now time.Time) (out []*Store) {
	for a.recent.Len() > a.most {
		e := a.recent.Back()
		s := e.Value.(*Store)
		if now.Sub(s.sleep.usedAt) < s.sleep.patience {
			break
		}
		a.recent.Remove(e)
		delete(a.of, s)
		out = append(out, s)
	}
	return out
}

// tireOldest makes the stores fall asleep that nothing has been written to for the longest
// time, however short that is, and reports whether there are any. Those that have records to
// write stay awake.
func (a *awake) tireOldest() bool {
	a.mu.Lock()
	var tired []*Store
	for e := a.recent.Back(); e != nil && len(tired) < crowd; e = a.recent.Back() {
		s := a.recent.Remove(e).(*Store)
		delete(a.of, s)
		tired = append(tired, s)
	}
	a.mu.Unlock()
	select {
	case <-a.room: // from before
	default:
	}
	for _, s := range tired {
		s.queue.tire()
	}
	return len(tired) > 0
}

// await waits until a store falls asleep, but no longer than most.
func (a *awake) await(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-a.room:
	case <-timer.C:
	}
}

// keep adds a store that has got tired, but cannot fall asleep now.
func (a *awake) keep(s *Store) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.of[s]; !known {
		a.of[s] = a.recent.PushFront(s)
	}
}

// forget removes a store that is asleep, or is being closed.
func (a *awake) forget(s *Store) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, known := a.of[s]; known {
		a.recent.Remove(e)
		delete(a.of, s)
	}
}

// sleep is what a store and the list of awake stores record about the store.
type sleep struct {
	in *awake
	// asleep says that the writer has closed its connection, and can open it again. calm says
	// that the last transaction of the connection, if there was one, has ended. Both
	// belong to the writing goroutine.
	asleep, calm bool
	usedAt       time.Time     // guarded by mu of the list
	patience     time.Duration // likewise
}

// fallAsleep closes the connections of the store until it is written to or read again.
// SQLite empties the write-ahead log into the file, which then is durable. Only the
// writing goroutine calls fallAsleep.
func (s *Store) fallAsleep() {
	if s.w.c == nil {
		return
	}
	if !s.sleep.calm || s.w.marked {
		s.sleep.in.keep(s)
		return
	}
	s.shelf.rest() // before the writer: a reader cannot empty the log
	path := s.w.path
	closed := s.wear.closing(path)
	_ = s.w.close() // what fails here is done when the store is closed
	closed()
	s.sleep.asleep = true
	s.sleep.in.forget(s) // it may have been used since it got tired
	if s.syncs.sync(path) == nil {
		s.syncs.forget(path)
	}
	nudge(s.sleep.in.room)
	if s.sleep.in.slept != nil {
		s.sleep.in.slept(s)
	}
}

// wakeUp opens the file again.
func (s *Store) wakeUp() error {
	if !s.sleep.asleep {
		return nil
	}
	s.sleep.asleep = false
	created := s.w.marked
	if !created {
		s.sleep.in.woke(s)
	}
	s.sleep.in.opening <- struct{}{}
	defer func() { <-s.sleep.in.opening }()
	if err := s.reopen(); err != nil {
		return err
	}
	if !created { // otherwise it has a record to write first
		s.sleep.in.used(s) // from now on it can fall asleep for another one
	}
	s.pages.small.Store(s.w.small)
	return nil
}

// reopen opens the file of the store again. If the process may not open another file, files
// that are not in use are closed for it.
func (s *Store) reopen() error {
	return withRoom(s.owner, func() []string { return []string{s.w.path} }, s.w.reopen)
}
