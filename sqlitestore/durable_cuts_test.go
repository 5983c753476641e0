package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// TestLooseCut cuts a store and the children of its cuts, and lets the power fail before any of
// the cuts is durable. In every other program, the power fails once more while the next start
// undoes the cuts. Whatever has reached the disk, each cut has happened as a whole or not at
// all. If a cut has happened, so have the earlier ones. The directory continues by itself.
func TestLooseCut(t *testing.T) {
	t.Parallel()
	var whole, back atomic.Int32
	t.Run("programs", func(t *testing.T) {
		for seed := range uint64(looseSeeds(t)) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				t.Parallel()
				durability := journal.Full - journal.Durability(seed/4%2)
				p := newPowerProgram(t, durability, seed)
				p.small = []int64{-1, 12, 40}[seed%3]
				parent := p.cutLoosely(t, 1+int(seed%3))
				again := []failpoint.Point{failpoint.Count, failpoint.TakingBack, failpoint.Count, failpoint.TakenBack}[seed%4]
				p.openAndDie(t, again)
				if p.isLive(t, parent) {
					back.Add(1)
				} else {
					whole.Add(1)
				}
				p.restarts = 1 // so that restart waits for the background
				p.restart(t, durability == journal.Full)
			})
		}
	})
	if whole.Load() == 0 || back.Load() == 0 {
		t.Errorf("the cuts had happened in %d programs and were undone in %d; want both", whole.Load(), back.Load())
	}
}

// looseSeeds is 8 in make test, in which each combination occurs once, and 32 otherwise.
func looseSeeds(t *testing.T) int {
	t.Helper()
	if n := seeds(t, outcomeSeeds); n >= outcomeSeeds {
		return 4 * n
	}
	return outcomeSeeds
}

// cutLoosely makes a number of cuts, one after the other. None of them becomes durable before
// the power fails. It returns the first store.
func (p *powerProgram) cutLoosely(t *testing.T, cuts int) journal.SessionID {
	t.Helper()
	p.disk = losevfs.Mount(p.dir, p.random.Uint64())
	reached, released := make(chan struct{}, 1), make(chan struct{})
	p.reached = func(at failpoint.Point, _ string) error {
		if at == failpoint.Loose {
			nudge(reached)
			<-released
		}
		return nil
	}
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	parent := p.stores[0]
	for range cuts {
		for _, s := range p.stores {
			a := p.ledger[s.Origin()]
			s.Append(whole(s.Origin(), a.appended, 3, 1000))
			a.appended += 3
		}
		if err := p.cut(); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	p.writeBack(t)
	p.disk.Die()
	close(released)
	_ = p.d.Close() // there is no power, so it fails
	if err := p.disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	rebooted(t, p.dir)
	p.loose = nil
	return parent.info.Session
}

// writeBack lets most of what has not been synced reach the disk, as operating systems do after
// a while: either all of a write-ahead log, or no more of it than was synced.
func (p *powerProgram) writeBack(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(p.dir, files.Stores, "*-wal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(logs, filepath.Join(p.dir, catalog.Name+"-wal")) {
		if p.random.IntN(4) == 0 {
			continue
		}
		if err := p.disk.Synced(path); err != nil {
			t.Fatal(err)
		}
	}
}

// openAndDie opens the directory. If that passes a point, the power fails there.
func (p *powerProgram) openAndDie(t *testing.T, point failpoint.Point) {
	t.Helper()
	p.disk = losevfs.Mount(p.dir, p.random.Uint64())
	d, err := Open(t.Context(), p.dir, Options{hooks: failpoint.Hooks{Synced: p.disk.Synced, Reached: func(at failpoint.Point, _ string) error {
		if at == point {
			p.disk.Die()
		}
		return nil
	}}})
	if err != nil && !p.disk.Dead() {
		t.Fatal(err)
	}
	if d != nil {
		if err := d.Close(); err != nil && !p.disk.Dead() {
			t.Error(err)
		}
	}
	if err := p.disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	rebooted(t, p.dir)
}

// isLive opens the directory once more to see whether a session is live.
func (p *powerProgram) isLive(t *testing.T, session journal.SessionID) bool {
	t.Helper()
	d := mustOpen(t, p.dir)
	defer d.Close()
	e, err := d.catalog.Entry(t.Context(), "test", session)
	if err != nil {
		t.Fatal(err)
	}
	return e.Live
}

// TestFullIsDurableWithItsCut lets a store of the durability full wait until the cut that made
// it is durable: first for a cut that has not been made durable yet, then for one that cannot
// be made durable.
func TestFullIsDurableWithItsCut(t *testing.T) {
	reached := make(chan struct{}, 1)
	var held sync.Mutex
	var fails atomic.Bool
	broken := errors.New("the disk does not work")
	o := WithoutSyncs
	o.hooks.Reached = func(at failpoint.Point, _ string) error {
		if at != failpoint.Loose {
			return nil
		}
		nudge(reached)
		held.Lock()
		defer held.Unlock()
		if fails.Load() {
			return broken
		}
		return nil
	}
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	made, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: journal.Full})
	if err != nil {
		t.Fatal(err)
	}
	cut := func(parent journal.Store) *Store {
		c := splitOf(parent.(*Store))
		for i := range c.Children {
			c.Children[i].Durability = journal.Full
		}
		children, err := d.Cut(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		child := children[0].(*Store)
		child.Append(whole(child.Origin(), child.highest.Load(), 3, 100))
		if err := child.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return child
	}

	held.Lock()
	first := cut(made[0])
	<-reached
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Wait(ended, 1); first.Durable() != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d events were acknowledged before the cut was durable; Wait: %v", first.Durable(), err)
	}
	held.Unlock()
	if err := first.Wait(t.Context(), 3); err != nil || first.Durable() != first.highest.Load() {
		t.Errorf("only %d of %d events were acknowledged afterwards; Wait: %v", first.Durable(), first.highest.Load(), err)
	}

	held.Lock()
	second := cut(first)
	third := cut(second)
	fails.Store(true)
	held.Unlock()
	for _, s := range []*Store{second, third} {
		if err := s.Wait(t.Context(), 3); !errors.Is(err, broken) {
			t.Errorf("Wait of a store whose cut cannot be made durable: %v", err)
		}
	}
	if err := d.keeper.settle(t.Context()); err != nil || !d.keeper.holds(second.info.Session) {
		t.Errorf("%v; the store was closed, although the cut that made it is not durable", err)
	}
	if problems := d.Problems(); len(problems) != 1 || !errors.Is(problems[0], broken) {
		t.Errorf("problems %v", problems)
	}
	if _, err := d.Cut(t.Context(), splitOf(third)); !errors.Is(err, broken) {
		t.Errorf("another cut of a store whose cut is not durable: %v", err)
	}
	fails.Store(false)
	for d.loose.stuck() { // the directory tries again by itself
		time.Sleep(time.Millisecond)
	}
	for _, s := range []*Store{second, third} {
		if err := s.Wait(t.Context(), 3); err != nil || s.Durable() != 3 {
			t.Errorf("only %d of 3 events were acknowledged in the end; Wait: %v", s.Durable(), err)
		}
	}
	if err := d.Close(); err != nil || len(d.Problems()) > 0 {
		t.Errorf("Close: %v; problems %v", err, d.Problems())
	}
}

