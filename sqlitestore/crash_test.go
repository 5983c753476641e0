package sqlitestore_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

const (
	crashDirectory  = "SQLITESTORE_CRASH_DIRECTORY"
	crashDurability = "SQLITESTORE_CRASH_DURABILITY"
	killsPerSession = 12 // a directory grows with every kill, and is checked as a whole after each
)

// kills is how often TestKilled kills in each durability: usually in one session;
// TERRARIUM_KILLS asks for more.
func kills(t *testing.T) int {
	text := os.Getenv("TERRARIUM_KILLS")
	if text == "" {
		return killsPerSession
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TERRARIUM_KILLS is %q, and not a number", text)
	}
	return n
}

// TestMain runs the victim of TestKilled instead of the tests when it is asked
// to.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirectory); dir != "" {
		if err := victim(dir, os.Getenv(crashDurability)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Programs on files take long; the command line may ask for more of them.
	if err := flag.Set("rapid.checks", "50"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestKilled kills a process at random moments while it appends, merges and
// splits. Whatever it had acknowledged is there at the next start, once, in
// order and together with its live rows.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, durability := range []engine.Durability{engine.Full, engine.Normal} {
		t.Run(durability.String(), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			for left := kills(t); left > 0; left -= killsPerSession {
				session(t, durability, random, min(left, killsPerSession))
			}
		})
	}
}

// session kills the owner of one directory several times.
func session(t *testing.T, durability engine.Durability, random *rand.Rand, kills int) {
	t.Helper()
	dir := t.TempDir()
	var acknowledged []string
	for range kills {
		acknowledged = append(acknowledged, kill(t, dir, durability, random)...)
		verify(t, dir, acknowledged)
		if t.Failed() {
			t.FailNow()
		}
	}
	if len(acknowledged) < kills {
		t.Errorf("only %d events were acknowledged", len(acknowledged))
	}
}

// kill runs a victim, kills it after a random number of lines and a random
// pause, and answers the ids that it had acknowledged.
func kill(t *testing.T, dir string, durability engine.Durability, random *rand.Rand) (ids []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashDirectory+"="+dir, crashDurability+"="+durability.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := 1 + random.IntN(60)
	var alarm *time.Timer
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		word, id, _ := strings.Cut(scanner.Text(), " ")
		if word == "error" {
			t.Errorf("the victim failed: %s", id)
			break
		}
		if id, whole := strings.CutSuffix(id, "."); whole { // half a line acknowledges nothing
			ids = append(ids, id)
		}
		if lines--; lines == 0 {
			alarm = time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	if alarm != nil {
		alarm.Stop()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed, which Wait calls an error
	return ids
}

// victim appends to all live stores until it is killed, and cuts them now and
// then. It prints the id of every event that has become durable.
func victim(dir, durabilityName string) error {
	ctx := context.Background()
	durability, _ := engine.ParseDurability(durabilityName)
	d, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
	if err != nil {
		return err
	}
	graphs, problems, err := d.Saved(ctx)
	if err != nil || len(problems) > 0 {
		return fmt.Errorf("saved: %w, %v", err, problems)
	}
	var stores []*log
	for _, g := range graphs {
		s, err := d.Open(ctx, g.Session)
		if err != nil {
			return err
		}
		stores = append(stores, &log{Store: s})
	}
	if len(stores) == 0 {
		s, err := d.Create(ctx, engine.StoreSpec{Graph: "g", Durability: durability})
		if err != nil {
			return err
		}
		stores = append(stores, &log{Store: s})
	}
	for {
		for range 15 {
			for _, s := range stores {
				if err := s.appendSome(ctx); err != nil {
					return err
				}
			}
		}
		if stores, err = recut(ctx, d, stores, durability); err != nil {
			return err
		}
	}
}

// log is a store and the number of its last event.
type log struct {
	engine.Store
	last uint64
}

// record makes one of two events; the cursor of its origin says the second.
func record(origin engine.Origin, after uint64) *engine.Record {
	r := &engine.Record{Cursors: []engine.CursorRow{{Reader: engine.ReaderID("reader:" + origin.String()), Channel: "c", Seq: after + 2}}}
	for i := range uint64(2) {
		r.Events = append(r.Events, engine.Event{ID: engine.EventID{Origin: origin, Seq: after + i + 1}, Time: time.Now().UnixNano() + int64(i), Kind: engine.EventLog, Payload: make([]byte, 500)})
	}
	return r
}

func (l *log) appendSome(ctx context.Context) error {
	for range 3 {
		l.Append(record(l.Origin(), l.last))
		l.last += 2
	}
	if err := l.Wait(ctx, l.last); err != nil {
		return err
	}
	_, err := fmt.Printf("ok %s.\n", engine.EventID{Origin: l.Origin(), Seq: l.last})
	return err
}

// recut splits a single store and merges several.
func recut(ctx context.Context, d *sqlitestore.Directory, stores []*log, durability engine.Durability) ([]*log, error) {
	cut := engine.Cut{Kind: "merge", At: time.Now().UnixNano()}
	var parents []engine.SessionID
	for _, s := range stores {
		cut.Parents = append(cut.Parents, s.Store)
		parents = append(parents, s.Info().Session)
	}
	children := 1
	if len(stores) == 1 {
		cut.Kind, children = "split", 2
	}
	for range children {
		cut.Children = append(cut.Children, engine.CutChild{
			StoreSpec: engine.StoreSpec{Graph: "g", Durability: durability}, Parents: parents, Channels: []engine.ChannelID{"c"},
			First: func(o engine.Origin) *engine.Record { return record(o, 0) },
		})
	}
	made, err := d.Cut(ctx, cut)
	if err != nil {
		return nil, err
	}
	var out []*log
	for _, s := range made {
		out = append(out, &log{Store: s, last: s.Durable()})
		if _, err := fmt.Printf("cut %s.\n", engine.EventID{Origin: s.Origin(), Seq: s.Durable()}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// verify opens what the victim has left.
func verify(t *testing.T, dir string, acknowledged []string) {
	t.Helper()
	d := openBench(t, dir)
	defer d.Close()
	graphs, problems, err := d.Saved(t.Context())
	if err != nil || len(problems) > 0 {
		t.Fatalf("Saved: %v, problems %v", err, problems)
	}
	found := map[string]bool{}
	for _, g := range graphs {
		events, err := d.History(t.Context(), g.Session, engine.HistoryQuery{Limit: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		highest := map[engine.Origin]uint64{}
		for _, e := range events {
			if e.ID.Seq != highest[e.ID.Origin]+1 {
				t.Fatalf("%s: event %s follows number %d", g.Session, e.ID, highest[e.ID.Origin])
			}
			highest[e.ID.Origin] = e.ID.Seq
			found[e.ID.String()] = true
		}
		for _, c := range g.Cursors {
			origin, err := engine.ParseOrigin(strings.TrimPrefix(string(c.Reader), "reader:"))
			if err != nil || highest[origin] != c.Seq {
				t.Errorf("%s: the cursor of %s is at %d, its last event is %d; %v", g.Session, c.Reader, c.Seq, highest[origin], err)
			}
			delete(highest, origin)
		}
		if len(highest) > 0 {
			t.Errorf("%s: %d origins have no cursor", g.Session, len(highest))
		}
	}
	for _, id := range acknowledged {
		if !found[id] {
			t.Errorf("acknowledged event %s is gone from the %d live stores", id, len(graphs))
		}
	}
}
