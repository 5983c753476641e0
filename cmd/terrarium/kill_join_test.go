package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

// TestKillJoin sends parts of groups through the creatures join and select, with a store. While
// groups are half complete, it kills the process at random moments, and merges the graph with
// another one and splits it again. In the end each group was joined once, with its parts in the
// order in which they came, and select has passed the groups on in turn.
func TestKillJoin(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	x := &joining{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0))}
	x.begin()
	// Groups overlap: parts of one come between parts of the next ones.
	for group := range groupsJoined {
		for part := range partsOfGroup {
			x.parts = append(x.parts, fmt.Sprintf("g%d part %d", group, part))
		}
	}
	for i := range x.parts {
		k := min(len(x.parts)-1, i+x.random.IntN(4*partsOfGroup))
		x.parts[i], x.parts[k] = x.parts[k], x.parts[i]
	}
	most := kills(t, 6)
	for range most {
		x.life(min(len(x.parts)-x.acked, 1+x.random.IntN(2*len(x.parts)/most)), false)
	}
	x.life(len(x.parts)-x.acked, true)
	x.check()
}

const (
	groupsJoined = 30
	partsOfGroup = 3
)

// joining is a session with join and select, and with a neighbour in another graph.
type joining struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	parts  []string // in the order in which they are sent
	acked  int      // parts that are durable
	linked bool     // with the neighbour, as far as is known
	cuts   int      // merges and splits
}

func (x *joining) begin() {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S")
	p.ask(fmt.Sprintf(`{"op":"add_creature","name":"join","module":"builtin:join","config":{"key":"field:1","count":%d,"max_groups":64,"max_bytes":10000}}`, partsOfGroup))
	p.ask(`{"op":"add_creature","name":"select","module":"builtin:select","config":{"to":["left","right"]}}`)
	p.ask(`{"op":"add_channel","graph":"join","name":"parts"}`)
	p.ask(`{"op":"set_listen","creature":"join","channel":"parts","on":true}`)
	p.ask(`{"op":"connect","from":"join","to":"select","channel":"joined"}`)
	for _, name := range []string{"left", "right"} {
		p.ask(`{"op":"add_channel","graph":"select","name":"` + name + `"}`)
		p.ask(`{"op":"set_send","creature":"select","channel":"` + name + `","on":true}`)
	}
	p.ask(`{"op":"add_creature","name":"neighbour","module":"builtin:echo"}`)
	p.in.Close()
	if code := p.wait(); code != exitOK {
		x.t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
}

// life sends parts until so many more are durable, with merges and splits between them. It does
// not wait for answers before it sends more. Then it kills the process or, the last time,
// waits until everything is done.
func (x *joining) life(more int, last bool) {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S")
	x.look(p)
	var requests []string
	asks := []func(){}
	sent := x.acked
	for want := x.acked + more; sent < want || !last && sent < min(want+10, len(x.parts)); {
		if x.random.IntN(6) == 0 {
			requests = append(requests, x.cut(len(asks)))
			asks = append(asks, func() { x.cuts++ })
			continue
		}
		sent++
		n := sent
		requests = append(requests, fmt.Sprintf(`{"id":%d,"op":"send","channel":"parts","payload":%q,"producer":"test","offset":%d,"durable":true}`, len(asks), x.parts[n-1], n))
		asks = append(asks, func() { x.acked = max(x.acked, n) })
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for _, line := range requests {
			if _, err := io.WriteString(p.in, line+"\n"); err != nil {
				return // it has been killed
			}
		}
	})
	for want, answers := x.acked+more, 0; x.acked < want || last && answers < len(asks); answers++ {
		var answer struct {
			ID    int
			OK    bool
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(p.line()), &answer); err != nil || !answer.OK {
			x.t.Fatalf("%s: %v, %s", requests[answer.ID], err, answer.Error)
		}
		asks[answer.ID]()
	}
	if !last {
		if err := p.cmd.Process.Kill(); err != nil {
			x.t.Fatal(err)
		}
		p.wait()
		writing.Wait()
		return
	}
	writing.Wait()
	p.ask(`{"op":"wait_idle"}`)
	p.in.Close()
	if code := p.wait(); code != exitOK {
		x.t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
}

// look determines whether the graphs are merged.
func (x *joining) look(p *process) {
	x.t.Helper()
	var status struct{ Graphs []json.RawMessage }
	if err := json.Unmarshal(p.ask(`{"op":"status"}`), &status); err != nil {
		x.t.Fatal(err)
	}
	x.linked = len(status.Graphs) == 1
}

// cut merges the graphs, or splits them again. Either end of the pipeline may be the one that
// gets the neighbour.
func (x *joining) cut(id int) string {
	x.linked = !x.linked
	if !x.linked {
		return fmt.Sprintf(`{"id":%d,"op":"remove_channel","channel":"link"}`, id)
	}
	to := []string{"join", "select"}[x.random.IntN(2)]
	return fmt.Sprintf(`{"id":%d,"op":"connect","from":"neighbour","to":%q,"channel":"link"}`, id, to)
}

// payloads are the messages on a channel.
func (x *joining) payloads(channel string) (out []string) {
	x.t.Helper()
	for line := range strings.Lines(once(x.t, x.dir, "", "events", "S", "--kind", "channel_message", "--channel", channel, "-o", "json")) {
		var ev struct{ Payload string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			x.t.Fatal(err)
		}
		out = append(out, ev.Payload)
	}
	return out
}

func (x *joining) check() {
	x.t.Helper()
	if x.cuts < 2 {
		x.t.Errorf("there were only %d merges and splits", x.cuts)
	}
	want := map[string]string{}
	for _, part := range x.parts {
		group, _, _ := strings.Cut(part, " ")
		want[group] = strings.TrimPrefix(want[group]+"\n"+part, "\n")
	}
	joined := x.payloads("joined")
	got := map[string]string{}
	for _, payload := range joined {
		group, _, _ := strings.Cut(payload, " ")
		if got[group] != "" {
			x.t.Errorf("the group %s was joined twice", group)
		}
		got[group] = payload
	}
	if !maps.Equal(got, want) {
		x.t.Errorf("joined:\n%q\nwant\n%q", got, want)
	}
	var turns [2][]string
	for i, payload := range joined {
		turns[i%2] = append(turns[i%2], payload)
	}
	for i, channel := range []string{"left", "right"} {
		if passed := x.payloads(channel); !slices.Equal(passed, turns[i]) {
			x.t.Errorf("on %s:\n%q\nwant\n%q", channel, passed, turns[i])
		}
	}
}
