package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// oldCuts is how many merges, and how many splits, the session of BenchmarkOld has behind it.
const oldCuts = 1000

// aged makes a directory in which two creatures were connected and disconnected that many
// times, with a message each time, and closes it.
func aged(b *testing.B, dir string) {
	b.Helper()
	ctx := context.Background()
	w := newWorldIn(b, dir)
	pair := make([]journal.CreatureID, 2)
	for i := range pair {
		added, err := w.AddCreature(ctx, deploy.CreatureSpec{Name: fmt.Sprint("c", i), Wasm: hop})
		must(b, err)
		pair[i] = added.Creature
	}
	for range oldCuts {
		out, err := w.Change(ctx, topology.Connect{From: pair[0], To: pair[1], Name: "x"})
		must(b, err)
		_, err = w.Send(ctx, out[0].Channel, engine.Outgoing{Payload: binary.LittleEndian.AppendUint64(nil, 1)})
		must(b, err)
		must(b, w.WaitIdle(ctx))
		_, err = w.Change(ctx, topology.Disconnect{From: pair[0], To: pair[1], Channel: out[0].Channel})
		must(b, err)
		_, err = w.RemoveChannel(ctx, out[0].Channel)
		must(b, err)
	}
	w.close()
}

// BenchmarkOld measures what a reader waits for in a directory of two live graphs with a
// thousand merges and a thousand splits behind them: as their owner left it right after
// the last of them.
func BenchmarkOld(b *testing.B) {
	ctx := context.Background()
	dir := b.TempDir()
	aged(b, dir)
	var live journal.SessionID
	each := func(name string, look func(v *sqlitestore.View)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v := want(sqlitestore.OpenReadOnly(ctx, dir))
				look(v)
				must(b, v.Close())
			}
			count, size := files(b, dir)
			b.ReportMetric(float64(count), "files")
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
	each("list", func(v *sqlitestore.View) {
		for _, s := range want(v.Sessions(ctx)) {
			if s.Live {
				live = s.Session
			}
		}
	})
	each("lineage", func(v *sqlitestore.View) {
		if line := want(v.Lineage(ctx, live)); len(line) < 2*oldCuts {
			b.Fatalf("%d ancestors", len(line))
		}
	})
	each("verify", func(v *sqlitestore.View) {
		if r := want(v.Verify(ctx, live)); len(r.Missing)+len(r.Duplicate)+len(r.OutOfOrder)+len(r.Damage) > 0 {
			b.Fatalf("%+v", r)
		}
	})
}

// BenchmarkUnjoined adds a thousand creatures, each a graph with a store of its own, and
// closes them. The memory is the most that the process has had since it began to add them.
func BenchmarkUnjoined(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		w := newWorldIn(b, dir)
		forgetPeak()
		began := time.Now()
		for i := range 1000 {
			_, err := w.AddCreature(context.Background(), deploy.CreatureSpec{Name: fmt.Sprint("c", i), Wasm: hop})
			must(b, err)
		}
		added := time.Now()
		peak := peakMB()
		w.close()
		closed := time.Now()
		_, size := files(b, dir)
		b.ReportMetric(added.Sub(began).Seconds()*1e3, "add-ms")
		b.ReportMetric(closed.Sub(added).Seconds()*1e3, "close-ms")
		b.ReportMetric(peak, "peak-MB")
		b.ReportMetric(float64(size)/1e6, "MB")
	}
}

// closing is an engine that is closed with its host and its directory.
type closing struct {
	*engine.Engine
	close func()
}

// newWorldIn opens an engine with a session directory.
func newWorldIn(b *testing.B, path string) closing {
	b.Helper()
	ctx := context.Background()
	real := want(host.New(ctx, host.Options{}))
	dir := want(sqlitestore.Open(ctx, path, sqlitestore.Options{}))
	e := want(engine.New(ctx, engine.Options{Host: real, Durability: journal.Normal, Storage: dir}))
	return closing{e, func() {
		b.Helper()
		must(b, e.Close(ctx))
		must(b, dir.Close())
		must(b, real.Close(ctx))
	}}
}

// forgetPeak lets the peak of the memory begin again, on Linux.
func forgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMB is the peak of the memory of this process; 0 if the system does not tell.
func peakMB() (mb float64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, after, found := strings.Cut(string(status), "VmHWM:"); found {
		_, _ = fmt.Sscan(after, &mb)
	}
	return mb * 1024 / 1e6
}

// files counts the files in a directory, and their bytes.
func files(b *testing.B, dir string) (count int, size int64) {
	b.Helper()
	must(b, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, infoErr := d.Info()
			if err = infoErr; err == nil {
				count, size = count+1, size+info.Size()
			}
		}
		return err
	}))
	return count, size
}
