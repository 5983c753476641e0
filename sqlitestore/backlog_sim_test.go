package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// errDead is the error of every step in the background once the process counts as dead.
var errDead = errors.New("the process is dead")

// backlogSim is a directory that is cut, pruned, interrupted and opened again while listeners
// are stopped and their backlogs grow. It knows which listeners have not read each message yet.
// One goroutine acts at a time: the background works only while the program waits for it, and
// calls the program at certain steps.
type backlogSim struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	forks  string // where forks are made
	d      *Directory
	stores []*simStore
	logs   map[journal.ChannelID][]journal.EventID // of each message, by its number
	made   int                                     // names that were used
	clock  int64

	// These belong to the background: whether it may work, after how many steps the process
	// dies, and after how many the program acts in between.
	open, dead       atomic.Bool
	dieIn, disturbIn int
	disturbing       bool
}

// simStore is an open session, with its live rows.
type simStore struct {
	journal.Store
	last     uint64
	channels map[journal.ChannelID]bool
	readers  []*simReader
}

// simReader is a listener that reads one channel, or what is left of its backlog there.
type simReader struct {
	id      journal.CreatureID
	channel journal.ChannelID
	seq     uint64
	until   uint64 // 0: it listens
}

// simSteps is the length of a program.
const simSteps = 60

// simulateBacklogs runs the program of a seed.
func simulateBacklogs(t *testing.T, seed uint64) {
	s := &backlogSim{t: t, random: rand.New(rand.NewPCG(seed, 18)), dir: t.TempDir(), forks: t.TempDir(), logs: map[journal.ChannelID][]journal.EventID{}, clock: 1}
	s.start()
	for range simSteps {
		s.step()
		if t.Failed() {
			break
		}
	}
	s.settle()
	s.check()
	s.stop()
}

// inBackground reports whether a step must happen only while the program waits for it.
func inBackground(p failpoint.Point) bool {
	return p >= failpoint.Noting && p <= failpoint.Swept && p != failpoint.Removing && p != failpoint.Removed
}

func (s *backlogSim) reached(p failpoint.Point, path string) error {
	if !inBackground(p) || !strings.HasPrefix(path, s.dir) { // a fork is made elsewhere
		return nil
	}
	if !s.open.Load() || s.dead.Load() {
		return errDead
	}
	if s.disturbing {
		return nil
	}
	if s.dieIn--; s.dieIn == 0 {
		s.dead.Store(true)
		return errDead
	}
	// Only at these points, the background holds nothing that the program needs.
	if s.disturbIn--; s.disturbIn <= 0 && (p == failpoint.United || p == failpoint.TailFollowed) {
		s.disturbIn, s.disturbing = 1<<30, true
		s.act()
		s.disturbing = false
	}
	return nil
}

// start opens the directory, with or without bounds of the history.
func (s *backlogSim) start() {
	s.t.Helper()
	o := copying(s.random.Uint64(), failpoint.Count, smallChunks(s.reached))
	if s.random.IntN(2) == 0 {
		o.Retain.Events = int64(20 + s.random.IntN(60))
	}
	s.open.Store(false)
	s.dead.Store(false)
	var err error
	if s.d, err = Open(s.t.Context(), s.dir, o); err != nil {
		s.t.Fatal(err)
	}
	graphs, problems, err := s.d.Saved(s.t.Context())
	if err = errors.Join(append(problems, err)...); err != nil {
		s.t.Fatal(err)
	}
	s.stores = nil
	for _, g := range graphs {
		m := &simStore{channels: map[journal.ChannelID]bool{}}
		for _, c := range g.Channels {
			m.channels[c.ID] = true
		}
		for _, c := range g.Cursors {
			m.readers = append(m.readers, &simReader{journal.CreatureID(c.Reader), c.Channel, c.Seq, c.Until})
		}
		slices.SortFunc(m.readers, func(a, b *simReader) int { return compareNames(string(a.id), string(b.id)) })
		if m.Store, err = s.d.Open(s.t.Context(), g.Session); err != nil {
			s.t.Fatal(err)
		}
		s.stores = append(s.stores, m)
	}
}

// compareNames puts shorter names first, so that c2 comes before c10.
func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func (s *backlogSim) stop() {
	if err := s.d.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *backlogSim) step() {
	switch n := s.random.IntN(20); {
	case n < 4:
		s.settle()
		s.check()
	case n == 4:
		s.stop()
		s.start()
		s.check()
	case n == 5:
		s.prune()
	default:
		s.act()
	}
}

