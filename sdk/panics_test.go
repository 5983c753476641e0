package sdk_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

// TestPanics proves for every kit that the dead letter of a delivery that panicked has the
// author's text, and the place in the source where the language has one.
func TestPanics(t *testing.T) {
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			letter := deadLetter(t, filepath.Join(modules(t, &k), "picky.wasm"), "panic")
			told := letter.Error + "\n" + letter.LastWords
			if !strings.Contains(told, "out of cheese") {
				t.Errorf("the dead letter is without the author's text: %s", told)
			}
			if found, err := regexp.MatchString(k.Place, told); err != nil || !found {
				t.Errorf("the dead letter has no place like %s (%v): %s", k.Place, err, told)
			}
		})
	}
}

// deadLetter delivers a payload to picky, which fails, and returns the dead letter.
func deadLetter(t *testing.T, module, payload string) journal.DeadLetterRow {
	ctx := t.Context()
	host, err := terrarium.New(ctx, terrarium.Options{CacheDir: cache(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	picky, err := host.AddCreature(ctx, deploy.CreatureSpec{
		Name: "picky", Module: module, Config: json.RawMessage(`{"want": "fly"}`), Restart: deploy.RestartPolicy{Mode: deploy.RestartNever},
		Limits: abi.Limits{Deadline: time.Minute}, // the usual second may end a turn on a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.SendTo(ctx, picky.Creature, engine.Outgoing{Payload: []byte(payload), Headers: map[string]string{"want": "fly"}}); err != nil {
		t.Fatal(err)
	}
	if err := host.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
	graph, err := host.FindGraph(ctx, "picky")
	if err != nil {
		t.Fatal(err)
	}
	letters, err := host.DeadLetters(ctx, graph, "", journal.EventID{}, 1)
	if err != nil || len(letters) != 1 {
		t.Fatalf("dead letters: %v, %v", letters, err)
	}
	return letters[0]
}
