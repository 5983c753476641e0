package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// word is the verdict of a policy of that name.
func word(policy, reason string) deploy.Verdict {
	return deploy.Verdict{Policy: policy, Reason: reason, Where: "team.hcl:7"}
}

// gateway is a deployment with one channel for messages from outside; sink listens on it.
func gateway(j deploy.Policy) *deploy.Deployment {
	sink := spec("sink", "count")
	sink.Address, sink.Listen = "creature.sink", []deploy.WireSpec{{Channel: "channel.in"}}
	return &deploy.Deployment{
		Name: "team", Policy: j, Creatures: []deploy.CreatureSpec{sink},
		Channels: []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}},
	}
}

// said returns the verdicts of policies in the log of a creature's graph: effect, policy,
// reason.
func (w *world) said(c journal.CreatureID) []string {
	w.t.Helper()
	var out []string
	for _, ev := range w.events(c, journal.EventPolicyDenied) {
		p := policyPayload(w.t, &ev)
		out = append(out, string(p.Effect)+" "+p.Policy+" "+p.Reason)
	}
	return out
}

// policyPayload is the payload of a policy_denied event, which its schema allows.
func policyPayload(t testing.TB, ev *journal.Event) (p journal.PolicyPayload) {
	t.Helper()
	if err := checkPayload(ev); err != nil {
		t.Errorf("the payload %s: %v", ev.Payload, err)
	}
	if err := json.Unmarshal(ev.Payload, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// If a policy changes a message from outside, the original is kept once, beside the resulting
// message: as a hash or, if the policy requests it, in full.
func TestWhatPoliciesChangeFromOutsideIsKept(t *testing.T) {
	headers := map[string]string{"from": "eve"}
	for _, original := range []bool{false, true} {
		s := newSaved(t, engine.Options{})
		a := s.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
			return deploy.SendDecision{
				Mutated: true, Payload: []byte("clean"), Original: original,
				ChangedBy: []deploy.Verdict{word("wash", ""), word("rinse", "why not")},
			}
		}}))
		in, sink := a.Channels["channel.in"], a.Creatures["creature.sink"]
		sent, err := s.Send(t.Context(), in, engine.Outgoing{Payload: []byte("dirty"), Headers: headers, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		s.reopen()
		if m := s.events(sink, journal.EventChannelMessage); len(m) != 1 || string(m[0].Payload) != "clean" || m[0].ID != sent.Message {
			t.Fatalf("the messages in the log are %v, want one", m)
		}
		events := s.events(sink, journal.EventPolicyDenied)
		if got, want := s.said(sink), []string{"changed wash ", "changed rinse why not"}; !slices.Equal(got, want) {
			t.Fatalf("the policies said %q, want %q", got, want)
		}
		for _, ev := range events {
			if ev.Channel != in || ev.Seq != sent.Seq || ev.Creature != "" {
				t.Errorf("the event is about %s#%d of %q, want %s#%d", ev.Channel, ev.Seq, ev.Creature, in, sent.Seq)
			}
		}
		first, second := policyPayload(t, &events[0]).Original, policyPayload(t, &events[1]).Original
		if first == nil || second != nil {
			t.Fatalf("the originals are %v and %v, want one", first, second)
		}
		encoded, _ := journal.EncodeHeaders(headers)
		switch {
		case original && (string(first.Payload) != "dirty" || string(first.Headers) != string(encoded) || first.Hash != ""):
			t.Errorf("the event has %+v, want the original", first)
		case !original && (first.Hash != journal.HashMessage([]byte("dirty"), headers) || first.Payload != nil || first.Headers != nil):
			t.Errorf("the event has %+v, want the hash of the original", first)
		}
	}
}

// Warnings and audits about a message from outside are in the log whether it is accepted
// or not. If it was refused, the error has every objection.
func TestWordsOnWhatIsRefusedFromOutsideAreKept(t *testing.T) {
	words := deploy.Words{Warnings: []deploy.Verdict{word("mind", "odd")}, Audits: []deploy.Verdict{word("try", "no")}}
	denied, dropped := words, word("sieve", "not needed")
	denied.Denials = []deploy.Verdict{word("cage", "told to"), word("fence", "me too")}
	for name, c := range map[string]struct {
		decision deploy.SendDecision
		want     string // of the error; empty: it is accepted
	}{
		"taken in": {deploy.SendDecision{Words: words}, ""},
		"denied":   {deploy.SendDecision{Words: denied}, "the message on in was denied: policy cage (team.hcl:7): told to; policy fence (team.hcl:7): me too"},
		"dropped":  {deploy.SendDecision{Words: words, Dropped: &dropped}, "the message on in was dropped: policy sieve (team.hcl:7): not needed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			a := s.apply(gateway(&judge{send: func(ev *deploy.SendEvent) deploy.SendDecision {
				ev.Memory.Remember("mind", []byte(`1`))
				return c.decision
			}}))
			sink := a.Creatures["creature.sink"]
			_, err := s.Send(t.Context(), a.Channels["channel.in"], engine.Outgoing{Payload: []byte("x"), Durable: true})
			if (err == nil) != (c.want == "") || err != nil && (abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Send returns %v, want %s", err, c.want)
			}
			s.reopen()
			if got, want := s.said(sink), []string{"audit try no", "warning mind odd"}; !slices.Equal(got, want) {
				t.Errorf("the log has the verdicts %q, want %q", got, want)
			}
			if n := len(s.events(sink, journal.EventChannelMessage)); (n == 1) != (c.want == "") {
				t.Errorf("%d messages were taken in", n)
			}
		})
	}
}

