package sqlitestore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
)

// outcomeSeeds is how many disks lose what is not durable in each test below: the seed
// determines whether a write that was not synced survives. TERRARIUM_SEEDS requests more.
const outcomeSeeds = 8

// unsure is a program on a disk whose syncs fail in one step. If the sync of a commit has
// failed, the commit may or may not be on the disk, whatever the file contains. The power loss
// at the end decides.
type unsure struct {
	*powerProgram
	t        *testing.T
	breaking atomic.Int64  // the failpoint where syncs begin to fail; failpoints: nowhere
	code     int           // how they fail
	failures int           // how many fail then
	broke    chan struct{} // closed when they begin to fail
	once     atomic.Bool
	refusing atomic.Bool // commits of stores fail
}

// newUnsure opens a directory with one store and spare files. The background does nothing until
// a test requests it.
func newUnsure(t *testing.T, seed uint64) *unsure {
	t.Helper()
	u := &unsure{powerProgram: newPowerProgram(t, journal.Full, seed), t: t, code: losevfs.SyncFails, broke: make(chan struct{})}
	u.breaking.Store(int64(failpoint.Count))
	u.disk = losevfs.Mount(u.dir, seed)
	spares := make(chan struct{}, 100)
	u.reached = func(p failpoint.Point, _ string) error {
		if int64(p) == u.breaking.Load() && !u.once.Swap(true) {
			u.disk.Fail(u.code, 0, u.failures)
			close(u.broke)
		}
		if p == failpoint.SpareReady {
			spares <- struct{}{}
		}
		if p == failpoint.Appending && u.refusing.Load() {
			return errDisk
		}
		return nil
	}
	// Then no other history is copied: a further commit of the catalogue would make certain
	// what was not.
	u.free = func() int64 {
		if u.once.Load() {
			<-u.disk.Died()
		}
		return 1 << 40
	}
	if err := u.open(); err != nil {
		t.Fatal(err)
	}
	for range fewestSpares {
		<-spares
	}
	return u
}

// breakAt lets syncs fail a number of times from a step on. The background may be the first to
// reach that step.
func (u *unsure) breakAt(p failpoint.Point, failures int) {
	u.failures = failures
	u.breaking.Store(int64(p))
}

// write appends to a store, and waits until that is acknowledged, which happens as soon as
// syncs succeed.
func (u *unsure) write(s *Store) {
	u.t.Helper()
	a := u.ledger[s.Origin()]
	s.Append(whole(s.Origin(), a.appended, 3, 100))
	a.appended += 3
	u.goesOn(u.t, s)
}

// divide splits the store into two incomplete ones, and writes to them.
func (u *unsure) divide() {
	u.t.Helper()
	u.write(u.stores[0])
	if err := u.cut(); err != nil {
		u.t.Fatal(err)
	}
	for _, s := range u.stores {
		u.write(s)
	}
}

// losesPower checks that everything that was acknowledged is left after a power loss.
func (u *unsure) losesPower() {
	u.t.Helper()
	u.disk.Die()
	_ = u.d.Close() // there is no power, so it fails
	if err := u.disk.PowerOff(); err != nil {
		u.t.Fatal(err)
	}
	rebooted(u.t, u.dir)
	u.restart(u.t, true)
}

func forOutcomes(t *testing.T, test func(t *testing.T, u *unsure)) {
	t.Helper()
	t.Parallel()
	for seed := range uint64(seeds(t, outcomeSeeds)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			test(t, newUnsure(t, seed))
		})
	}
}

// TestCutIsWhatItSeems lets the syncs fail that make a cut durable. The caller continues with
// the children. Nothing that is written to them is acknowledged before the syncs succeed. Then
// the power fails, and everything that was acknowledged must be left.
func TestCutIsWhatItSeems(t *testing.T) {
	for failures := 1; failures <= 3; failures++ {
		t.Run(fmt.Sprint("failures=", failures), func(t *testing.T) {
			forOutcomes(t, func(t *testing.T, u *unsure) {
				u.write(u.stores[0])
				u.breakAt(failpoint.Cutting, failures)
				if err := u.cut(); err != nil {
					t.Fatal(err)
				}
				for _, s := range u.stores {
					u.write(s)
				}
				if !u.once.Load() {
					t.Error("no sync has failed")
				}
				u.losesPower()
			})
		})
	}
}

