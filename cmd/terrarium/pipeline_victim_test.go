package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// pipelineRecipe is what the victim runs, relative to this folder.
const pipelineRecipe = "testdata/pipeline"

// feeders are the producers by the channel that they feed. A producer's name is
// the sender in its entries.
var feeders = map[string][]string{
	"in.a0": {"a0/lines", "a0/words"}, "in.a1": {"a1/lines", "a1/words"},
	"in.b0": {"b0/lines", "b0/words"}, "in.b1": {"b1/lines", "b1/words"},
}

// value is what an entry of a sender says; sums of it tell which are missing.
func value(sender string, n uint64) uint64 { return n*n%9973 + uint64(sender[1]) }

// entry is a message as testdata/pipeline/ledger.wat describes it.
func entry(sender string, n uint64) []byte {
	b := []byte(sender + "        ")
	b = binary.LittleEndian.AppendUint64(b, n)
	return binary.LittleEndian.AppendUint64(b, value(sender, n))
}

// victim runs the pipelines until it is killed or, with a goal, until every
// producer has fed that many entries and all are printed. It tells what it does
// in lines of a few words:
//
//	mark PRODUCER N      the session has taken in N entries of it
//	ack PRODUCER N       entry N is durable
//	out SIDE ID SENDER N an output
//	cutting, cut KIND    a merge or split begins, has happened
//	done, error TEXT     the end
type victim struct {
	t      *terrarium.Terrarium
	random *rand.Rand // for the cutter
	goal   uint64     // 0: no end
	seed   uint64

	mu     sync.Mutex
	passed chan struct{}            // holds a token now and then, for the cutter
	ahead  map[string]chan struct{} // holds a token for each entry of a producer that is under way
}

// mostAhead is how many entries of each producer are under way.
const mostAhead = 40

