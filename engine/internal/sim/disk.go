// Package sim is the base of the engine's simulator: a session directory in
// memory that loses what a crash would lose, and a clock that moves only when
// advanced. It is for tests only. Unless stated otherwise, only one goroutine
// at a time may use it.
package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Disk is the state that survives a process: sessions, each a log of records.
// A prefix of the log is written and survives a killed process; a prefix of
// that is synced and survives a power loss.
type Disk struct {
	// Manual leaves appended records in their queues until [Disk.Write],
	// [Disk.Sync] or a call that has to wait for them; otherwise they are
	// written and synced at once.
	Manual bool
	// Broken makes writing fail.
	Broken bool
	// FailCuts, FailCreates, FailOpens, FailRetires and FailReads make the next
	// calls fail; reads are those of State and Messages.
	FailCuts, FailCreates, FailOpens, FailRetires, FailReads int
	// SkipCuts is how many cuts succeed before FailCuts applies.
	SkipCuts int
	// Calm suppresses failing reads and calls of Pause.
	Calm bool
	// CutCrash makes the next cut end in a crash.
	CutCrash CutCrash
	// Hasty makes the storage report that it is behind with its work after cuts.
	Hasty bool

	// Bound is how many records may be unwritten before Room waits; 0 means no
	// bound.
	Bound int
	// Pause is called where a process may do something else meanwhile: in
	// Room, State and Messages.
	Pause func()
	// Violations lists breaches of the contract of [journal.Store] by its
	// user.
	Violations []string

	mu       sync.Mutex
	random   *rand.Rand
	sessions map[journal.SessionID]*session
	order    []*session
	boot     int  // identifies the process that has the directory
	crashed  bool // whether that process is dead
	created  int64
	tended   int
}

// CutCrash is a point at which a cut is interrupted.
type CutCrash uint8

// The points of a cut.
const (
	NoCrash      CutCrash = iota
	CrashBefore           // nothing has happened yet
	CrashDrained          // the parents are written, the children do not count yet
	CrashAfter            // the cut is durable, but has not returned
	numCutCrashes
)

// NumCutCrashes is the number of values of [CutCrash].
const NumCutCrashes = int(numCutCrashes)

// session is the file of one session.
type session struct {
	info journal.SessionInfo
	born uint64
	// unlogged is the time when the last graph without a store became part of
	// the session.
	unlogged int64
	handle   *Store // the open handle, or nil

	// The history that came with the session from a cut, if any. See
	// history.go.
	first      []journal.Event // first record
	copied     []journal.Event // from parents
	safe       int             // how many of copied are synced
	parents    []*session
	successors []*session // children
	gone       bool       // the file was removed
	extent     map[journal.Origin]uint64
	baseRows   *rows
	base       []journal.Event // the combined history, unless stale
	stale      bool

	records []*journal.Record // the session's own records
	written int               // how many records are written
	synced  int

	// The state after all records, unwritten ones included.
	rows   *rows
	events []journal.Event // without base
	places map[journal.EventID]int
	ranks  map[journal.Origin]int
	wrote  map[journal.Origin]bool // origins under which it was open for writing
}

// NewDisk returns an empty directory. Its ids come from the seed.
func NewDisk(seed uint64) *Disk {
	return &Disk{random: rand.New(rand.NewPCG(seed, 0x5eed)), sessions: map[journal.SessionID]*session{}}
}

// Boot gives the directory to a new process. Later calls by an earlier process
// have no effect.
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

// Kill ends the process: unwritten records are lost.
func (d *Disk) Kill() { d.crash(func(s *session) int { return s.written }) }

// PowerLoss ends the machine: unsynced records are lost.
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

// all lists the events of the session, inherited history first.
func (s *session) all() []journal.Event {
	s.look()
	return append(s.base[:len(s.base):len(s.base)], s.events...)
}

// at returns one event of the session. look must have been called before.
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

// Write writes up to n records of one session's queue; which selects the
// session.
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

// Len returns how many records a live session has, unwritten ones included. It
// returns -1 for an ended session, whose records are permanent.
func (d *Disk) Len(id journal.SessionID) int {
	s := d.sessions[id]
	if s == nil || !s.info.Live {
		return -1
	}
	return len(s.records)
}

// Stamp returns how many records of a session must survive for its latest
// event to survive, or 0 if the event came with the session.
func (d *Disk) Stamp(id journal.SessionID, isNew bool) int {
	s := d.sessions[id]
	if s == nil || !s.info.Live || isNew {
		return 0
	}
	return len(s.records)
}

// Has reports whether the session exists.
func (d *Disk) Has(id journal.SessionID) bool { return d.sessions[id] != nil }

// Sessions lists all sessions and whether they are live.
func (d *Disk) Sessions() map[journal.SessionID]bool {
	out := map[journal.SessionID]bool{}
	for _, s := range d.order {
		out[s.info.Session] = s.info.Live
	}
	return out
}

// Report checks every session and returns the problems.
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

// keepAll keeps open sessions.
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
	return &abi.Error{Code: abi.Storage, Op: op, Message: text, Remedy: "the fault is simulated: continue"}
}
