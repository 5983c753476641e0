package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

const (
	sensors    = 20
	alertEvery = 10            // every tenth reading is an alert
	restarts   = 6 * time.Hour // after which the gateway is opened again
	besides    = 2 << 20       // bytes of the catalogue, and of files that are not part of a session yet
	emptied    = 8 << 20       // bytes of a log after which it is emptied, with two syncs
	opening    = 20            // the most syncs for opening and closing once
)

// simulation is a gateway in simulated time.
type simulation struct {
	t       *testing.T
	dir     string
	budget  int64
	longest int // the most minutes for which the uplink is down, or up
	clock   *terrarium.ManualClock
	changes *rand.Rand
	away    bool
	until   time.Time // when the uplink next goes down, or comes back

	sent, forwarded   int             // readings that are alerts
	next              [sensors]int    // alert of each sensor
	longestAway, most int             // the largest number of waiting alerts; the largest size on the disk, in bytes
	oldest, first     journal.EventID // the oldest reading of the history, now and at the beginning
	g                 *Gateway
	syncs, written    int64 // of gateways that have been closed
}

// alert is the reading of alert number n of a sensor.
func alert(sensor, n int) string { return fmt.Sprintf("s%02d %d too hot", sensor+1, n) }

// uplink is up half of the time. It checks that each alert arrives once, and that those of a
// sensor arrive in order. Alerts of different sensors may overtake each other.
func (s *simulation) uplink(_ context.Context, _ uint64, text []byte) error {
	if s.away {
		return errors.New("away")
	}
	var sensor int
	if _, err := fmt.Sscanf(string(text), "s%02d", &sensor); err != nil || sensor < 1 || sensor > sensors {
		s.t.Fatalf("the alert %q, %v", text, err)
	}
	if want := alert(sensor-1, s.next[sensor-1]); string(text) != want {
		s.t.Fatalf("the alert %q, want %q", text, want)
	}
	s.next[sensor-1]++
	s.forwarded++
	return nil
}

func (s *simulation) open() {
	s.t.Helper()
	s.clock = terrarium.NewManualClock(s.clock.Now())
	var err error
	if s.g, err = Open(s.t.Context(), terrarium.Options{Dir: s.dir, MaxDiskBytes: s.budget, Clock: s.clock}, s.uplink); err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulation) close() {
	s.t.Helper()
	wear := s.g.Terrarium().Directory().Wear()
	s.syncs, s.written = s.syncs+wear.Syncs, s.written+wear.WrittenBytes
	if err := s.g.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// second sends a reading of every sensor, and then moves the clock by a second.
func (s *simulation) second(n int) {
	s.t.Helper()
	if !s.clock.Now().Before(s.until) {
		s.away = !s.away
		s.until = s.clock.Now().Add(time.Duration(1+s.changes.IntN(s.longest)) * time.Minute)
	}
	var lines strings.Builder
	for i := range sensors {
		if (n+i)%alertEvery == 0 {
			lines.WriteString(alert(i, n/alertEvery) + "\n")
			s.sent++
		} else {
			fmt.Fprintf(&lines, "s%02d %d fine\n", i+1, n)
		}
	}
	if err := s.g.Serve(s.t.Context(), strings.NewReader(lines.String())); err != nil {
		s.t.Fatal(err)
	}
	if err := s.g.Terrarium().Advance(s.t.Context(), time.Second); err != nil {
		s.t.Fatal(err)
	}
	s.longestAway = max(s.longestAway, s.sent-s.forwarded)
}

// settle waits for the work in the background, which begins within a minute, measures the
// disk, and looks up the oldest reading of the history.
func (s *simulation) settle() {
	s.t.Helper()
	if err := s.g.Terrarium().Settle(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	after := s.disk()
	s.most = max(s.most, int(after))
	graphs, err := s.g.Terrarium().Status("")
	if err != nil || len(graphs) != 1 {
		s.t.Fatalf("there are %d graphs, %v", len(graphs), err)
	}
	events, err := s.g.Terrarium().History(s.t.Context(), string(graphs[0].ID), journal.HistoryQuery{
		Kinds: []journal.EventKind{journal.EventChannelMessage}, Limit: 1,
	})
	if err != nil || len(events) != 1 {
		s.t.Fatalf("the history has %d readings, %v", len(events), err)
	}
	s.oldest = events[0].ID
	if s.first == (journal.EventID{}) {
		s.first = s.oldest
	}
	if problems := s.g.Terrarium().Problems(); len(problems) > 0 || after > s.budget+besides {
		s.t.Fatalf("%v: %d bytes of %d, %v", s.clock.Now(), after, s.budget, problems)
	}
}

// disk returns the size of the files in the session directory.
func (s *simulation) disk() (n int64) {
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // a file may have been removed meanwhile
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestGatewayForHours simulates a gateway whose uplink is down half of the time: no alert is
// lost or duplicated, those of a sensor stay in order, the disk stays within its budget, and
// there are no more syncs than promised. GATEWAY_HOURS sets the number of hours.
func TestGatewayForHours(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &simulation{
		t: t, dir: t.TempDir(), budget: 16 << 20, longest: 4, clock: terrarium.NewManualClock(begin),
		changes: rand.New(rand.NewPCG(1, 2)), until: begin,
	}
	length := 40 * time.Minute
	if hours, err := strconv.Atoi(os.Getenv("GATEWAY_HOURS")); err == nil {
		length, s.budget, s.longest = time.Duration(hours)*time.Hour, 128<<20, 20
	}
	s.open()
	opened := int64(1)
	for n := range int(length / time.Second) {
		s.second(n)
		if (n+1)%60 == 0 {
			s.settle()
		}
		if (n+1)%int(min(restarts, length/2)/time.Second) == 0 {
			s.close()
			s.open()
			opened++
		}
	}
	s.away = false
	if err := s.g.Forward(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.close()
	if s.sent == 0 || s.forwarded != s.sent {
		t.Errorf("%d alerts of %d were forwarded", s.forwarded, s.sent)
	}
	if s.oldest == s.first {
		t.Error("nothing was pruned")
	}
	if promised := int64(length/(10*time.Second)) + 2*s.written/emptied + opening*opened; s.syncs > promised {
		t.Errorf("there were %d syncs, and %d are promised", s.syncs, promised)
	}
	hours := length.Hours()
	t.Logf("%v, opened %d times: %d readings, %d alerts, of which at most %d waited; at most %.1f MB on the disk; in an hour, %.0f syncs and %.1f MB written to logs",
		length, opened, int(length/time.Second)*sensors, s.forwarded, s.longestAway, float64(s.most)/1e6, float64(s.syncs)/hours, float64(s.written)/hours/1e6)
}
