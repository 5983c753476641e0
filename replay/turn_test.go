package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// turnsOf lists the turns of a directory with one session, in order.
func turnsOf(t *testing.T, dir string) []journal.Event {
	t.Helper()
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	list, err := v.Catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []journal.Event
	for _, info := range list {
		turns, err := v.History(t.Context(), info.Session, journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}, Limit: 10_000, Own: true})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, turns...)
	}
	return out
}

// Each turn of a session with requests over HTTP, failures and verdicts of policies does
// the same when it is run again alone, although the server is closed: the answers come
// from the record.
func TestTurnsOneByOne(t *testing.T) {
	dir := t.TempDir()
	want := recordRequests(t, dir)
	turns, reached := turnsOf(t, dir), 0
	if len(turns) != want {
		t.Fatalf("%d turns, want %d", len(turns), want)
	}
	for _, ev := range turns {
		c, err := terrarium.ReplayTurn(t.Context(), dir, ev.ID, terrarium.ReplayOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.First != -1 || c.Turn != ev.ID || c.Creature != ev.Creature || c.Then.Code != c.Again.Code || c.Then.SHA256 != c.Again.SHA256 || len(c.Recorded) != len(c.Replayed) {
			t.Errorf("turn %s: %+v", ev.ID, c)
		}
		for _, p := range c.Pairs() {
			if p.Same && p.Then.Kind == replay.EffectReach {
				reached++
			}
		}
	}
	if reached < 5 {
		t.Errorf("only %d requests to a capability were compared", reached)
	}
}

// A turn in pruned history is not found, and the error says why.
func TestTurnsOfPrunedHistory(t *testing.T) {
	dir := triage(t, 1)
	turns := turnsOf(t, dir)
	d, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.Catalogue(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err = d.Prune(t.Context(), list[0].Session, sqlitestore.Retention{Events: 500}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	relay, err := plugins.Get("echo")
	if err != nil {
		t.Fatal(err)
	}
	_, err = terrarium.ReplayTurn(t.Context(), dir, turns[0].ID, terrarium.ReplayOptions{Module: relay})
	if abi.CodeOf(err) != abi.NotFound || !strings.Contains(err.Error(), "pruned") {
		t.Errorf("a pruned turn: %v", err)
	}
	kept := turnsOf(t, dir)
	_, err = terrarium.ReplayTurn(t.Context(), dir, kept[0].ID, terrarium.ReplayOptions{})
	var e *abi.Error
	if abi.CodeOf(err) != abi.NotFound || !errors.As(err, &e) || e.IDs["reason"] != string(replay.NoSetting) || e.IDs["creature"] == "" || e.Remedy == "" {
		t.Errorf("a turn whose creature's setting has been pruned, the first of %d: %+v", len(kept), err)
	}
}

func TestPairs(t *testing.T) {
	send := func(target, payload string) replay.Effect {
		return replay.Effect{Kind: replay.EffectSend, Target: target, Payload: replay.Text(payload)}
	}
	state := replay.Effect{Kind: replay.EffectState, Target: "n", Payload: replay.Text("1")}
	log := replay.Effect{Kind: replay.EffectLog, Target: "info", Payload: replay.Text("hello")}
	d := replay.Difference{
		Recorded: []replay.Effect{send("a", "1"), send("b", "1"), state, log},
		Replayed: []replay.Effect{send("b", "2"), send("c", "1"), send("d", "1"), state},
	}
	got := ""
	for _, p := range d.Pairs() {
		side := func(e *replay.Effect) string {
			if e == nil {
				return "none"
			}
			return string(e.Kind) + e.Target
		}
		got += side(p.Then) + "=" + side(p.Again)
		if p.Same {
			got += "!"
		}
		got += " "
	}
	if want := "senda=sendc sendb=sendb none=sendd staten=staten! loginfo=none "; got != want {
		t.Errorf("the pairs are %s, want %s", got, want)
	}
}
