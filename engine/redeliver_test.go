package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// A redelivered message of a channel arrives as it did the first time: with its channel's alias
// and its headers, and not as a direct message. This holds for each redelivery: after a
// restart, if the creature listens under another alias, and if it no longer listens.
func TestARedeliveredMessageComesAsOneOfItsChannel(t *testing.T) {
	onStorages(t, func(t *testing.T, o engine.Options) {
		h := newFakeHost()
		o.Host = h
		fails := true
		h.on("clerk", func(t abi.Turn, kind abi.Kind) error {
			if kind != abi.KindMessage {
				return nil
			}
			if fails {
				return &abi.Error{Code: abi.Trapped, Message: "not yet"}
			}
			read := func(s abi.Source) string {
				b, _ := t.Source(s)
				return string(b)
			}
			var detail struct{ Direct bool }
			if err := json.Unmarshal([]byte(read(abi.SourceDetail)), &detail); err != nil {
				return err
			}
			old, _ := t.StateGet([]byte("heard"))
			return codeErr(t, t.StateSet([]byte("heard"), fmt.Appendf(old, "%s %v %s %v\n",
				read(abi.SourceChannel), detail.Direct, read(abi.SourcePayload), journal.DecodeHeaders([]byte(read(abi.SourceHeaders))))))
		})
		w := newWorld(t, o)
		a := w.add("a", "relay")
		b := w.add("b", "clerk", func(c *deploy.CreatureSpec) { c.Restart.Mode = deploy.RestartNever })
		ch := w.connect(a, b, "news")
		headers := map[string]string{"k": "v"}
		for _, payload := range []string{"one", "two"} {
			if _, err := w.Send(t.Context(), ch, engine.Outgoing{Payload: []byte(payload), Headers: headers}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.SendTo(t.Context(), b, engine.Outgoing{Payload: []byte("three"), Headers: headers}); err != nil {
			t.Fatal(err)
		}
		w.wait()
		again := func() {
			t.Helper()
			letters, err := w.DeadLetters(t.Context(), w.graph(b), b, journal.EventID{}, 0)
			if err != nil || len(letters) != 3 {
				t.Fatalf("%d dead letters, %v; want 3", len(letters), err)
			}
			for _, l := range letters {
				if _, err := w.Redeliver(t.Context(), w.graph(b), l.ID); err != nil {
					t.Fatal(err)
				}
				w.wait()
			}
		}
		again() // they fail again
		w.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen, On: true, Alias: "other"})
		again()
		w.change(topology.SetEdge{Creature: b, Channel: ch, Direction: journal.Listen})
		fails = false
		again()
		want := "news false one map[k:v]\nnews false two map[k:v]\nb true three map[k:v]\n"
		if got := w.state(b, "heard"); got != want {
			t.Errorf("b has heard\n%swant\n%s", got, want)
		}
		_, err := w.SendTo(t.Context(), b, engine.Outgoing{Headers: map[string]string{"terrarium-alias": "news"}})
		if abi.CodeOf(err) != abi.InvalidArgument || !strings.Contains(err.Error(), "terrarium-") {
			t.Errorf("a direct message with the alias of a channel: %v, want invalid_argument", err)
		}
	})
}
