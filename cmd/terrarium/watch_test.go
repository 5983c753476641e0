package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A run may be over before its watcher has read the history that it requested. The watcher
// still shows all of it.
func TestWatchShowsHistoryAfterTheEnd(t *testing.T) {
	const messages = 2000 // several pages of a replay
	dir := t.TempDir()
	recipe := filepath.Join(dir, "r.hcl")
	if err := os.WriteFile(recipe, []byte(`channel "in" {}
creature "c" {
  module = "builtin:tally"
  listen = [channel.in]
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, interrupted := range []bool{false, true} {
		tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: filepath.Join(dir, "S")})
		if err != nil {
			t.Fatal(err)
		}
		applied, err := tr.Apply(t.Context(), recipe, terrarium.RecipeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !interrupted {
			for i := range messages {
				if _, err := tr.Send(t.Context(), applied.Channels["channel.in"], terrarium.Outgoing{Payload: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := tr.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		kinds := []journal.EventKind{journal.EventChannelMessage}
		var out bytes.Buffer
		f := &watchFlags{format: "text"}
		l := &liveWatch{t: tr, w: f.writer(streams{out: &out}, kinds, newNames(journal.SavedGraph{})), filter: terrarium.Filter{Kinds: kinds}}
		if err := l.subscribe(t.Context(), journal.FromStart); err != nil {
			t.Fatal(err)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		if interrupted {
			interrupt()
		}
		if err := l.start(ctx, func() {})(); err != nil {
			t.Errorf("interrupted %v: %v", interrupted, err)
		}
		interrupt()
		switch shown := strings.Count(out.String(), "\n"); {
		case !interrupted && shown != messages:
			t.Errorf("the watcher showed %d messages, want %d", shown, messages)
		case interrupted && shown != 0:
			t.Errorf("the watcher of an interrupted run showed %d messages of the past, want none", shown)
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
