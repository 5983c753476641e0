package terrarium_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
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
	result, err := operations.Do(ctx, t, "connect", json.RawMessage(`{"from": "ann", "to": "bob", "channel": "letters"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.(*operations.ChannelResult).Delta.Kind)
	// Output: merge
}

// With a session directory, a later start continues where an earlier one stopped.
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

// LoadRecipe reports everything that is wrong with a recipe, and starts nothing.
func ExampleLoadRecipe() {
	recipe, problems := terrarium.LoadRecipe(context.Background(), "testdata/count.hcl", terrarium.RecipeOptions{})
	fmt.Println(len(problems), recipe.Deployment().Name)
	// Output: 0 count
}
