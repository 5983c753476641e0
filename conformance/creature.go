package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// Case is a sequence of deliveries to a creature, with the expected actions.
type Case struct {
	// Module is a path, or builtin:NAME.
	Module string          `json:"module"`
	Config json.RawMessage `json:"config,omitempty"`
	// Privileged lets the creature use the group tools of privileged creatures.
	Privileged bool `json:"privileged,omitempty"`
	// Listen and Send are the aliases of the creature. Each is bound to its
	// own channel.
	Listen []string `json:"listen"`
	Send   []string `json:"send"`
	// Peers are other creatures of the graph, which the creature can name.
	Peers []Peer `json:"peers,omitempty"`
	// Species are those that the creature may spawn, if it is privileged. A case that
	// has some has no peers.
	Species    []Peer     `json:"species,omitempty"`
	Deliveries []Delivery `json:"deliveries"`
	// CacheDir keeps compiled modules between runs; see [terrarium.Options].
	CacheDir string `json:"-"`
	// Transcript lists the expected actions: for each delivery, beginning with
	// start, one line that names it and one for each effect. If the host or the
	// creature's creature_init refuses to start, it has only the line of the error.
	Transcript []string `json:"transcript"`
}

// Peer is another creature in the graph of a case, or a species. It has no channels.
type Peer struct {
	Name   string          `json:"name"`
	Module string          `json:"module,omitempty"` // empty: that of the case
	Config json.RawMessage `json:"config,omitempty"`
}

// Delivery is one message to the creature, on the channel of an alias or,
// without one, directly. Alternatively it is a request, a change of the
// creature's surroundings, which the creature may receive as graph_changed, or a
// step of the clock, which may fire timers.
type Delivery struct {
	// Join makes the creature listen on new channels under these aliases, in
	// one change.
	Join []string `json:"join,omitempty"`
	// AdvanceMS moves the clock forward, by at most a minute. Otherwise the clock
	// stands still. Every case begins at [Begin].
	AdvanceMS int64 `json:"advance_ms,omitempty"`
	// Request delivers the payload as a request. The transcript has the reply.
	Request bool               `json:"request,omitempty"`
	Alias   string             `json:"alias,omitempty"`
	Payload operations.Payload `json:"payload"`
	Headers map[string]string  `json:"headers,omitempty"`
}

// Begin is the time at which every case begins: 2026-01-01 00:00 UTC, in seconds since
// 1970.
const Begin = 1767225600

// CheckCreature runs a case warm and with a fresh instance for every turn, and
// returns the problems: an empty list if the creature conforms.
func CheckCreature(ctx context.Context, c *Case) ([]string, error) {
	var problems []string
	for _, fresh := range []bool{false, true} {
		got, err := RunCreature(ctx, c, fresh)
		if err != nil {
			return nil, err
		}
		how := "warm"
		if fresh {
			how = "with a fresh instance for every turn"
		}
		if diff := firstDifference(c.Transcript, got); diff != "" {
			problems = append(problems, how+": "+diff)
		}
	}
	return problems, nil
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		w, g := "nothing", "nothing"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			return fmt.Sprintf("line %d of the transcript is\n\t%s\nbut must be\n\t%s", i+1, g, w)
		}
	}
	return ""
}

// RunCreature runs a case and returns the transcript. The error is about the
// case or the engine; mistakes of the creature show in the transcript.
func RunCreature(ctx context.Context, c *Case, fresh bool) (transcript []string, err error) {
	clock := &clock{now: time.Unix(Begin, 0)}
	t, err := terrarium.New(ctx, terrarium.Options{FreshInstances: fresh, Workers: 1, Clock: clock, CacheDir: c.CacheDir})
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := t.Close(ctx); err == nil {
			err = cerr
		}
	}()
	b := &bench{t: t, c: c, clock: clock, channels: map[string]journal.ChannelID{}, peers: map[journal.CreatureID]string{}}
	sub := t.Subscribe(engine.Filter{}, 1<<16)
	defer sub.Close()
	b.sub = sub
	if err := b.setUp(ctx); err != nil {
		var refused *startError
		if errors.As(err, &refused) {
			return []string{"> start", "refused " + refused.Error()}, nil
		}
		return nil, err
	}
	if err := b.step(ctx, "start"); err != nil {
		return nil, err
	}
	for i := range c.Deliveries {
		if err := b.deliver(ctx, &c.Deliveries[i]); err != nil {
			return nil, err
		}
	}
	return b.lines, nil
}
