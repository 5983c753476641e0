// Package sim is what the engine's simulator stands on: a session directory in
// memory that loses what a crash would lose, and a clock that only moves when
// it is told to. It is for tests only, and for one goroutine at a time unless
// said otherwise.
package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Disk is what outlives a process: sessions, each a log of records of which a
// prefix is written, so that it survives a killed process, and a prefix of that
// is synced, so that it survives a power loss.
type Disk struct {
	// Manual leaves appended records in their queues until [Disk.Write],
	// [Disk.Sync] or something that has to wait for them; otherwise they are
	// written and synced at once.
	Manual bool
	// Broken makes writing fail.
	Broken bool
	// FailCuts, FailCreates, FailOpens, FailRetires and FailReads make the next
	// calls fail; reads are those of State and Messages.
	FailCuts, FailCreates, FailOpens, FailRetires, FailReads int
	// SkipCuts is how many cuts succeed before FailCuts counts.
	SkipCuts int
	// Calm keeps reads from failing, and Pause from being called.
	Calm bool
	// CutCrash makes the next cut end in a crash.
	CutCrash CutCrash
	// Bound is how many records may be unwritten before Room waits; 0: any.
	Bound int
	// Pause is called where a process may be doing something else meanwhile:
	// in Room, State and Messages.
	Pause func()
	// Violations are breaches of the contract of [journal.Store] by its user.
	Violations []string

	mu       sync.Mutex
	random   *rand.Rand
	sessions map[journal.SessionID]*session
	order    []*session
	boot     int  // which process has the directory
	crashed  bool // and it is dead
	created  int64
	tended   int
}

// CutCrash is a point at which a cut is interrupted.
type CutCrash uint8

// The points of a cut.
const (
	NoCrash      CutCrash = iota
	CrashBefore           // nothing has happened yet
	CrashDrained          // the parents are written, the children do not count
	CrashAfter            // the cut is durable, but nobody has been told
	numCutCrashes
)

// NumCutCrashes is how many values a [CutCrash] has.
const NumCutCrashes = int(numCutCrashes)

// session is the file of one session.
type session struct {
	info journal.SessionInfo
	born uint64
	// unlogged is when the last graph without a store became part of it.
	unlogged int64
	handle   *Store // that is open, or nil

	// What came with the session: all of a cut, or nothing. See history.go.
	first    []journal.Event // first record
	copied   []journal.Event // from parents
	safe     int             // so many of them are synced
	parents  []*session
	heirs    []*session // children
	gone     bool       // the file is
	extent   map[journal.Origin]uint64
	baseRows *rows
	base     []journal.Event // all of that, put together unless it is stale
	stale    bool

	records []*journal.Record // own ones
	written int               // so many of them
	synced  int

	// What the records add up to, unwritten ones included.
	rows   *rows
	events []journal.Event // without base
	places map[journal.EventID]int
	ranks  map[journal.Origin]int
	wrote  map[journal.Origin]bool // under which it was open for writing
}

// NewDisk returns an empty directory. Its ids come from the seed.
func NewDisk(seed uint64) *Disk {
	return &Disk{random: rand.New(rand.NewPCG(seed, 0x5eed)), sessions: map[journal.SessionID]*session{}}
}

// Boot gives the directory to a new process. What an earlier one still does to
// it has no effect.
func (d *Disk) Boot() journal.Storage {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.boot++
	d.crashed = false
	for _, s := range d.order {
		s.handle = nil
	}
	return &storage{d: d, boot: d.boot}
}

// Kill ends the process: what is not written is gone.
func (d *Disk) Kill() { d.crash(func(s *session) int { return s.written }) }

// PowerLoss ends the machine: what is not synced is gone.
func (d *Disk) PowerLoss() {
	d.crash(func(s *session) int { return s.synced })
	for _, s := range d.order {
		s.copied, s.stale = s.copied[:s.safe:s.safe], s.stale || len(s.copied) > s.safe
	}
}

// Crashed reports whether the process that had the directory is dead.
func (d *Disk) Crashed() bool { return d.crashed }

func (d *Disk) crash(keep func(*session) int) {
	d.crashed = true
	for _, s := range d.order {
		s.truncate(keep(s))
	}
}

// truncate keeps the first n records.
func (s *session) truncate(n int) {
	if n == len(s.records) {
		return
	}
	kept := s.records[:n:n]
	s.records, s.events, s.rows, s.stale = nil, nil, s.baseRows.clone(), true
	for _, rec := range kept {
		s.add(rec)
	}
	s.written, s.synced = min(s.written, n), min(s.synced, n)
}

func (s *session) add(rec *journal.Record) {
	s.look()
	s.records = append(s.records, rec)
	for i := range rec.Events {
		id := rec.Events[i].ID
		s.places[id] = len(s.base) + len(s.events)
		s.rank(id.Origin)
		s.events = append(s.events, rec.Events[i])
	}
	s.rows.apply(rec)
}

