package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// triage records examples/log-triage with its sample input, several times over.
func triage(t testing.TB, times int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := tr.Apply(t.Context(), "../examples/log-triage", terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile("../examples/log-triage/sample.log")
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		for line := range bytes.Lines(sample) {
			if _, err := tr.Send(t.Context(), applied.Channels["channel.lines"], terrarium.Outgoing{Payload: bytes.TrimSpace(line)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLogTriage replays the example: on kept and on fresh instances nothing differs. With
// a relay in place of the gates, the first line that a gate held back differs.
func TestLogTriage(t *testing.T) {
	dir := triage(t, 1)
	for _, fresh := range []bool{false, true} {
		r, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{Fresh: fresh})
		if err != nil {
			t.Fatal(err)
		}
		same(t, r, 3*470)
	}
	relay, err := plugins.Get("echo")
	if err != nil {
		t.Fatal(err)
	}
	r, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{Creatures: []string{"triage.*"}, Module: relay})
	if err != nil {
		t.Fatal(err)
	}
	want := firstSilent(t, dir)
	if r.Differ != 1 || r.Differences[0].Turn != want {
		t.Fatalf("the report is %+v, want turn %s to differ", r, want)
	}
	d := &r.Differences[0]
	if len(d.Recorded) != 0 || len(d.Replayed) != 1 || d.Replayed[0].Target != "alerts" || !bytes.Equal(d.Replayed[0].Payload, d.Delivery.Payload) {
		t.Errorf("the difference is %+v", d)
	}
}

// firstSilent finds the first turn in which a gate heard a message and sent nothing.
func firstSilent(t *testing.T, dir string) journal.EventID {
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	list, err := v.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gates := map[journal.CreatureID]bool{}
	events, err := v.History(t.Context(), list[0].Session, journal.HistoryQuery{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		var started journal.CreatureStartedPayload
		if ev.Kind == journal.EventCreatureStarted && json.Unmarshal(ev.Payload, &started) == nil && bytes.HasPrefix([]byte(started.Name), []byte("triage.")) {
			gates[ev.Creature] = true
		}
		var ended journal.TurnEndedPayload
		if ev.Kind == journal.EventTurnEnded && gates[ev.Creature] && json.Unmarshal(ev.Payload, &ended) == nil && ended.Kind == "message" && ended.Sends == 0 {
			return ev.ID
		}
	}
	t.Fatal("no gate has held a line back")
	return journal.EventID{}
}

// BenchmarkReplay measures how many turns are replayed in a second.
func BenchmarkReplay(b *testing.B) {
	dir := triage(b, 20)
	for name, o := range map[string]terrarium.ReplayOptions{"kept": {}, "fresh": {Fresh: true}} {
		b.Run(name, func(b *testing.B) {
			turns := 0
			for b.Loop() {
				r, err := terrarium.Replay(b.Context(), dir, o)
				if err != nil || !r.Same() {
					b.Fatal(r, err)
				}
				turns += r.Turns
			}
			b.ReportMetric(float64(turns)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}
