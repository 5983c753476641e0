package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A subscriber that requests one kind of delivery gets it, even if the graph has no store
// and nothing else is observed.
func TestObserversGetEveryKindOfDelivery(t *testing.T) {
	for _, kind := range []journal.EventKind{
		journal.EventChannelMessage, journal.EventDirectMessage, journal.EventRequest, journal.EventResult, journal.EventWiredOutput, journal.EventTimer,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			h := onWires(newFakeHost())
			h.on("lead", onMessage(func(t abi.Turn) error {
				t.Send(abi.AllChannels, []byte("news"), nil)
				t.SendTo([]byte("near"), []byte("hello"))
				t.Request([]byte("near"), []byte("ping"), time.Hour, 7)
				t.Output([]byte("out"))
				return codeErr(t, t.TimerSet([]byte("now"), 0, 0, nil))
			}))
			w := newWorld(t, engine.Options{Host: h})
			lead, near := w.add("lead", "lead"), w.add("near", "catch")
			w.connect(lead, near, "c")
			w.wire(journal.OutputWire{From: lead, To: near})
			w.wait()
			sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{kind}}, 0)
			defer sub.Close()
			if _, err := w.SendTo(t.Context(), lead, engine.Outgoing{}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				ob, err := sub.Next(ctx)
				if err != nil {
					t.Fatalf("no %s is observed: %v", kind, err)
				}
				if ob.Event.Kind != kind {
					t.Fatalf("the subscriber got a %s, which it has not requested", ob.Event.Kind)
				}
				if kind != journal.EventDirectMessage || string(ob.Event.Payload) == "hello" {
					return
				}
			}
		})
	}
}
