package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestMarks proves that offsets without messages are kept over a restart, and that no policy
// judges them.
func TestMarks(t *testing.T) {
	s := newSaved(t, engine.Options{})
	judged := 0
	d := gateway(&judge{send: func(*deploy.SendEvent) deploy.SendDecision {
		judged++
		return deploy.SendDecision{}
	}})
	a := s.apply(d)
	in, sink := a.Channels["channel.in"], a.Creatures["creature.sink"]
	send := func(out engine.Outgoing, duplicate bool) engine.Sent {
		t.Helper()
		out.Producer = "p"
		sent, err := s.Send(t.Context(), in, out)
		if err != nil || sent.Duplicate != duplicate {
			t.Fatalf("%+v: %+v, %v", out, sent, err)
		}
		return sent
	}
	send(engine.Outgoing{Offset: 5, Mark: true}, false)
	s.reopen()
	if p, err := s.Producers(in); err != nil || p["p"] != 5 {
		t.Errorf("the producers are %v, %v", p, err)
	}
	send(engine.Outgoing{Offset: 5, Mark: true}, true)
	send(engine.Outgoing{Offset: 4, Payload: []byte("old")}, true)
	if judged != 0 {
		t.Errorf("policies judged %d marks", judged)
	}
	if sent := send(engine.Outgoing{Offset: 6, Payload: []byte("new")}, false); sent.Seq != 1 {
		t.Errorf("the first message has the number %d, want 1", sent.Seq)
	}
	s.wait()
	if m := s.events(sink, journal.EventChannelMessage); len(m) != 1 || string(m[0].Payload) != "new" {
		t.Errorf("the messages in the log are %v, want one", m)
	}
}