// act does something that may also happen while a history is copied.
func (s *backlogSim) act() {
	if len(s.stores) == 0 || len(s.stores) < 2 && s.random.IntN(4) == 0 {
		s.create()
		return
	}
	m := s.stores[s.random.IntN(len(s.stores))]
	switch n := s.random.IntN(12); {
	case n < 2 && len(s.stores) > 1:
		s.cut("merge", s.stores[:2:2], 1)
	case n < 4 && len(s.stores) < 5:
		s.cut("split", []*simStore{m}, 2)
	case n == 4:
		s.listen(m)
	case n < 8:
		s.hear(m)
	default:
		s.send(m)
	}
}

// settle lets the background do its work, unless the process dies of it.
func (s *backlogSim) settle() {
	s.t.Helper()
	s.dieIn, s.disturbIn = 0, 1<<30
	if s.random.IntN(2) == 0 {
		s.dieIn = 1 + s.random.IntN(80)
	}
	if s.random.IntN(2) == 0 {
		s.disturbIn = 1 + s.random.IntN(40)
	}
	s.d.hydrator.hurry(1)
	err := s.work(func(ctx context.Context) error {
		_, err := s.d.hydrator.round(ctx)
		return err
	})
	s.d.hydrator.hurry(-1)
	if err != nil && !s.dead.Load() {
		s.t.Fatalf("Settle: %v", err)
	}
	if s.dead.Load() {
		s.stop()
		s.start()
	}
}

// work does something in the goroutine of the background. Whatever the background starts by
// itself fails.
func (s *backlogSim) work(f func(ctx context.Context) error) error {
	return s.d.hydrator.call(s.t.Context(), func(ctx context.Context) error {
		s.open.Store(true)
		defer s.open.Store(false)
		return f(ctx)
	})
}

// prune prunes by command.
func (s *backlogSim) prune() {
	s.t.Helper()
	if len(s.stores) == 0 {
		return
	}
	m := s.stores[s.random.IntN(len(s.stores))]
	s.dieIn, s.disturbIn = 0, 1<<30
	bound := Retention{Events: int64(1 + s.random.IntN(30))}
	err := s.work(func(ctx context.Context) error {
		_, err := s.d.hydrator.prune(ctx, m.Store.(*Store), bound)
		return err
	})
	if err != nil {
		s.t.Fatalf("Prune: %v", err)
	}
}

func (s *backlogSim) name(what string) string {
	s.made++
	return what + strconv.Itoa(s.made)
}

func (s *backlogSim) create() {
	s.t.Helper()
	m := &simStore{channels: map[journal.ChannelID]bool{}}
	stores, err := s.d.Create(s.t.Context(), s.spec(m))
	if err != nil {
		s.t.Fatal(err)
	}
	m.Store = stores[0]
	s.stores = append(s.stores, m)
	c := journal.ChannelID(s.name("c"))
	m.channels[c] = true
	s.append(m, &journal.Record{Channels: []journal.ChannelRow{{ID: c, Name: string(c)}}, Heads: []journal.HeadRow{{Channel: c}}})
	for range 1 + s.random.IntN(2) {
		s.listen(m)
	}
}

// spec describes a store that begins with the rows of the member.
func (s *backlogSim) spec(m *simStore) journal.StoreSpec {
	return journal.StoreSpec{Graph: journal.GraphID(s.name("g")), Durability: journal.Normal, First: func(o journal.Origin) *journal.Record {
		m.Store, m.last = &unborn{origin: o}, 0
		r := &journal.Record{}
		s.log(m, r, journal.Event{Kind: journal.EventTopologyChanged})
		for _, c := range m.sortedChannels() {
			r.Channels = append(r.Channels, journal.ChannelRow{ID: c, Name: string(c)})
			r.Heads = append(r.Heads, journal.HeadRow{Channel: c, Seq: uint64(len(s.logs[c]))})
		}
		for _, l := range m.readers {
			r.Creatures = append(r.Creatures, journal.CreatureRow{ID: l.id, Name: string(l.id)})
			r.Cursors = append(r.Cursors, l.cursor())
		}
		return r
	}}
}

func (l *simReader) cursor() journal.CursorRow {
	return journal.CursorRow{Reader: journal.ReaderID(l.id), Channel: l.channel, Seq: l.seq, Until: l.until}
}

func (m *simStore) sortedChannels() (out []journal.ChannelID) {
	for c := range m.channels {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b journal.ChannelID) int { return compareNames(string(a), string(b)) })
	return out
}

func (s *backlogSim) log(m *simStore, r *journal.Record, e journal.Event) journal.EventID {
	m.last++
	s.clock++
	e.ID, e.Time = journal.EventID{Origin: m.Origin(), Seq: m.last}, s.clock
	r.Events = append(r.Events, e)
	return e.ID
}

