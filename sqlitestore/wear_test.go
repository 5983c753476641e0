package sqlitestore

import (
	"bytes"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/losevfs"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// TestWear compares the syncs that the directory reports with those that the disk has counted:
// with both durabilities, while logs are emptied and filled again. With the durability normal,
// there is at most one sync in each period, and two each time a log is emptied.
func TestWear(t *testing.T) {
	const groups, periods = 80, 3 // so that nothing is emptied in the background
	for _, durability := range []journal.Durability{journal.Full, journal.Normal} {
		dir := t.TempDir()
		disk := losevfs.Mount(dir, 1)
		passed, synced := make(chan time.Time), make(chan struct{}, 1)
		options := Options{hooks: failpoint.Hooks{Synced: disk.Synced}, Timer: func(time.Duration) (<-chan time.Time, func()) {
			return passed, func() {}
		}}
		if durability == journal.Normal {
			options.SyncEvery = time.Second
		}
		d, err := Open(t.Context(), dir, options)
		if err != nil {
			t.Fatal(err)
		}
		if options.SyncEvery > 0 {
			d.syncs.report = func(err error) {
				if err != nil {
					t.Error(err)
				}
				synced <- struct{}{}
			}
		}
		stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: durability})
		if err != nil {
			t.Fatal(err)
		}
		s := stores[0].(*Store)
		settle(t, d)
		d.spares.rest(t) // spare files are made in the background
		before, made, log := d.Wear(), disk.LogSyncs(), disk.Syncs(s.path()+logSuffix)
		written, emptied := uint64(0), 0
		for period := range periods {
			for range groups {
				written++
				logged(s, written, written)
				if err := s.Wait(t.Context(), written); err != nil {
					t.Fatal(err)
				}
			}
			if options.SyncEvery > 0 {
				passed <- time.Time{}
				<-synced
			}
			if period == 1 { // as checkpoints do in the background
				d.wear.checkpoint(s.path())
				emptied++
			}
		}
		after := d.Wear()
		if told, is := after.Syncs-before.Syncs, int64(disk.LogSyncs()-made); told != is || told == 0 {
			t.Errorf("%v: the directory reports %d syncs, but there were %d", durability, told, is)
		}
		promised := periods + 2*emptied + 1
		if durability == journal.Full {
			promised += groups * periods
		}
		if n := disk.Syncs(s.path()+logSuffix) - log; n > promised {
			t.Errorf("%v: there were %d syncs of the log, but at most %d are promised", durability, n, promised)
		}
		if n := after.WrittenBytes - before.WrittenBytes; n < groups*periods*1000 || n > groups*periods*64<<10 {
			t.Errorf("%v: the directory reports %d bytes for %d groups of a kilobyte", durability, n, groups*periods)
		}
		if again := d.Wear(); again.Syncs != after.Syncs || again.WrittenBytes != after.WrittenBytes {
			t.Errorf("%v: without writes, %+v became %+v", durability, after, again)
		}
		path := s.path()
		inLog := disk.Syncs(path + logSuffix)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if told, is := d.Wear().Syncs-after.Syncs, int64(disk.Syncs(path+logSuffix)-inLog); told != is {
			t.Errorf("%v: the directory reports %d syncs of closing, but there were %d", durability, told, is)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		disk.Unmount()
	}
}

// TestALogIsEmptiedWhenItIsLarge commits small records one by one until the log is due to be
// emptied in the background, and measures the log at that moment. The log is then far from the
// size at which SQLite empties it within a commit, which callers would have to wait for.
func TestALogIsEmptiedWhenItIsLarge(t *testing.T) {
	d, err := Open(t.Context(), t.TempDir(), WithoutSyncs)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	stores, err := d.Create(t.Context(), journal.StoreSpec{Graph: "g", Durability: journal.Normal})
	if err != nil {
		t.Fatal(err)
	}
	s := stores[0].(*Store)
	appended := func() int64 {
		d.checkpoints.mu.Lock()
		defer d.checkpoints.mu.Unlock()
		return d.checkpoints.bytes[s.path()]
	}
	n := uint64(0)
	for before := int64(0); appended() >= before; {
		before = appended()
		n++
		logged(s, n, n)
		if err := s.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mark, page, ok := readLog(s.path())
	if size := mark.frames * page; !ok || size < checkpointBytes/4 || size > 2*checkpointBytes || mark.frames > sqlite.CheckpointPages/4 {
		t.Errorf("after %d commits, the log has %d bytes in %d pages", n, size, mark.frames)
	}
}

// TestWearOfStrangeLogs measures files that are not logs.
func TestWearOfStrangeLogs(t *testing.T) {
	header := make([]byte, logHeaderSize)
	copy(header, "\x37\x7f\x06\x82")
	sized := func(page string, size int) []byte {
		b := append(bytes.Clone(header), make([]byte, size)...)
		copy(b[8:], page)
		return b
	}
	for name, c := range map[string]struct {
		log    []byte
		frames int64
		ok     bool
	}{
		"empty": {}, "short": {log: header[:31]}, "zeros": {log: make([]byte, 100)},
		"no page":    {log: header},
		"huge pages": {log: sized("\xff\xff\xff\xff", 1000)},
		"no frames":  {sized("\x00\x00\x10\x00", 0), 0, true},
		"half":       {sized("\x00\x00\x10\x00", 4096), 0, true},
		"two":        {sized("\x00\x00\x10\x00", 2*(4096+24)+7), 2, true},
	} {
		if mark, _, ok := parseLog(bytes.NewReader(c.log), int64(len(c.log))); ok != c.ok || mark.frames != c.frames {
			t.Errorf("%s: %d frames, %v", name, mark.frames, ok)
		}
	}
}
