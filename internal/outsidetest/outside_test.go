package outsidetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/ramdisk"
)

// victimDir makes this program a victim, which works in that directory, with the URL and
// the number of requests that follow.
const victimDir = "TERRARIUM_OUTSIDE_VICTIM"

func TestMain(m *testing.M) {
	if order := os.Getenv(victimDir); order != "" {
		if err := victim(context.Background(), order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(ramdisk.Tests(m).Run())
}

// victim sends each of its messages once, waits until all have their results, and writes how
// often each result is in the log.
func victim(ctx context.Context, order string) error {
	var dir, url string
	var n uint64
	if _, err := fmt.Sscan(order, &dir, &url, &n); err != nil {
		return err
	}
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, Durability: terrarium.Normal})
	if err != nil {
		return err
	}
	applied, err := t.Apply(ctx, "testdata/courier.hcl", terrarium.RecipeOptions{Vars: map[string]string{"url": url}})
	if err != nil {
		return err
	}
	tasks := applied.Channels["channel.tasks"]
	for i := uint64(1); i <= n; i++ {
		if _, err := t.Send(ctx, tasks, terrarium.Outgoing{Payload: fmt.Appendf(nil, "task-%04d", i), Producer: "p", Offset: i, Durable: i%8 == 0}); err != nil {
			return err
		}
	}
	if err := t.WaitIdle(ctx); err != nil {
		return err
	}
	results := map[string]int{}
	graph, err := t.FindGraph(ctx, "courier")
	if err != nil {
		return err
	}
	events, err := t.History(ctx, string(graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventResult}, Limit: 1_000_000})
	if err != nil {
		return err
	}
	for i := range events {
		results[string(events[i].Payload)]++
	}
	if err := t.Close(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// counter counts what arrives, by body and key. It answers late, breaks off, or is busy.
type counter struct {
	mu   sync.Mutex
	keys map[string]map[string]int
	rude bool
	came int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	if c.keys[string(body)] == nil {
		c.keys[string(body)] = map[string]int{}
	}
	c.keys[string(body)][r.Header.Get("Idempotency-Key")]++
	c.came++
	n := c.came
	c.mu.Unlock()
	if c.rude {
		switch {
		case n%19 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case n%23 == 0:
			panic(http.ErrAbortHandler)
		}
	}
	fmt.Fprintf(w, "re: %s", body)
}

// TestKilledProcesses kills a process again and again while it makes requests. Each request
// arrives at least once, always with the same key, and its result is handled once.
func TestKilledProcesses(t *testing.T) {
	const requests = 300
	c := &counter{keys: map[string]map[string]int{}, rude: true}
	server := httptest.NewServer(c)
	defer server.Close()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(27, 1))
	kills, out := 0, []byte(nil)
	for out == nil {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), victimDir+"="+fmt.Sprint(dir, " ", server.URL, " ", requests))
		var text, complaint strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &complaint
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kills < 12 {
			c.await(r.IntN(requests/12) + 1)
			_ = cmd.Process.Kill()
			kills++
		}
		if err := cmd.Wait(); err == nil {
			out = []byte(text.String())
		} else if kills >= 12 && complaint.Len() > 0 {
			t.Fatal(complaint.String())
		}
	}
	var results map[string]int
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	repeated := 0
	for i := range requests {
		body := fmt.Sprintf("task-%04d", i+1)
		if n := results["re: "+body]; n != 1 {
			t.Errorf("%s has %d results", body, n)
		}
		if len(c.keys[body]) != 1 {
			t.Errorf("%s arrived with the keys %v", body, c.keys[body])
		}
		for _, n := range c.keys[body] {
			repeated += n - 1
		}
	}
	if len(results) != requests || len(c.keys) != requests {
		t.Errorf("%d results, %d bodies", len(results), len(c.keys))
	}
	t.Logf("%d kills, %d repetitions", kills, repeated)
}

// await waits until so many more requests have arrived, or a while.
func (c *counter) await(more int) {
	begun := time.Now()
	c.mu.Lock()
	from := c.total()
	c.mu.Unlock()
	for time.Since(begun) < 3*time.Second {
		c.mu.Lock()
		n := c.total()
		c.mu.Unlock()
		if n >= from+more {
			return
		}
		time.Sleep(time.Millisecond) // it polls another process
	}
}

func (c *counter) total() (n int) {
	for _, keys := range c.keys {
		for _, k := range keys {
			n += k
		}
	}
	return n
}
