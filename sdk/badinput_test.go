package sdk_test

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

// badInput is a message for picky that fails, with what the dead letter must tell.
type badInput struct {
	name, payload string
	headers       map[string]string
	reason        abi.Code
	text          string // of the author or the host, in every language
	place         bool   // the letter has the place in the author's source, if the language has it
}

var badInputs = []badInput{
	{name: "a missing channel", payload: "alias", reason: abi.NotConnected, text: `send: the creature has no send alias "nowhere"`},
	{name: "a payload that is not UTF-8", payload: "\xff", reason: abi.InvalidArgument, text: "the payload is not UTF-8"},
	{name: "a state value that is too large", payload: "big", reason: abi.TooLarge,
		text: `state_set: the value of "big" has 1048577 bytes; the limit state_value is 1048576`},
	{name: "an error of the author", payload: "fail", reason: abi.Failed, text: "it went wrong"},
	{name: "an error with a code", payload: "denied", reason: abi.Denied, text: "not today"},
	{name: "a panic or an exception", payload: "panic", text: "out of cheese", place: true},
	{name: "an endless loop", payload: "loop", reason: abi.OutOfFuel, text: "the guest used up the limit fuel"},
	{name: "a very long text", payload: "x", headers: map[string]string{"want": strings.Repeat("\u00e4", 40_000)}, reason: abi.InvalidArgument,
		text: "the header want is \u00e4\u00e4"},
}

// TestBadInput proves for every kit that the dead letter has the author's text or the
// host's, and the place in the source where the language has one.
func TestBadInput(t *testing.T) {
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			letters := deadLetters(t, filepath.Join(modules(t, &k), "picky.wasm"))
			for i, c := range badInputs {
				told := letters[i].Error + "\n" + letters[i].LastWords
				if !strings.Contains(told, c.text) {
					t.Errorf("%s: the dead letter is without %q: %.500s", c.name, c.text, told)
				}
				if c.reason != abi.OK && string(letters[i].Reason) != c.reason.String() {
					t.Errorf("%s: the reason is %s, want %s", c.name, letters[i].Reason, c.reason)
				}
				if found, err := regexp.MatchString(k.Place, told); c.place && (err != nil || !found) {
					t.Errorf("%s: the dead letter has no place like %s (%v): %s", c.name, k.Place, err, told)
				}
				if !utf8.ValidString(told) {
					t.Errorf("%s: the text is not UTF-8", c.name)
				}
			}
			if words := letters[len(letters)-1].LastWords; !strings.HasSuffix(words, "\u00e4\u2026") || len(words) > int(abi.DefaultLimits.LogBytes) {
				t.Errorf("the very long text has %d bytes and ends with %q", len(words), words[max(0, len(words)-9):])
			}
		})
	}
}

// TestBadConfiguration proves that a creature with a configuration of the wrong type does
// not start, and that the error names the attribute and what it must be.
func TestBadConfiguration(t *testing.T) {
	for _, k := range kits.All {
		t.Run(k.Language, func(t *testing.T) {
			module := filepath.Join(modules(t, &k), "picky.wasm")
			host := startHost(t)
			for _, c := range []struct{ config, text string }{
				{`{"want": 1}`, "config want: it must be a text"},
				{`{"want": "fly", "most": "ten"}`, "config most: it must be a whole number from 1 to 1000"},
				{`{"want": "fly", "strict": null}`, "config strict: it must be true or false"},
				{`{}`, "config want: it is required"},
			} {
				_, err := host.AddCreature(t.Context(), deploy.CreatureSpec{Name: "picky", Module: module, Config: json.RawMessage(c.config)})
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: %v; want %q", c.config, err, c.text)
				}
			}
		})
	}
}

func startHost(t *testing.T) *terrarium.Terrarium {
	ctx := t.Context()
	host, err := terrarium.New(ctx, terrarium.Options{CacheDir: cache(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	return host
}

// deadLetters delivers all bad inputs to picky, and returns the dead letters in their
// order.
func deadLetters(t *testing.T, module string) []journal.DeadLetterRow {
	ctx, host := t.Context(), startHost(t)
	picky, err := host.AddCreature(ctx, deploy.CreatureSpec{
		Name: "picky", Module: module, Config: json.RawMessage(`{"want": "fly"}`), Restart: deploy.RestartPolicy{Mode: deploy.RestartNever},
		Limits: abi.Limits{Fuel: 500_000_000, Deadline: time.Minute}, // the loop ends by its fuel on a slow machine too
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range badInputs {
		headers := c.headers
		if headers == nil {
			headers = map[string]string{"want": "fly"}
		}
		if _, err := host.SendTo(ctx, picky.Creature, engine.Outgoing{Payload: []byte(c.payload), Headers: headers}); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
	graph, err := host.FindGraph(ctx, "picky")
	if err != nil {
		t.Fatal(err)
	}
	letters, err := host.DeadLetters(ctx, graph, "", journal.EventID{}, len(badInputs)+1)
	if err != nil || len(letters) != len(badInputs) {
		t.Fatalf("%d dead letters, %v", len(letters), err)
	}
	slices.SortFunc(letters, func(a, b journal.DeadLetterRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return letters
}
