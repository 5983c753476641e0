package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
)

// sample is what was measured over an interval, or at its end.
type sample struct {
	at     time.Duration // since the start
	values [len(series)]float64
}

// series are the curves. One with holds set shows something that a process holds: it may grow
// only by a factor and an allowance between the second and the last fifth of a soak; see
// growth. The other curves are only drawn.
var series = [...]struct {
	name, unit string
	holds      bool
	allowance  float64
}{
	{"live heap", "MB", true, 16},
	{"resident memory", "MB", true, 64},
	{"goroutines", "", true, 16},
	{"descriptors", "", true, 16},
	{"files of sessions", "", false, 0},
	{"size of sessions", "MB", false, 0},
	{"messages a second", "", false, 0},
	{"merges and splits a second", "", false, 0},
	{"request, median", "µs", false, 0},
	{"request, 99th percentile", "µs", false, 0},
}

const growthFactor = 1.3

// enoughSamples is the fewest samples by which growth is judged.
const enoughSamples = 100

// sampler measures the process and the session directory. Its loop has one goroutine; other
// methods may be called from any.
type sampler struct {
	dir   string
	books *books

	mu      sync.Mutex
	t       *terrarium.Terrarium // nil between two lives
	asked   terrarium.CreatureID
	samples []sample
}

func (s *sampler) watch(t *terrarium.Terrarium, asked terrarium.CreatureID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t, s.asked = t, asked
}

// unwatch waits for a request that is under way.
func (s *sampler) unwatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t = nil
}

// loop measures at every interval until ctx ends. While there is no terrarium, nothing is
// measured: a process that has just closed holds less.
func (s *sampler) loop(ctx context.Context, interval time.Duration) {
	began := time.Now()
	last, lastCounts := began, map[string]int{}
	var took []time.Duration
	for ctx.Err() == nil {
		if d, ok := s.ask(ctx); ok {
			took = append(took, d)
		}
		_ = pause(ctx, 10*time.Millisecond) // its error is the condition of the loop
		if time.Since(last) < interval || len(took) == 0 {
			continue
		}
		counts, _ := s.books.done()
		rate := func(names ...string) (sum float64) {
			for _, n := range names {
				sum += float64(counts[n] - lastCounts[n])
			}
			return sum / time.Since(last).Seconds()
		}
		slices.Sort(took)
		files, bytes := stored(s.dir)
		measured := sample{at: time.Since(began), values: [len(series)]float64{
			liveHeap() / 1e6, resident() / 1e6, float64(runtime.NumGoroutine()), float64(descriptors()), float64(files), float64(bytes) / 1e6,
			rate("messages"), rate("merges", "splits"),
			float64(took[len(took)/2].Microseconds()), float64(took[len(took)*99/100].Microseconds()),
		}}
		s.mu.Lock()
		if s.t != nil {
			s.samples = append(s.samples, measured)
		}
		s.mu.Unlock()
		last, lastCounts, took = time.Now(), counts, took[:0]
	}
}

// ask measures one request.
func (s *sampler) ask(ctx context.Context) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.t == nil {
		return 0, false
	}
	began := time.Now()
	_, err := s.t.Request(ctx, s.asked, terrarium.Outgoing{}, 0)
	if err != nil && ctx.Err() == nil {
		s.books.problem("a request of the sampler: %v", err)
	}
	return time.Since(began), err == nil
}

// growth compares the second fifth of the samples with the last one, and returns what has
// grown too much. With too few samples it returns nothing.
func growth(samples []sample) (grown []string) {
	fifth := len(samples) / 5
	if len(samples) < enoughSamples {
		return nil
	}
	for i, curve := range series {
		before, after := median(samples[fifth:2*fifth], i), median(samples[len(samples)-fifth:], i)
		if curve.holds && after > growthFactor*before+curve.allowance {
			grown = append(grown, fmt.Sprintf("%s grew from %.0f to %.0f %s", curve.name, before, after, curve.unit))
		}
	}
	return grown
}

func median(samples []sample, curve int) float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, s.values[curve])
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// table writes the samples as comma-separated values.
func table(w io.Writer, samples []sample) error {
	head := []string{"seconds"}
	for _, curve := range series {
		head = append(head, strings.TrimSpace(strings.ReplaceAll(curve.name, ",", "")+" "+curve.unit))
	}
	if _, err := fmt.Fprintln(w, strings.Join(head, ",")); err != nil {
		return err
	}
	for _, s := range samples {
		line := fmt.Sprintf("%.1f", s.at.Seconds())
		for _, v := range s.values {
			line += fmt.Sprintf(",%.1f", v)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func liveHeap() float64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return float64(live[0].Value.Uint64())
}

// resident returns the resident memory of the process in bytes, and 0 where it is unknown.
func resident() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages float64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}

// descriptors counts the open files of the process; 0 where that is unknown.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(open) - 1 // without the directory that is read
}

// stored counts the files of a session directory, and their bytes.
func stored(dir string) (files int, bytes int64) {
	// What disappears meanwhile is left out.
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				files, bytes = files+1, bytes+info.Size()
			}
		}
		return nil
	})
	return files, bytes
}
