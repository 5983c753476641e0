package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// interrupted is a policy that is asked about a creature's message while the engine stops
// waiting for turns, and then denies, like a policy that has failed. Its memory changes
// with each message from outside.
type interrupted struct {
	judge
	first, remembered chan struct{} // if set, the first question is answered once the policy remembers something else
	last              chan struct{} // closed at the last question
}

func (p *interrupted) Send(ctx context.Context, ev *deploy.SendEvent) deploy.SendDecision {
	if ev.SenderName == "" {
		ev.Memory.Remember("last", []byte(`1`))
		return deploy.SendDecision{}
	}
	if ev.Memory.Recall("last") == nil && p.first != nil {
		close(p.first)
		<-p.remembered
		return deploy.SendDecision{}
	}
	close(p.last)
	<-ctx.Done()
	return deploy.SendDecision{Words: denial("it was interrupted")}
}

func (p *interrupted) JudgesSend(channel string) bool { return channel == "channel.out" }

// gatewayBehind is gateway with a creature between in and sink, which sends on out.
func gatewayBehind(p deploy.Policy) *deploy.Deployment {
	d := gateway(p)
	d.Channels = append(d.Channels, deploy.ChannelSpec{Address: "channel.out", Name: "out"})
	relay := spec("relay", "relay")
	relay.Address, relay.Listen, relay.Send = "creature.relay", d.Creatures[0].Listen, []deploy.WireSpec{{Channel: "channel.out"}}
	d.Creatures[0].Listen = relay.Send
	d.Creatures = append(d.Creatures, relay)
	return d
}

// If the engine closes while policies judge a turn, the turn is put back, even if the policies
// were asked a second time. Its message is not lost.
func TestATurnWhosePoliciesAreInterruptedIsPutBack(t *testing.T) {
	for name, again := range map[string]bool{"asked once": false, "asked again": true} {
		t.Run(name, func(t *testing.T) {
			s := newSaved(t, engine.Options{})
			p, want := &interrupted{last: make(chan struct{})}, "1"
			if again {
				p.first, p.remembered, want = make(chan struct{}), make(chan struct{}), "2"
			}
			a := s.apply(gatewayBehind(p))
			s.send(a.Channels["channel.in"], "x")
			if again {
				<-p.first
				s.send(a.Channels["channel.out"], "y")
				close(p.remembered)
			}
			<-p.last
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := s.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Close: %v", err)
			}
			s.shut()
			s.open()
			a = s.apply(gatewayBehind(nil))
			s.wait()
			sink := a.Creatures["creature.sink"]
			if got := s.state(sink, "n"); got != want {
				t.Errorf("%q messages came through, want %s", got, want)
			}
			if got := s.said(sink); len(got) != 0 {
				t.Errorf("the log has the verdicts %q, want none", got)
			}
		})
	}
}
