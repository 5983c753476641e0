package sqlitestore

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// TestSyncEvery writes many records in a few periods, and lets the power fail at the end. No
// log is synced more than once in a period. Everything that was written in periods that have
// passed is left afterwards.
func TestSyncEvery(t *testing.T) {
	const periods, groups = 4, 50 // so few that the log is not emptied in the background
	for seed := range uint64(seeds(t, powerSeeds)) {
		dir := t.TempDir()
		disk := losevfs.Mount(dir, seed)
		begun, passed := make(chan struct{}), make(chan time.Time)
		synced := make(chan struct{}, 100)
		d, err := Open(t.Context(), dir, Options{SyncEvery: time.Second, hooks: failpoint.Hooks{Synced: disk.Synced},
			Timer: func(time.Duration) (<-chan time.Time, func()) {
				begun <- struct{}{}
				return passed, func() {}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		report := d.syncs.report
		d.syncs.report = func(err error) { report(err); synced <- struct{}{} }
		s := createNormal(t, d)
		settle(t, d)    // so that no other work syncs
		logged(s, 1, 1) // the header of the log is synced
		if err := s.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		log := s.path() + "-wal"
		written, durable := uint64(1), uint64(0)
		for period := range periods {
			before := disk.Syncs(log)
			for range groups {
				written++
				logged(s, written, written)
				if err := s.Wait(t.Context(), written); err != nil {
					t.Fatal(err)
				}
			}
			<-begun
			if n := disk.Syncs(log) - before; n > 0 {
				t.Fatalf("seed %d: %d syncs within period %d, want none", seed, n, period)
			}
			passed <- time.Time{}
			<-synced
			if n := disk.Syncs(log) - before; n != 1 {
				t.Fatalf("seed %d: %d syncs at the end of period %d, want 1", seed, n, period)
			}
			durable = written
			if period == periods-1 {
				break
			}
		}
		for range groups / 2 {
			written++
			logged(s, written, written)
		}
		if err := s.Wait(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		<-begun
		disk.Die()
		_ = d.Close() // there is no power
		if err := disk.PowerOff(); err != nil {
			t.Fatal(err)
		}
		d = mustOpen(t, dir)
		again, err := d.Open(t.Context(), s.info.Session)
		if err != nil {
			t.Fatal(err)
		}
		events, err := again.History(t.Context(), journal.HistoryQuery{Limit: 1 << 20})
		if got := uint64(len(events)); err != nil || got < durable || got > written {
			t.Errorf("seed %d: %d events are left, %v; want from %d to %d", seed, got, err, durable, written)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSyncEveryWhileRead closes a store while another connection has its file open. The events
// of the store survive a power loss.
func TestSyncEveryWhileRead(t *testing.T) {
	const events = 50
	dir := t.TempDir()
	disk := losevfs.Mount(dir, 1)
	d, err := Open(t.Context(), dir, Options{SyncEvery: time.Hour, hooks: failpoint.Hooks{Synced: disk.Synced}})
	if err != nil {
		t.Fatal(err)
	}
	s := createNormal(t, d)
	settle(t, d)
	logged(s, 1, events)
	if err := s.Wait(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	reader, err := sqlite.Open(s.path(), sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Exec("SELECT count(*) FROM sqlite_schema"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	disk.Die()
	_ = reader.Close() // there is no power
	if err := disk.PowerOff(); err != nil {
		t.Fatal(err)
	}
	d = mustOpen(t, dir)
	again, err := d.Open(t.Context(), s.info.Session)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.History(t.Context(), journal.HistoryQuery{Limit: 1 << 20})
	if err != nil || len(got) != events {
		t.Errorf("%d events are left, %v; want %d", len(got), err, events)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func createNormal(t *testing.T, d *Directory) *Store {
	t.Helper()
	stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: journal.Normal})
	if err != nil {
		t.Fatal(err)
	}
	return stores[0].(*Store)
}

// TestSyncEveryThatFails proves that a sync that fails is reported and tried again. The problem
// remains until the store is closed, because what the first sync should have written may be
// lost.
func TestSyncEveryThatFails(t *testing.T) {
	dir := t.TempDir()
	disk := losevfs.Mount(dir, 1)
	t.Cleanup(disk.Unmount)
	passed, synced := make(chan time.Time), make(chan error, 10)
	d, err := Open(t.Context(), dir, Options{
		SyncEvery: time.Second, hooks: failpoint.Hooks{Synced: disk.Synced},
		Timer: func(time.Duration) (<-chan time.Time, func()) { return passed, func() {} },
	})
	if err != nil {
		t.Fatal(err)
	}
	report := d.syncs.report
	d.syncs.report = func(err error) { report(err); synced <- err }
	s := createNormal(t, d)
	settle(t, d)
	for n := range uint64(2) {
		logged(s, n+1, n+1)
		if err := s.Wait(t.Context(), n+1); err != nil {
			t.Fatal(err)
		}
		if n == 0 { // SQLite itself syncs the header of the log
			passed <- time.Time{}
			if err := <-synced; err != nil {
				t.Fatal(err)
			}
		}
	}
	disk.Fail(losevfs.SyncFails, 0, 1<<30) // those of spare files, too
	passed <- time.Time{}
	wantError(t, "the first sync", <-synced, abi.Storage, "sync")
	disk.Fail(0, 0, 0)
	if problems := d.Problems(); len(problems) == 0 {
		t.Errorf("problems: %v, want the sync that has failed", problems)
	}
	log := s.path() + "-wal"
	before := disk.Syncs(log)
	passed <- time.Time{}
	wantError(t, "the second sync", <-synced, abi.Storage, "sync")
	if disk.Syncs(log) == before || len(d.Problems()) == 0 {
		t.Errorf("the second attempt has made %d syncs of the log, and the problems are %v", disk.Syncs(log)-before, d.Problems())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	logged(createNormal(t, d), 1, 1)
	passed <- time.Time{}
	if err := <-synced; err != nil || len(d.Problems()) > 0 {
		t.Errorf("after the store was closed: %v, problems %v", err, d.Problems())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestSyncEveryIsRefused(t *testing.T) {
	for _, every := range []time.Duration{-1, time.Microsecond, 25 * time.Hour} {
		dir := t.TempDir()
		if _, err := Open(t.Context(), dir, Options{SyncEvery: every}); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("SyncEvery %v: %v, want invalid_argument", every, err)
		}
	}
}
