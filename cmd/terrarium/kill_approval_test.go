package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// killedHand has a policy that asks about every third message of a creature.
const killedHand = `
channel "orders" {}
channel "done" {}

creature "hand" {
  module = "builtin:relay"
  listen = [channel.orders]
  send   = [channel.done]
}

policy "send" "careful" {
  channel = channel.done
  run     = "(event) => { if (Number(event.payload) % 3 === 0) return ask('a third') }"
}
`

// TestKillApprovals kills exec while the turns of a creature wait for approval, are
// approved or denied, and run again. After every kill the messages that the creature has
// sent are those that it should have, in order: none of those that were denied, each of
// the others once, and none before its approval. An answer that was acknowledged is not
// lost, and the session replays.
func TestKillApprovals(t *testing.T) {
	t.Parallel()
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	x := &asker{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), decided: map[string]bool{}}
	if err := os.WriteFile(filepath.Join(x.dir, "hand.hcl"), []byte(killedHand), 0o600); err != nil {
		t.Fatal(err)
	}
	for range kills(t, 3) {
		x.life(4 + x.random.IntN(40))
		x.check()
	}
	x.finish()
	t.Logf("%d messages, %d answers", x.sent, len(x.decided))
}

// asker records what the lives of one session were asked, and what they answered.
type asker struct {
	t       *testing.T
	dir     string
	random  *rand.Rand
	sent    int             // the last message that may be in the log
	acked   int             // the last that certainly is
	decided map[string]bool // whether it was approved, by the id of the approval; acknowledged
}

// life sends messages and answers questions, and then kills the process.
func (x *asker) life(steps int) {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S", "--recipe", "hand.hcl")
	for range steps {
		if x.random.IntN(2) == 0 {
			x.decide(p)
			continue
		}
		x.sent++
		p.ask(fmt.Sprintf(`{"op":"send","channel":"orders","payload":"%d","producer":"test","offset":%d,"durable":true}`, x.sent, x.sent))
		x.acked = x.sent
	}
	if code := p.signal(os.Kill); code != -1 {
		x.t.Fatalf("it was to be killed, and ended with %d\n%s", code, p.stderr)
	}
}

// decide answers what waits, and reports whether something did.
func (x *asker) decide(p *process) bool {
	x.t.Helper()
	var list operations.ApprovalsResult
	if err := json.Unmarshal(p.ask(`{"op":"approvals"}`), &list); err != nil {
		x.t.Fatal(err)
	}
	for _, a := range list.Approvals {
		op := "deny"
		if approve := x.random.IntN(2) == 0; approve {
			op = "approve"
		}
		p.ask(fmt.Sprintf(`{"op":"%s","approval":"%s"}`, op, a.ID))
		x.decided[a.ID] = op == "approve"
	}
	return len(list.Approvals) > 0
}

// check reads the session that a killed process has left.
func (x *asker) check() {
	x.t.Helper()
	verifyAll(x.t, filepath.Join(x.dir, "S"))
	v, err := sqlitestore.OpenReadOnly(x.t.Context(), filepath.Join(x.dir, "S"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer v.Close()
	graphs, problems, err := v.Live(x.t.Context())
	if err != nil || len(problems) > 0 || len(graphs) != 1 {
		x.t.Fatal(graphs, problems, err)
	}
	events, err := v.History(x.t.Context(), graphs[0].Session, journal.HistoryQuery{Limit: 1 << 30})
	if err != nil {
		x.t.Fatal(err)
	}
	channels := map[journal.ChannelID]string{}
	for _, ch := range graphs[0].Channels {
		channels[ch.ID] = ch.Name
	}
	x.checkLog(events, channels)
}

func (x *asker) checkLog(events []journal.Event, channels map[journal.ChannelID]string) {
	x.t.Helper()
	orders, next := 0, 1               // the next message that the creature sends
	asked := map[string]int{}          // the message, by the id of the approval
	answers := map[int]bool{}          // whether it was approved, by message
	inLog := map[string]bool{}         // whether it was approved, by the id of the approval
	inbox := map[journal.EventID]int{} // the message, by the id of the event
	for i := range events {
		ev := &events[i]
		switch name := channels[ev.Channel]; {
		case ev.Kind == journal.EventChannelMessage && name == "orders":
			orders++
			inbox[ev.ID] = orders
		case ev.Kind == journal.EventApprovalAsked:
			asked[ev.ID.String()] = inbox[ev.Cause]
		case ev.Kind == journal.EventApprovalDecided:
			var p journal.ApprovalDecidedPayload
			if err := json.Unmarshal(ev.Payload, &p); err != nil || p.Decision == journal.Withdrawn {
				x.t.Errorf("%s, %v", ev.Payload, err)
			}
			id := p.Approval.String()
			if _, twice := answers[asked[id]]; twice {
				x.t.Errorf("message %d is decided twice", asked[id])
			}
			inLog[id] = p.Decision == journal.Approved
			answers[asked[id]] = inLog[id]
		case ev.Kind == journal.EventChannelMessage && name == "done":
			for approved, known := answers[next]; next%3 == 0 && known && !approved; approved, known = answers[next] {
				next++ // it was denied
			}
			if string(ev.Payload) != fmt.Sprint(next) || next%3 == 0 && !answers[next] {
				x.t.Errorf("it has sent %s, want %d; the answers are %v", ev.Payload, next, answers)
			}
			next++
		case ev.Kind == journal.EventDeadLetter, ev.Kind == journal.EventTurnFailed:
			x.t.Errorf("an event %s: %s", ev.Kind, ev.Payload)
		}
	}
	for id, approved := range x.decided {
		if got, found := inLog[id]; !found || got != approved {
			x.t.Errorf("the answer %v to %s was acknowledged, and the log has %v, %v", approved, id, got, found)
		}
	}
	if orders < x.acked {
		x.t.Errorf("%d messages, and %d were acknowledged", orders, x.acked)
	}
	x.sent = orders
}

// finish answers everything that is left, and replays all turns.
func (x *asker) finish() {
	x.t.Helper()
	p := start(x.t, x.dir, "exec", "--session", "S", "--recipe", "hand.hcl")
	for {
		p.ask(`{"op":"wait_idle"}`)
		if !x.decide(p) {
			break
		}
	}
	p.in.Close()
	if code := p.wait(); code != exitOK {
		x.t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	x.check()
	once(x.t, x.dir, "", "replay", "S", "--all") // which fails if a turn differs
}