// Without a store, subscribers nevertheless get the verdicts.
func TestWordsOnWhatIsRefusedAreSeenWithoutAStore(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
		d := deploy.SendDecision{Words: denial("told to")}
		d.Warnings = []deploy.Verdict{word("mind", "odd")}
		return d
	}}))
	seen := w.watch(journal.EventPolicyDenied)
	if _, err := w.Send(t.Context(), a.Channels["channel.in"], engine.Outgoing{Payload: []byte("x")}); abi.CodeOf(err) != abi.Denied {
		t.Fatalf("Send returns %v", err)
	}
	if got := seen(); len(got) != 1 || policyPayload(t, &got[0]).Effect != "warning" {
		t.Errorf("the subscriber got %v, want only the warning", got)
	}
}

// The cause of the error lists, for programs, the policies that refused the message.
func TestARefusalTellsByWhom(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
		return deploy.SendDecision{Words: deploy.Words{Denials: []deploy.Verdict{word("cage", "told to"), word("fence", "me too")}}}
	}}))
	in := a.Channels["channel.in"]
	_, err := w.Send(t.Context(), in, engine.Outgoing{})
	var e *abi.Error
	var by *deploy.RefusedMessage
	if !errors.As(err, &e) || !errors.As(err, &by) || by.Effect != "denied" || len(by.By) != 2 || by.By[1].Policy != "fence" {
		t.Fatalf("%v has the cause %+v", err, by)
	}
	if e.IDs["policy"] != "cage" || e.IDs["where"] != "team.hcl:7" || e.IDs["channel"] != string(in) || e.Op != "send" {
		t.Errorf("the error is %+v", e)
	}
}

// A message that a producer repeats is left out before any policy judges it, even if the
// policies would deny it by then.
func TestADuplicateIsNotJudged(t *testing.T) {
	s := newSaved(t, engine.Options{})
	asked := 0
	a := s.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
		if asked++; asked > 1 {
			return deploy.SendDecision{Words: denial("one is enough")}
		}
		return deploy.SendDecision{}
	}}))
	out := engine.Outgoing{Payload: []byte("x"), Producer: "p", Offset: 1}
	for i := range 2 {
		sent, err := s.Send(t.Context(), a.Channels["channel.in"], out)
		if err != nil || sent.Duplicate != (i == 1) {
			t.Errorf("attempt %d: %+v, %v", i+1, sent, err)
		}
	}
	if asked != 1 {
		t.Errorf("the policy was asked %d times, want once", asked)
	}
}

// A message whose caller stops waiting while it is judged has neither been denied nor
// allowed, whatever the policies decide.
func TestACallerThatGivesUpIsNotJudged(t *testing.T) {
	for name, decision := range map[string]deploy.SendDecision{"deny": {Words: denial("the caller gave up")}, "allow": {}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := newWorld(t, engine.Options{})
			a := w.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
				cancel()
				return decision
			}}))
			_, err := w.Send(ctx, a.Channels["channel.in"], engine.Outgoing{Payload: []byte("x")})
			if abi.CodeOf(err) != abi.Unavailable || !errors.Is(err, context.Canceled) {
				t.Errorf("Send returns %v, want unavailable", err)
			}
			w.wait()
			if got := w.state(a.Creatures["creature.sink"], "n"); got != "" {
				t.Errorf("%s messages arrived, want none", got)
			}
		})
	}
}

// Policies that judge everything judge neither direct messages nor requests: an inbox is
// not a channel of a deployment.
func TestInboxesAreNotJudged(t *testing.T) {
	w := newWorld(t, engine.Options{})
	a := w.apply(gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
		return deploy.SendDecision{Words: denial("told to")}
	}}))
	if _, err := w.SendTo(t.Context(), a.Creatures["creature.sink"], engine.Outgoing{Payload: []byte("x")}); err != nil {
		t.Errorf("SendTo: %v", err)
	}
}
