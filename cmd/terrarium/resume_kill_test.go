package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// editions are the versions of one recipe, which is edited between kills: creatures are added,
// removed, connected and disconnected. The two that count stay.
var editions = []string{
	`creature "relay" {
  module = "builtin:relay"
  listen = [channel.lines]
  send   = [channel.seen]
}
creature "late" {
  module = "builtin:tally"
  listen = [channel.seen]
  config = { key = "field:2" }
}
channel "seen" {}
`,
	`creature "bridge" {
  module = "builtin:relay"
  listen = [channel.lines]
  send   = [channel.others]
}
`,
	``,
}

func edition(i int) string {
	return `
terrarium { name = "edited" }
channel "lines" {}
channel "others" {}
creature "census" {
  module = "builtin:tally"
  listen = [channel.lines]
  config = { key = "field:1" }
}
creature "other" {
  module = "builtin:tally"
  listen = [channel.others]
  config = { key = "field:1" }
}
` + editions[i%len(editions)]
}

// longestLife is how long a resume may live at most. A resume that ends by itself halves it,
// and a kill doubles it, so that a fast machine kills some too.
const longestLife = 500 * time.Millisecond

// TestKillResume kills resume at any time, most often while it restores a session whose
// recipe was edited. The next resume continues wherever it stopped: in the end each line
// was counted once.
func TestKillResume(t *testing.T) {
	t.Parallel()
	const lines = 3000
	dir := t.TempDir()
	var log strings.Builder
	for i := range lines {
		fmt.Fprintf(&log, "%d line\n", i%7)
	}
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	write(t, dir, "edited.hcl", edition(0))
	once(t, dir, "0 line\n", "run", "edited.hcl", "--input", "lines=-", "--exit-when-idle", "--session", "S")
	resume := []string{"resume", "S", "--input", "lines=lines.txt", "--exit-when-idle"}
	killed, span := 0, longestLife
	for i, n := 0, kills(t, 3); i < n || killed == 0 && i < 50; i++ { // a fast machine needs more tries
		write(t, dir, "edited.hcl", edition(i+1))
		// Each finds more to do than the one before, so that there is always
		// something to interrupt.
		write(t, dir, "lines.txt", log.String()[:len("0 line\n")*(1+random.IntN(lines))])
		p := start(t, dir, resume...)
		end := time.AfterFunc(time.Duration(random.Float64()*float64(span)), func() { p.cmd.Process.Kill() })
		switch code := p.wait(); {
		case code == -1:
			killed++
			span = min(2*span, longestLife)
		case code != exitOK && code != exitDeadLetters: // of a creature that was removed together with its waiting deliveries
			t.Fatalf("after %d kills it ended with %d\n%s", killed, code, p.stderr)
		default:
			span /= 2
		}
		end.Stop()
	}
	if killed == 0 {
		t.Fatal("nothing was killed")
	}
	t.Logf("%d were killed", killed)
	write(t, dir, "edited.hcl", edition(0))
	write(t, dir, "lines.txt", log.String())
	last := start(t, dir, resume...)
	if code := last.wait(); code != exitOK && code != exitDeadLetters {
		t.Fatalf("the last one ended with %d\n%s", code, last.stderr)
	}
	want := map[string]string{"census total": fmt.Sprint(lines)}
	for k := range 7 {
		want[fmt.Sprintf("census count/%d", k)] = fmt.Sprint((lines - k + 6) / 7)
	}
	got := (&triage{t: t, dir: dir}).tallies("S")
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%s is %q, want %s; all: %v", key, got[key], n, got)
		}
	}
	verifyAll(t, filepath.Join(dir, "S"))
}

// TestKillResumeFile kills resume of an exported file at any time, before or after its
// new directory exists. The same command always continues: in the end each line was counted
// once, and nothing is left over.
func TestKillResumeFile(t *testing.T) {
	t.Parallel()
	const lines = 400
	dir, tmp := t.TempDir(), t.TempDir()
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	write(t, dir, "edited.hcl", edition(1)) // of one graph
	write(t, dir, "lines.txt", strings.Repeat("0 line\n", lines))
	once(t, dir, "0 line\n", "run", "edited.hcl", "--input", "lines=-", "--exit-when-idle", "--session", "S")
	once(t, dir, "", "session", "export", "S", liveSession(t, filepath.Join(dir, "S")), "alone.db")
	resume := []string{"resume", "alone.db", "--session", "N", "--input", "lines=lines.txt", "--exit-when-idle"}
	killed, before, span := 0, 0, longestLife
	for i, n := 0, kills(t, 3); i < n || killed == 0 && i < 50; i++ { // a fast machine needs more tries
		if random.IntN(4) == 0 { // start over
			if err := os.RemoveAll(filepath.Join(dir, "N")); err != nil {
				t.Fatal(err)
			}
		}
		p := startWith(t, dir, tmp, resume...)
		end := time.AfterFunc(time.Duration(random.Float64()*float64(span)), func() { p.cmd.Process.Kill() })
		switch code := p.wait(); {
		case code == -1:
			killed++
			span = min(2*span, longestLife)
		case code != exitOK:
			t.Fatalf("after %d kills it ended with %d\n%s", killed, code, p.stderr)
		default:
			span /= 2
		}
		end.Stop()
		if _, err := os.Stat(filepath.Join(dir, "N")); err != nil {
			before++
		}
	}
	if killed == 0 {
		t.Fatal("nothing was killed")
	}
	t.Logf("%d were killed, %d of them before there was the directory", killed, before)
	if last := startWith(t, dir, tmp, resume...); last.wait() != exitOK {
		t.Fatalf("the last one failed\n%s", last.stderr)
	}
	if got := (&triage{t: t, dir: dir}).tallies("N")["census total"]; got != fmt.Sprint(lines) {
		t.Errorf("%s lines were counted, want %d", got, lines)
	}
	verifyAll(t, filepath.Join(dir, "N"))
	for _, pattern := range []string{filepath.Join(dir, "N.*"), filepath.Join(tmp, "terrarium-adopt*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
}

// liveSession is the only live session of a directory.
func liveSession(t *testing.T, dir string) string {
	t.Helper()
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	info, err := pick(t.Context(), v, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(info.Session)
}

// verifyAll checks every session of a directory.
func verifyAll(t *testing.T, dir string) {
	t.Helper()
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	list, err := v.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		r, err := v.Verify(t.Context(), info.Session)
		if err != nil || len(r.Missing)+len(r.Duplicate)+len(r.OutOfOrder)+len(r.Damage) > 0 {
			t.Errorf("session %s: %+v, %v", info.Session, r, err)
		}
	}
}
