//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/operations"
)

// served is a service in a process of its own.
type served struct {
	*process
	address string
	token   string
	client  *http.Client
}

// startService starts serve on a free port, and waits until it is ready.
func startService(t *testing.T, dir string, environment []string, args ...string) *served {
	t.Helper()
	cmd := exec.Command(program(), append([]string{"serve", "--session", "S", "--listen", "127.0.0.1:0", "--no-login-link"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir()), environment...)
	s := &served{process: launch(t, cmd), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	s.stderr.await(t, "is ready")
	for line := range strings.Lines(s.stderr.String()) {
		var record struct{ Msg, Address string }
		if err := json.Unmarshal([]byte(line), &record); err == nil && record.Msg == "the service is ready" {
			s.address = record.Address
		}
	}
	token, err := os.ReadFile(filepath.Join(dir, "S.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(token))
	return s
}

// call sends an operation with the token, and returns the status and the answer.
func (s *served) call(ctx context.Context, operation, args string) (int, string, error) {
	return post(ctx, s.client, s.address, s.token, operation, args)
}

// post sends an operation with a token, unless it is empty.
func post(ctx context.Context, client *http.Client, address, token, operation, args string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/v1/"+operation, strings.NewReader(args))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// manager is the service manager of a test: it gets what a service says about its state.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

// newManager returns a manager, and the path of its socket, which is short enough for the
// address of a socket.
func newManager(t *testing.T) (*manager, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		os.RemoveAll(dir)
	})
	return &manager{t, conn}, path
}

// next returns the assignments of the next message.
func (m *manager) next() map[string]string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatal(err)
	}
	assignments := map[string]string{}
	for line := range strings.SplitSeq(string(buf[:n]), "\n") {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			m.t.Fatalf("the message %q is not made of assignments", buf[:n])
		}
		assignments[name] = value
	}
	return assignments
}

// expect fails if the next message, apart from those for the watchdog, does not set name to 1.
func (m *manager) expect(name string) map[string]string {
	m.t.Helper()
	for range 10_000 {
		switch got := m.next(); {
		case got[name] == "1":
			return got
		case got["WATCHDOG"] != "1":
			m.t.Fatalf("the service says %v, want %s=1", got, name)
		}
	}
	m.t.Fatalf("the service never says %s=1", name)
	return nil
}

const pond = `
channel "lines" {}
creature "echo" {
  module = "builtin:echo"
  listen = [channel.lines]
}
`

