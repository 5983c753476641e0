package terrarium_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// A recipe is applied, fed, watched and closed.
func Example() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	applied, err := t.Apply(ctx, "testdata/count.hcl", terrarium.RecipeOptions{})
	if err != nil {
		log.Fatal(err)
	}

	// What counts sends is an event; so is everything else that happens.
	events := t.Subscribe(terrarium.Filter{
		Kinds:    []journal.EventKind{journal.EventChannelMessage},
		Channels: []terrarium.ChannelID{applied.Channels["channel.sums"]},
	}, 0)
	defer events.Close()

	for _, line := range []string{"ERROR disk", "INFO fine", "ERROR net"} {
		if _, err := t.Send(ctx, applied.Channels["channel.lines"], terrarium.Outgoing{Payload: []byte(line)}); err != nil {
			log.Fatal(err)
		}
	}
	seen, err := events.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(seen.Event.Payload))

	if err := t.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: {"counts":{"ERROR":2,"INFO":1},"total":3}
}

// Creatures can be added and connected at run time. Connecting two graphs makes
// one of them.
func ExampleTerrarium_AddCreature() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	for _, name := range []string{"ann", "bob"} {
		if _, err := t.AddCreature(ctx, terrarium.CreatureSpec{Name: name, Module: "builtin:relay"}); err != nil {
			log.Fatal(err)
		}
	}
	result, err := t.Do(ctx, "connect", json.RawMessage(`{"from": "ann", "to": "bob", "channel": "letters"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.(*terrarium.ChannelResult).Delta.Kind)
	// Output: merge
}

// With a session directory a later start goes on where an earlier one stopped.
func ExampleOptions_session() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	for range 2 {
		t, err := terrarium.New(ctx, terrarium.Options{Dir: dir})
		if err != nil {
			log.Fatal(err)
		}
		applied, err := t.Apply(ctx, "testdata/count.hcl", terrarium.RecipeOptions{})
		if err != nil {
			log.Fatal(err)
		}
		lines := applied.Channels["channel.lines"]
		if _, err := t.Send(ctx, lines, terrarium.Outgoing{Payload: []byte("INFO again"), Durable: true}); err != nil {
			log.Fatal(err)
		}
		if err := t.WaitIdle(ctx); err != nil {
			log.Fatal(err)
		}
		state, err := t.State(ctx, applied.Creatures["creature.counts"], "count/")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s = %s\n", state[0].Key, state[0].Value)
		if err := t.Close(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// count/INFO = 1
	// count/INFO = 2
}

// Every operation is there as data too.
func ExampleTerrarium_Do() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	if _, err := t.Do(ctx, "apply", json.RawMessage(`{"recipe": "testdata/count.hcl"}`)); err != nil {
		log.Fatal(err)
	}
	_, err = t.Do(ctx, "send", json.RawMessage(`{"channel": "lines", "pyaload": "x"}`))
	fmt.Println(err)
	// Output: send: there is no field "pyaload"; its fields are channel, graph, payload, headers, durable, producer, offset
}

// Serve offers the operations on a connection, a JSON object on a line.
func ExampleTerrarium_Serve() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	requests := strings.NewReader(`
		{"id": 1, "op": "apply", "recipe": "testdata/count.hcl"}
		{"id": 2, "op": "send", "channel": "line", "payload": "INFO fine"}
		{"id": 3, "op": "wait_idle"}
		{"id": 4, "op": "shutdown"}`)
	answers := &strings.Builder{}
	if err := t.Serve(ctx, requests, answers); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(answers.String()) {
		var answer struct {
			ID    int
			OK    bool
			Error terrarium.ErrorRecord
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			log.Fatal(err)
		}
		if answer.ID == 2 {
			fmt.Println(answer.OK, answer.Error.Code, "-", answer.Error.Message)
		}
	}
	// Output: false not_found - there is no channel line
}

// LoadRecipe tells everything that is wrong with a recipe, and starts nothing.
func ExampleLoadRecipe() {
	recipe, problems := terrarium.LoadRecipe(context.Background(), "testdata/count.hcl", terrarium.RecipeOptions{})
	fmt.Println(len(problems), recipe.Deployment().Name)
	// Output: 0 count
}
