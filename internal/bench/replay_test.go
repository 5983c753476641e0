package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/plugins"
)

// replayedTurns is the number of turns of the session that BenchmarkReplay replays.
const replayedTurns = 1_000_000

// tallied makes a session in which four creatures handle a million messages together.
// Each counts words, and reports at every 100th.
func tallied(b *testing.B) (dir string) {
	b.Helper()
	const creatures = 4
	ctx := context.Background()
	dir = b.TempDir()
	recipe := filepath.Join(dir, "crowd.hcl")
	text := "channel \"lines\" {}\nchannel \"reports\" {}\n"
	for i := range creatures {
		text += fmt.Sprintf("creature \"c%d\" {\n  module = \"builtin:tally\"\n  listen = [channel.lines]\n  send = [channel.reports]\n"+
			"  config = { key = \"field:2\", every = 100 }\n}\n", i)
	}
	must(b, os.WriteFile(recipe, []byte(text), 0o600))
	dir = filepath.Join(dir, "S")
	t := want(terrarium.New(ctx, terrarium.Options{Dir: dir}))
	lines := want(t.Apply(ctx, recipe, terrarium.RecipeOptions{})).Channels["channel.lines"]
	for n := range replayedTurns / creatures {
		if n%5000 == 0 {
			must(b, t.WaitIdle(ctx))
		}
		want(t.Send(ctx, lines, terrarium.Outgoing{Payload: fmt.Appendf(nil, "07:02 animal-%d", n%50)}))
	}
	must(b, t.WaitIdle(ctx))
	must(b, t.Close(ctx))
	return dir
}

// BenchmarkReplay runs a million recorded turns again, on another module than theirs.
func BenchmarkReplay(b *testing.B) {
	dir := tallied(b)
	wasm := append(want(plugins.Get("tally")), 0, 3, 1, 'v', '2') // with another section
	before := processorTime(b)
	b.ResetTimer()
	for range b.N {
		report := want(terrarium.Replay(context.Background(), dir, terrarium.ReplayOptions{Creatures: []string{"*"}, Module: wasm}))
		if report.Turns < replayedTurns || report.Differ > 0 || report.Skipped() > 0 {
			b.Fatalf("%+v", report)
		}
	}
	b.ReportMetric(float64(b.N)*replayedTurns/b.Elapsed().Seconds(), "turns/s")
	b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-s") // of a busy machine, the elapsed time says little
}

// processorTime returns the seconds of processor time that this process has taken.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