// append writes a record that begins with an event if it has none.
func (s *backlogSim) append(m *simStore, r *journal.Record) {
	s.t.Helper()
	if len(r.Events) == 0 {
		s.log(m, r, journal.Event{Kind: journal.EventTopologyChanged})
	}
	m.Append(r)
	if err := m.Wait(s.t.Context(), m.last); err != nil {
		s.t.Fatal(err)
	}
}

func (s *backlogSim) send(m *simStore) {
	for _, c := range m.sortedChannels() {
		for range s.random.IntN(8) {
			r := &journal.Record{}
			seq := uint64(len(s.logs[c])) + 1
			id := s.log(m, r, journal.Event{Kind: journal.EventChannelMessage, Channel: c, Seq: seq, Payload: make([]byte, 50+s.random.IntN(300))})
			r.Heads = []journal.HeadRow{{Channel: c, Seq: seq}}
			s.append(m, r)
			s.logs[c] = append(s.logs[c], id)
		}
	}
}

// listen adds a listener, which begins with the oldest remaining message or with the next one.
func (s *backlogSim) listen(m *simStore) {
	channels := m.sortedChannels()
	if len(channels) == 0 || len(m.readers) > 5 {
		return
	}
	c := channels[s.random.IntN(len(channels))]
	l := &simReader{id: journal.CreatureID(s.name("l")), channel: c, seq: uint64(len(s.logs[c]))}
	if s.random.IntN(2) == 0 {
		// Parents of a merge may have been pruned up to different times, so the rest
		// begins behind the last gap.
		for _, e := range slices.Backward(s.messages(m, c, 0, 0, 0)) {
			if e.Seq != l.seq {
				break
			}
			l.seq--
		}
	}
	m.readers = append(m.readers, l)
	s.append(m, &journal.Record{Creatures: []journal.CreatureRow{{ID: l.id, Name: string(l.id)}}, Cursors: []journal.CursorRow{l.cursor()}})
}

func (s *backlogSim) messages(m *simStore, c journal.ChannelID, after, until uint64, limit int) []journal.Event {
	s.t.Helper()
	events, err := m.Messages(s.t.Context(), c, after, until, limit, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return events
}

// hear lets a listener handle some messages, which changes its state each time.
func (s *backlogSim) hear(m *simStore) {
	if len(m.readers) == 0 {
		return
	}
	i := s.random.IntN(len(m.readers))
	l := m.readers[i]
	for _, e := range s.messages(m, l.channel, l.seq, l.until, 1+s.random.IntN(12)) {
		if !s.next(m, l, e) {
			return
		}
		l.seq = e.Seq
		value := strconv.FormatUint(l.seq, 10)
		r := &journal.Record{}
		s.log(m, r, journal.Event{Kind: journal.EventTurnEnded, Creature: l.id, Channel: l.channel, Seq: l.seq, Cause: e.ID})
		key := fmt.Sprint("n", l.seq%3)
		s.log(m, r, journal.Event{Kind: journal.EventState, Creature: l.id, Payload: []byte(key + "\x00=" + value)})
		r.State = []journal.StateRow{{Creature: l.id, Key: key, Value: []byte(value)}}
		r.Cursors = []journal.CursorRow{l.cursor()}
		s.append(m, r)
	}
	if l.until > 0 && l.seq == l.until {
		s.append(m, &journal.Record{Drop: journal.Drop{Creatures: []journal.CreatureID{l.id}, Cursors: []journal.CursorRow{l.cursor()}}})
		m.readers = slices.Delete(m.readers, i, i+1)
	}
}

// next reports whether an event is the message that a listener must read next.
func (s *backlogSim) next(m *simStore, l *simReader, e journal.Event) bool {
	s.t.Helper()
	if log := s.logs[l.channel]; e.Seq != l.seq+1 || e.Seq > uint64(len(log)) || log[e.Seq-1] != e.ID {
		s.t.Errorf("session %s: message %d of %s is followed by %d for %s", m.Info().Session, l.seq, l.channel, e.Seq, l.id)
		return false
	}
	return true
}

// cut cuts the given stores into children, and distributes their members. A listener may be
// separated from its channel, with its backlog at that time.
func (s *backlogSim) cut(kind journal.CutKind, parents []*simStore, children int) {
	s.t.Helper()
	if kind == "merge" {
		s.random.Shuffle(len(s.stores), func(i, j int) { s.stores[i], s.stores[j] = s.stores[j], s.stores[i] })
		parents = s.stores[:2:2]
	}
	s.clock++
	cut := journal.Cut{Kind: kind, At: s.clock}
	made := make([]*simStore, children)
	for i := range made {
		made[i] = &simStore{channels: map[journal.ChannelID]bool{}}
	}
	at := map[journal.ChannelID]int{}
	var sessions []journal.SessionID
	for _, m := range parents {
		cut.Parents, sessions = append(cut.Parents, m.Store), append(sessions, m.Info().Session)
		for _, c := range m.sortedChannels() {
			at[c] = s.random.IntN(children)
			made[at[c]].channels[c] = true
		}
		for _, l := range m.readers {
			to := s.random.IntN(children)
			if home, here := at[l.channel]; l.until == 0 && here && home != to {
				if l.until = uint64(len(s.logs[l.channel])); l.until == l.seq {
					to, l.until = home, 0
				}
			}
			made[to].readers = append(made[to].readers, l)
		}
	}
	for _, m := range made {
		child := journal.CutChild{Parents: sessions, StoreSpec: s.spec(m), Channels: m.sortedChannels()}
		for _, l := range m.readers {
			child.Creatures = append(child.Creatures, l.id)
		}
		cut.Children = append(cut.Children, child)
	}
	stores, err := s.d.Cut(s.t.Context(), cut)
	if err != nil {
		s.t.Fatal(err)
	}
	s.stores = slices.DeleteFunc(s.stores, func(m *simStore) bool { return slices.Contains(parents, m) })
	for i, store := range stores {
		made[i].Store = store
		s.stores = append(s.stores, made[i])
	}
}

// check reads every backlog, and verifies every session and forks it at its newest cursor.
func (s *backlogSim) check() {
	s.t.Helper()
	for _, m := range s.stores {
		session := m.Info().Session
		for _, l := range m.readers {
			after, end := *l, l.until
			if end == 0 {
				end = uint64(len(s.logs[l.channel]))
			}
			for _, e := range s.messages(m, l.channel, l.seq, l.until, 0) {
				if !s.next(m, &after, e) {
					break
				}
				after.seq = e.Seq
			}
			if after.seq != end {
				s.t.Errorf("session %s: the backlog of %s in %s ends with %d, want %d", session, l.id, l.channel, after.seq, end)
			}
		}
		report, err := s.d.Verify(s.t.Context(), session)
		if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); err != nil || n > 0 {
			s.t.Errorf("Verify: %+v, %v", report, err)
		}
		s.checkFork(m)
	}
}