// TestCutOnFullDisk has no room for the entry that makes a cut. It is known that the cut has
// not happened, although the catalogue cannot be written to.
func TestCutOnFullDisk(t *testing.T) {
	forOutcomes(t, func(t *testing.T, u *unsure) {
		parent := u.stores[0]
		u.write(parent)
		u.code = losevfs.Full
		u.breakAt(failpoint.Cutting, 1<<30)
		if err := u.cut(); abi.CodeOf(err) != abi.Storage || errors.Is(err, catalog.ErrUnknown) {
			t.Fatalf("Cut: %v, want the code storage and a known outcome", err)
		}
		if _, err := u.d.Sessions(t.Context()); err != nil {
			t.Errorf("Sessions: %v", err)
		}
		u.disk.Fail(0, 0, 0)
		u.write(parent)
		u.losesPower()
	})
}

// TestMoveThatFailedStaysUndone lets the sync fail of the change that makes a file the whole
// one of its session.
func TestMoveThatFailedStaysUndone(t *testing.T) {
	forOutcomes(t, func(t *testing.T, u *unsure) {
		u.divide()
		u.breakAt(failpoint.Completing, 1)
		settled := make(chan error)
		go func() { settled <- u.d.Settle(t.Context()) }()
		<-u.broke
		for _, s := range u.stores { // one of them stands still until the outcome is known
			u.write(s)
		}
		u.losesPower()
		<-settled
	})
}

// TestMoveThatIsFoundIsDurable lets all syncs fail when a file becomes the whole one of its
// session. When syncs work again, the catalogue shows that this has happened. It must be on the
// disk before the session continues in that file.
func TestMoveThatIsFoundIsDurable(t *testing.T) {
	forOutcomes(t, func(t *testing.T, u *unsure) {
		u.divide()
		notified := make(chan *Store, 1)
		for _, s := range u.stores {
			s.Notify(func() {
				if s.Err() == nil {
					return
				}
				select {
				case notified <- s:
				default:
				}
			})
		}
		u.breakAt(failpoint.Completing, 1<<30)
		settled := make(chan error)
		go func() { settled <- u.d.Settle(t.Context()) }()
		s := <-notified
		u.disk.Fail(0, 0, 0)
		u.goesOn(t, s)
		u.write(s)
		u.losesPower()
		<-settled
	})
}

// TestCutThatIsFoundIsDurable lets all syncs fail from a cut on, so that the cut does not
// become durable. Then the directory is opened again. The cut must be on the disk before the
// children continue.
func TestCutThatIsFoundIsDurable(t *testing.T) {
	forOutcomes(t, func(t *testing.T, u *unsure) {
		u.write(u.stores[0])
		u.breakAt(failpoint.Cutting, 1<<30)
		if err := u.cut(); err != nil {
			t.Fatal(err)
		}
		if err := u.d.Close(); abi.CodeOf(err) != abi.Storage {
			t.Errorf("Close: %v, want the code storage", err)
		}
		u.disk.Fail(0, 0, 0)
		u.stores = nil
		if err := u.open(); err != nil {
			t.Fatal(err)
		}
		if len(u.stores) != 2 {
			t.Fatalf("%d stores, want the children", len(u.stores))
		}
		for _, s := range u.stores {
			u.write(s)
		}
		u.losesPower()
	})
}

// TestCommitThatFailedStaysUndone closes a store that cannot be written, opens it again, and
// cuts it without writing to it. The parent has then ended with what its file contained when it
// was opened, and must not have more after a power loss.
func TestCommitThatFailedStaysUndone(t *testing.T) {
	forOutcomes(t, func(t *testing.T, u *unsure) {
		s := u.stores[0]
		u.write(s)
		u.breakAt(failpoint.Appending, 1)
		notified := make(chan struct{}, 1)
		s.Notify(func() {
			u.refusing.Store(true) // so that the store cannot write again either
			nudge(notified)
		})
		a := u.ledger[s.Origin()]
		s.Append(whole(s.Origin(), a.appended, 3, 100))
		a.appended += 3
		<-notified
		if err := s.Close(t.Context()); abi.CodeOf(err) != abi.Storage {
			t.Fatalf("Close: %v, want the code storage", err)
		}
		u.refusing.Store(false)
		u.stores = nil
		if err := u.openStore(s.info.Session); err != nil {
			t.Fatal(err)
		}
		if err := u.cut(); err != nil {
			t.Fatal(err)
		}
		u.losesPower()
	})
}