// victimMain is a command of its own: pipelines DIR DURABILITY SEED GOAL
func victimMain() {
	if err := runVictim(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func runVictim(ctx context.Context, dir, durability, seedText, goalText string) error {
	seed, serr := strconv.ParseUint(seedText, 10, 64)
	goal, gerr := strconv.ParseUint(goalText, 10, 64)
	if err := errors.Join(serr, gerr); err != nil {
		return err
	}
	v := &victim{random: rand.New(rand.NewPCG(seed, 0)), seed: seed, goal: goal, passed: make(chan struct{}, 1), ahead: map[string]chan struct{}{}}
	for _, producers := range feeders {
		for _, p := range producers {
			v.ahead[p] = make(chan struct{}, mostAhead)
		}
	}
	var err error
	if v.t, err = terrarium.New(ctx, terrarium.Options{Dir: dir, FreshInstances: fresh.Instances()}); err != nil {
		return err
	}
	if err := v.resume(ctx, durability); err != nil {
		return err
	}
	return errors.Join(v.work(ctx), v.t.Close(ctx))
}

// resume brings back what the session has: as the recipe says, or as it was.
func (v *victim) resume(ctx context.Context, durability string) error {
	if len(v.t.Saved()) == 0 || v.random.IntN(2) == 0 {
		_, err := v.t.Apply(ctx, pipelineRecipe, terrarium.RecipeOptions{Vars: map[string]string{"durability": durability}})
		return err
	}
	_, problems, err := v.t.Restore(ctx)
	return errors.Join(append(problems, err)...)
}

func (v *victim) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(os.Stdout, format+"\n", args...) // short enough for the pipe to take it whole
}

// work feeds, prints and cuts.
func (v *victim) work(ctx context.Context) error {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := func(err error) {
		if err != nil {
			stop(err)
		}
	}
	var feeding, others sync.WaitGroup
	var readers []*engine.Reader
	for _, side := range []string{"a", "b"} {
		r, err := v.reader(side)
		if err != nil {
			return err
		}
		readers = append(readers, r)
		others.Go(func() { failed(v.print(reading, side, r)) })
	}
	others.Go(func() { failed(v.cut(reading)) })
	for channel, producers := range feeders {
		for _, p := range producers {
			feeding.Go(func() { failed(v.feed(reading, channel, p)) })
		}
	}
	feeding.Wait()
	err := v.t.WaitIdle(reading)
	for _, r := range readers {
		err = errors.Join(err, r.WaitRead(reading))
	}
	failed(err)
	stop(errDone)
	others.Wait()
	for _, r := range readers {
		r.Close()
	}
	if err := context.Cause(reading); err != errDone {
		return err
	}
	return nil
}

var errDone = errors.New("everything is printed")

// feed sends the entries of one producer, from a little before where the
// session has got to, like a producer that does not know exactly.
func (v *victim) feed(ctx context.Context, channel, producer string) error {
	id, err := v.t.FindChannel("", channel)
	if err != nil {
		return err
	}
	known, err := v.t.Producers(id)
	if err != nil {
		return err
	}
	mark := known[producer]
	v.say("mark %s %d", producer, mark)
	for n := mark + 1 - min(mark, v.seed%20); v.goal == 0 || n <= v.goal; n++ {
		if n > mark {
			select {
			case v.ahead[producer] <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
		}
		durable := n%8 == 0
		sent, err := v.t.Send(ctx, id, terrarium.Outgoing{Payload: entry(producer, n), Producer: producer, Offset: n, Durable: durable})
		if err != nil {
			return err
		}
		if sent.Duplicate != (n <= mark) {
			return fmt.Errorf("entry %d of %s: duplicate %t, but the session has %d", n, producer, sent.Duplicate, mark)
		}
		if durable {
			v.say("ack %s %d", producer, n)
		}
	}
	return nil
}

func (v *victim) reader(side string) (*engine.Reader, error) {
	id, err := v.t.FindChannel("", "out."+side)
	if err != nil {
		return nil, err
	}
	return v.t.Read(id, "printer", engine.ReaderOptions{FromStart: true, Buffer: 64})
}

// outputsPerCut is how many outputs of a side there are between two cuts, and
// cutsPerLife how many cuts a life makes.
const (
	outputsPerCut = 80
	cutsPerLife   = 6
)

// print prints a side's outputs, and acknowledges them now and then.
func (v *victim) print(ctx context.Context, side string, r *engine.Reader) error {
	for n := 1; ; n++ {
		in, err := r.Next(ctx)
		if err != nil {
			if context.Cause(ctx) != nil {
				return nil
			}
			return err
		}
		sender := string(in.Payload[:8])
		v.say("out %s %s %s %d", side, in.ID, sender, binary.LittleEndian.Uint64(in.Payload[16:]))
		select {
		case <-v.ahead[sender]:
		default: // an earlier life fed it
		}
		if n%5 == 0 || r.Pending() == 0 {
			r.Ack(in.Seq)
		}
		if n%outputsPerCut == 0 {
			select {
			case v.passed <- struct{}{}:
			default:
			}
		}
	}
}

// cut connects the bridge with the middle of a pipeline, or disconnects it,
// while entries pass through.
func (v *victim) cut(ctx context.Context) error {
	bridge, err := v.t.FindCreature("", "bridge")
	if err != nil {
		return err
	}
	for range cutsPerLife {
		select {
		case <-v.passed:
		case <-ctx.Done():
			return nil
		}
		channel, err := v.t.FindChannel("", "mid."+[]string{"a", "b"}[v.random.IntN(2)])
		if err != nil {
			return err
		}
		listens, err := v.listens(bridge, channel)
		if err != nil {
			return err
		}
		v.say("cutting")
		out, err := v.t.Change(ctx, topology.SetEdge{Creature: bridge, Channel: channel, Direction: journal.Listen, On: !listens})
		if err != nil {
			return err
		}
		v.say("cut %s", out[0].Delta.Kind)
	}
	return nil
}

func (v *victim) listens(creature terrarium.CreatureID, channel terrarium.ChannelID) (bool, error) {
	graphs, err := v.t.Status("")
	if err != nil {
		return false, err
	}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			if c.ID == creature {
				return slices.Contains(c.Listen, channel), nil
			}
		}
	}
	return false, fmt.Errorf("there is no creature %s", creature)
}