// checkFork compares a fork at the newest event with the live rows.
func (s *backlogSim) checkFork(m *simStore) {
	s.t.Helper()
	ctx := s.t.Context()
	dir := filepath.Join(s.forks, "fork")
	defer os.RemoveAll(dir)
	// After history has been pruned, the rows are recorded again with the next write.
	s.append(m, &journal.Record{})
	mark := journal.Mark{Event: journal.EventID{Origin: m.Origin(), Seq: m.last}, Since: s.clock}
	fork, _, err := s.d.ForkAt(ctx, m.Info().Session, mark, dir)
	if err != nil {
		s.t.Errorf("ForkAt: %v", err)
		return
	}
	v, err := OpenReadOnly(ctx, dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer v.Close()
	for _, l := range m.readers {
		want, err := m.State(ctx, l.id)
		got, forkErr := v.State(context.Background(), fork, l.id)
		if err = errors.Join(err, forkErr); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			s.t.Errorf("session %s: the fork has the state %q of %s, want %q; %v", m.Info().Session, got, l.id, want, err)
		}
	}
	report, err := v.Verify(ctx, fork)
	if n := len(report.Missing) + len(report.Duplicate) + len(report.OutOfOrder) + len(report.Damage); err != nil || n > 0 {
		s.t.Errorf("Verify of the fork: %+v, %v", report, err)
	}
}

// TestSimulationOfBacklogs runs the programs of some seeds or, with TERRARIUM_SEEDS, those of
// as many seeds from the first on. No listener misses a message, every session is sound, and a
// fork at the newest cursor of a session has the same rows.
func TestSimulationOfBacklogs(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seeds := backlogSeeds
	if text := os.Getenv("TERRARIUM_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TERRARIUM_SEEDS is %q, which is not a number", text)
		}
		seeds = nil
		for seed := range n {
			seeds = append(seeds, seed+1)
		}
	}
	for i, seed := range seeds {
		if len(seeds) == len(backlogSeeds) && !seeded.Part(i, len(backlogSeeds)) {
			continue
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulateBacklogs(t, seed) })
	}
}

// backlogSeeds have found faults. make test runs one of them, because each takes some seconds
// of processor time, and make test-every runs all. make test-crash and make test-sim draw
// hundreds of others.
var backlogSeeds = []uint64{28, 46, 115, 113}