func (s *session) rank(o journal.Origin) {
	if _, ok := s.ranks[o]; !ok {
		s.ranks[o] = len(s.ranks)
	}
}

// all lists the events of the session, what it came with first.
func (s *session) all() []journal.Event {
	s.look()
	return append(s.base[:len(s.base):len(s.base)], s.events...)
}

// at is one event of the session, which must have been looked at.
func (s *session) at(i int) *journal.Event {
	if i < len(s.base) {
		return &s.base[i]
	}
	return &s.events[i-len(s.base)]
}

func (s *session) len() int { return len(s.base) + len(s.events) }

func (s *session) lastTime() int64 {
	s.look()
	var last int64
	for i := range s.len() {
		last = max(last, s.at(i).Time)
	}
	return last
}

// Write lets the writer of one session write up to n records of its queue;
// which selects the session.
func (d *Disk) Write(which, n int, sync bool) {
	var live []*session
	for _, s := range d.order {
		if s.info.Live {
			live = append(live, s)
		}
	}
	if len(live) == 0 || d.Broken || d.crashed {
		return
	}
	s := live[which%len(live)]
	s.written = min(len(s.records), s.written+n)
	if sync {
		s.synced = s.written
	}
	s.notify()
}

// Flush writes and syncs everything.
func (d *Disk) Flush() {
	for _, s := range d.order {
		s.written, s.synced = len(s.records), len(s.records)
	}
}

// Len is how many records a live session has, unwritten ones included. It is
// -1 for a session that has ended, whose records are there for good.
func (d *Disk) Len(id journal.SessionID) int {
	s := d.sessions[id]
	if s == nil || !s.info.Live {
		return -1
	}
	return len(s.records)
}

// Stamp says how much of a session has to be there for what has just happened in
// it to be there: so many records, or 0 if it came with the session.
func (d *Disk) Stamp(id journal.SessionID, isNew bool) int {
	s := d.sessions[id]
	if s == nil || !s.info.Live || isNew {
		return 0
	}
	return len(s.records)
}

// Has reports whether there is such a session.
func (d *Disk) Has(id journal.SessionID) bool { return d.sessions[id] != nil }

// Sessions lists all sessions and whether they are live.
func (d *Disk) Sessions() map[journal.SessionID]bool {
	out := map[journal.SessionID]bool{}
	for _, s := range d.order {
		out[s.info.Session] = s.info.Live
	}
	return out
}

// Report checks every session and returns what is wrong.
func (d *Disk) Report() []string {
	var out []string
	for _, s := range d.order {
		r := s.verify()
		out = append(append(append(append(out, r.Missing...), r.Duplicate...), r.OutOfOrder...), r.Damage...)
	}
	return out
}

// Log lists the events of all sessions, each once, by time.
func (d *Disk) Log() []journal.Event {
	seen := map[journal.EventID]bool{}
	var out []journal.Event
	for _, s := range slices.Backward(d.order) {
		s.look()
		for i := range s.len() {
			if ev := s.at(i); !seen[ev.ID] {
				seen[ev.ID] = true
				out = append(out, *ev)
			}
		}
	}
	slices.SortStableFunc(out, byTime)
	return out
}

func byTime(a, b journal.Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), slices.Compare(a.ID.Origin[:], b.ID.Origin[:]), cmp.Compare(a.ID.Seq, b.ID.Seq))
}

// newSession adds a session.
func (d *Disk) newSession(spec journal.StoreSpec) *session {
	d.created++
	id := journal.SessionID("s" + d.origin().String())
	s := &session{
		info: journal.SessionInfo{
			Session: id, Graph: spec.Graph, Path: "memory/" + string(id), Live: true, Complete: true,
			Durability: spec.Durability, Created: d.created, Events: -1,
		},
		born: spec.Born, baseRows: newRows(spec.Meta), rows: newRows(spec.Meta),
		places: map[journal.EventID]int{}, ranks: map[journal.Origin]int{}, wrote: map[journal.Origin]bool{},
	}
	return s
}

func (d *Disk) keep(s *session) {
	d.sessions[s.info.Session] = s
	d.order = append(d.order, s)
}

// keepAll keeps sessions that are open.
func (d *Disk) keepAll(sessions []*session, open []*Store) (out []journal.Store) {
	for i, s := range sessions {
		d.keep(s)
		s.handle = open[i]
		out = append(out, open[i])
	}
	return out
}

func (d *Disk) origin() (o journal.Origin) {
	for i := range o {
		o[i] = byte(d.random.Uint32())
	}
	return o
}

func fault(op, text string) error {
	return &abi.Error{Code: abi.Storage, Op: op, Message: text, Remedy: "it is simulated: go on"}
}
