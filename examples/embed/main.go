// Command embed is a program that embeds terrarium. It applies a recipe, adds a
// creature while the recipe's creatures run, connects it, and watches what
// happens.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func main() {
	recipe := "watch.hcl"
	if len(os.Args) > 1 {
		recipe = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, recipe); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, recipe string) (err error) {
	t, err := terrarium.New(ctx, terrarium.Options{Scratch: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(ctx)) }()

	// Print changes of the graphs as they happen.
	stop := sync.OnceFunc(watch(ctx, t, out))
	defer stop()

	applied, err := t.Apply(ctx, recipe, terrarium.RecipeOptions{})
	if err != nil {
		return err
	}
	lines, alarms := applied.Channels["channel.lines"], applied.Channels["channel.alarms"]
	if err := send(ctx, t, lines, "temperature 24", "temperature 41 too hot"); err != nil {
		return err
	}

	// Add a counter while the recipe's creatures run. At first it has a graph of its
	// own. Once it listens on one of their channels, the graphs merge.
	added, err := t.AddCreature(ctx, terrarium.CreatureSpec{
		Name: "counter", Module: "builtin:tally", Config: []byte(`{"key": "field:1"}`),
	})
	if err != nil {
		return err
	}
	_, err = t.Change(ctx, topology.SetEdge{Creature: added.Creature, Channel: alarms, Direction: journal.Listen, On: true})
	if err != nil {
		return err
	}
	if err := send(ctx, t, lines, "humidity 12 too dry", "temperature 25", "temperature 39 too hot"); err != nil {
		return err
	}
	stop()
	return report(ctx, t, out, added.Creature, alarms)
}

// send sends lines and waits until everything that follows from them is done.
func send(ctx context.Context, t *terrarium.Terrarium, channel terrarium.ChannelID, lines ...string) error {
	for _, line := range lines {
		if _, err := t.Send(ctx, channel, terrarium.Outgoing{Payload: []byte(line)}); err != nil {
			return err
		}
	}
	return t.WaitIdle(ctx)
}

// watch prints changes of the graphs until stop is called. stop returns when all
// changes have been printed.
func watch(ctx context.Context, t *terrarium.Terrarium, out io.Writer) (stop func()) {
	sub := t.Subscribe(terrarium.Filter{Kinds: []journal.EventKind{
		journal.EventCreatureStarted, journal.EventTopologyChanged, journal.EventSessionMerged,
	}}, 0)
	var wait sync.WaitGroup
	wait.Go(func() {
		for seen := range sub.All(ctx) {
			fmt.Fprintf(out, "event   %s %s\n", seen.Event.Kind, seen.Event.Payload)
		}
	})
	return func() {
		sub.Close()
		wait.Wait()
	}
}

// report prints what the counter has counted, and the alarms.
func report(ctx context.Context, t *terrarium.Terrarium, out io.Writer, counter terrarium.CreatureID, alarms terrarium.ChannelID) error {
	state, err := t.State(ctx, counter, "count/")
	if err != nil {
		return err
	}
	reader, err := t.Read(alarms, "report", terrarium.ReaderOptions{FromStart: true})
	if err != nil {
		return err
	}
	defer reader.Close()
	for reader.Pending() > 0 {
		alarm, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "alarm   %s\n", alarm.Payload)
		reader.Ack(alarm.Seq)
	}
	for _, e := range state {
		fmt.Fprintf(out, "%s = %s\n", e.Key, e.Value)
	}
	return nil
}
