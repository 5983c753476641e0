package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// seedsOf runs two creatures that get the same messages and send each on twice, and
// returns the seeds with which the policy judged the sends, by sender and payload.
func seedsOf(t *testing.T, seed uint64) map[string][]uint64 {
	t.Helper()
	h := newFakeHost()
	h.on("twice", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		for range 2 {
			if n := t.Send(abi.AllChannels, payload, nil); n < 0 {
				return status(t, n)
			}
		}
		return nil
	})
	var mu sync.Mutex
	seeds := map[string][]uint64{}
	policy := &judge{send: func(ev *deploy.SendEvent) deploy.SendDecision {
		mu.Lock()
		defer mu.Unlock()
		from := ev.SenderName + " " + string(ev.Payload)
		seeds[from] = append(seeds[from], ev.Seed)
		return deploy.SendDecision{}
	}}
	w := newWorld(t, engine.Options{Host: h, Seed: &seed})
	member := func(name string) deploy.CreatureSpec {
		return deploy.CreatureSpec{
			Address: "creature." + name, Name: name, Module: "twice", Wasm: []byte("twice"),
			Listen: []deploy.WireSpec{{Channel: "channel.in"}}, Send: []deploy.WireSpec{{Channel: "channel.out"}},
		}
	}
	a := w.apply(&deploy.Deployment{
		Name:      "pair",
		Channels:  []deploy.ChannelSpec{{Address: "channel.in", Name: "in"}, {Address: "channel.out", Name: "out"}},
		Creatures: []deploy.CreatureSpec{member("ann"), member("bob")},
		Policy:    policy,
	})
	w.wait() // the starts of the creatures are logged, too
	for i := range 3 {
		if _, err := w.Send(t.Context(), a.Channels["channel.in"], engine.Outgoing{Payload: fmt.Append(nil, i), Producer: "file", Offset: uint64(i + 1)}); err != nil {
			t.Fatal(err)
		}
		// The next message must have the same place in the log whenever this is repeated.
		w.wait()
	}
	mu.Lock()
	defer mu.Unlock()
	return seeds
}

// The seed of a policy is different for each message, for each creature that gets the message
// and for each of its sends. It is the same when everything is repeated.
func TestSeedsOfPolicies(t *testing.T) {
	seeds := seedsOf(t, 7)
	var all []uint64
	for _, list := range seeds {
		all = append(all, list...)
	}
	const outside, inside = 3, 2 * 3 * 2
	if len(seeds) != 3+2*3 || len(all) != outside+inside {
		t.Fatalf("the policy judged %v", seeds)
	}
	slices.Sort(all)
	if distinct := slices.Compact(slices.Clone(all)); len(distinct) != len(all) {
		t.Errorf("%d of %d seeds are distinct: %v", len(distinct), len(all), seeds)
	}
	again := seedsOf(t, 7)
	for from, list := range seeds {
		if !slices.Equal(list, again[from]) {
			t.Errorf("%s: the seeds are %d, but %d when everything is repeated", from, list, again[from])
		}
	}
}