// TestCutThatRestsOnALostOne makes two cuts that are not durable, the second of a child of the
// first. A part of the first cut is lost, and nothing of the second. Both are undone, so that
// no creature is in two graphs.
func TestCutThatRestsOnALostOne(t *testing.T) {
	blocked := make(chan struct{})
	o := WithoutSyncs
	o.hooks.Reached = func(at failpoint.Point, _ string) error {
		if at == failpoint.Loose {
			<-blocked
		}
		return nil
	}
	d, err := Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	first := createStore(t, d)
	logged(first, 1, 10)
	halves, err := d.Cut(t.Context(), splitOf(first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Cut(t.Context(), splitOf(halves[0].(*Store))); err != nil {
		t.Fatal(err)
	}
	dir := duplicate(t, d.dir)
	close(blocked)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, filepath.Join(dir, files.Stores, filepath.Base(halves[1].Info().Path)),
		"DELETE FROM store WHERE key <> 'unused'; DELETE FROM ancestor")

	rebuilt := duplicate(t, dir) // with the catalogue lost as well
	loseCatalog(t, rebuilt)
	if report, err := Rebuild(t.Context(), rebuilt); err != nil || len(report.Live) != 1 || report.Live[0] != first.info.Session {
		t.Errorf("Rebuild: %+v, %v; want only %s to be live", report, err, first.info.Session)
	}

	after := mustOpen(t, dir)
	graphs, problems, err := after.Saved(t.Context())
	if err != nil || len(problems) > 0 || len(graphs) != 1 || graphs[0].Session != first.info.Session {
		t.Errorf("Saved: %+v, problems %v, %v; want only %s", graphs, problems, err, first.info.Session)
	}
	events, err := after.History(t.Context(), first.info.Session, journal.HistoryQuery{})
	wantSeqs(t, events, err, 10)
	settle(t, after)
	if infos, err := after.Sessions(t.Context()); err != nil || len(infos) != 1 {
		t.Errorf("%d sessions are left, want 1; %v", len(infos), err)
	}
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
}