// A service manager is notified when the service is ready, reloads and stops. SIGHUP applies
// an edited recipe, and leaves everything as it is if the recipe is not valid.
func TestServeReloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "pond.hcl", pond)
	m, path := newManager(t)
	s := startService(t, dir, []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=20000"}, "pond.hcl")
	if got := m.expect("READY"); got["STATUS"] != "Serving on "+s.address {
		t.Errorf("the state is %v, and the address %s", got, s.address)
	}
	for _, c := range []struct {
		recipe, log string
		creatures   string // their names
	}{
		{pond + `creature "census" { module = "builtin:tally" }`, `"the recipe was applied","created":["creature.census"]`, "census echo"},
		{pond + `creature "broken" {}`, "the former recipes remain", "census echo"},
		{pond, `"the recipe was applied","created":null,"changed":null,"removed":1`, "echo"},
	} {
		before := monotonic()
		write(t, dir, "pond.hcl", c.recipe)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		since, err := strconv.ParseInt(m.expect("RELOADING")["MONOTONIC_USEC"], 10, 64)
		if at := time.Duration(since) * time.Microsecond; err != nil || runtime.GOOS == "linux" && (at < before.Truncate(time.Microsecond) || at > monotonic()) {
			t.Errorf("it reloads since %d, %v; the signal was sent at %d", since, err, before.Microseconds())
		}
		m.expect("READY")
		s.stderr.await(t, c.log)
		if names := s.creatures(); names != c.creatures {
			t.Errorf("the creatures are %s, want %s", names, c.creatures)
		}
		if strings.Contains(c.creatures, "census") {
			s.expectVia("census", "reload")
		}
	}
	m.expect("WATCHDOG")
	s.expectVia("echo", "start")
	former := s.token
	s.token = "another-token-of-this-test"
	write(t, dir, "S.token", s.token+"\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.expect("RELOADING")
	m.expect("READY")
	if s.creatures() != "echo" {
		t.Error("the new token is not known")
	}
	if status, _, err := post(t.Context(), s.client, s.address, former, "status", "{}"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("the former token: %d, %v", status, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.expect("STOPPING")
	if code := s.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// expectVia fails the test unless a creature was started by recipes that were applied that way.
func (s *served) expectVia(creature, via string) {
	s.t.Helper()
	status, text, err := s.call(s.t.Context(), "history", fmt.Sprintf(`{"graph":%q,"kinds":["creature_started"]}`, creature))
	if err != nil || status != http.StatusOK || strings.Count(text, `"call":"apply"`) != 1 || !strings.Contains(text, `"via":"`+via+`"`) {
		s.t.Errorf("%d, %v: %s does not name %s", status, err, text, via)
	}
}

// creatures returns the names of the creatures, sorted.
func (s *served) creatures() string {
	s.t.Helper()
	status, text, err := s.call(s.t.Context(), "status", "{}")
	var result struct {
		Graphs []struct{ Creatures []struct{ Name string } }
	}
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &result) != nil {
		s.t.Fatal(status, text, err)
	}
	var names []string
	for _, g := range result.Graphs {
		for _, c := range g.Creatures {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestKillServe kills a service while it takes messages and a subscriber reads its events,
// and starts it again. The subscriber, which reconnects with the cursor of the last event
// that it has read, gets every event of the log once and in order. Only an event that was
// shown and not yet acknowledged may vanish with the process; what happens in its place is
// another event, which the subscriber gets too.
func TestKillServe(t *testing.T) {
	t.Parallel()
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	write(t, dir, "pond.hcl", pond)
	sub := &subscriber{t: t}
	for range kills(t, 3) {
		s := startService(t, dir, nil, "pond.hcl")
		acked := make(chan int, 1)
		go func() { // until the service is killed
			n := sub.acked
			for s.send(n + 1) {
				n++
			}
			acked <- n
		}()
		until := sub.acked + 1 + random.IntN(60)
		sub.read(s, func() bool { return len(sub.ids) < until })
		if code := s.signal(os.Kill); code != -1 {
			t.Fatalf("it was to be killed, and ended with %d\n%s", code, s.stderr)
		}
		sub.acked = <-acked
	}
	s := startService(t, dir, nil, "pond.hcl")
	total := sub.acked + 2 // the first of these may have been shown already
	if !s.send(total-1) || !s.send(total) {
		t.Fatalf("a message is refused\n%s", s.stderr)
	}
	sub.read(s, func() bool { return len(sub.ids) < total })
	if log := s.messages(); !slices.Equal(log, sub.ids) {
		t.Errorf("the subscriber got the events %v, and the log has %v", sub.ids, log)
	}
	if code := s.signal(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
	t.Logf("%d messages, of which %d were shown and then removed by a kill", total, sub.vanished)
}

// messages returns the ids of the messages in the log.
func (s *served) messages() (ids []string) {
	s.t.Helper()
	status, text, err := s.call(s.t.Context(), "history", `{"graph":"echo","kinds":["channel_message"],"limit":10000}`)
	var result struct{ Events []operations.EventRecord }
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &result) != nil {
		s.t.Fatal(status, text, err)
	}
	for i := range result.Events {
		ids = append(ids, result.Events[i].ID)
	}
	return ids
}

// send sends a message, which has its number as the payload, and reports whether it was
// acknowledged.
func (s *served) send(n int) bool {
	args := fmt.Sprintf(`{"channel":"lines","payload":"%d","producer":"test","offset":%d,"durable":true}`, n, n)
	status, _, err := s.call(context.Background(), "send", args)
	return err == nil && status == http.StatusOK
}

// subscriber reads the messages of a service. The payload of a message is its number.
type subscriber struct {
	t        *testing.T
	acked    int      // how many messages had been acknowledged before the last kill
	ids      []string // events by the number of their message, from 1, without those that have vanished
	cursor   string
	vanished int
}

// got takes an event. Its message is the next one. Only the first event of a stream may go
// back, because a kill has removed events that were never acknowledged.
func (x *subscriber) got(ev *operations.EventRecord, first bool) {
	x.t.Helper()
	number := int(ev.ChannelSeq)
	back := first && number > x.acked && number <= len(x.ids)
	if number != len(x.ids)+1 && !back || slices.Contains(x.ids, ev.ID) || ev.Payload != strconv.Itoa(number) {
		x.t.Fatalf("event %d, of which %d were acknowledged, is %+v", len(x.ids)+1, x.acked, ev)
	}
	x.vanished += len(x.ids) - (number - 1)
	x.ids = append(x.ids[:number-1], ev.ID)
}

// read reads messages as long as more returns true.
func (x *subscriber) read(s *served, more func() bool) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), deadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/api/v1/events?after=start&payload=1&kinds=channel_message", nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if x.cursor != "" {
		r.Header.Set("Last-Event-ID", x.cursor)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	id, first := "", true
	for lines := bufio.NewScanner(answer.Body); more(); {
		if !lines.Scan() {
			x.t.Fatalf("the stream ended after message %d: %d, %v\n%s", len(x.ids), answer.StatusCode, lines.Err(), s.stderr)
		}
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			var ev operations.EventRecord
			if err := json.Unmarshal([]byte(value), &ev); err != nil {
				x.t.Fatalf("%s: %v", value, err)
			}
			x.got(&ev, first)
			x.cursor, first = id, false
		}
	}
}
