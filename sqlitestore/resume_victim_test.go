package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/fresh"
	"github.com/seed47132306/terrarium/plugins"
)

const (
	ponds         = 4 // channels, each with a creature that always listens on it alone
	steadyName    = "steady"
	editedName    = "edited"
	resumeDurable = 4 // feed waits for one of this many messages
)

// edition is a recipe after an edit: the creatures besides the keepers of the ponds, and the
// ponds on which each of them listens. A creature merges its ponds.
type edition map[string][]int

// resuming is the order for a victim that continues with a directory.
type resuming struct {
	Cache   string // of compiled modules
	Edition edition
	Goal    uint64 // after this many messages in each pond, the life ends
}

// census is a creature that counts each message that it hears, by number.
func census(name string, listen ...int) deploy.CreatureSpec {
	spec := deploy.CreatureSpec{
		Address: "creature." + name, Name: name, Module: "tally", Config: json.RawMessage(`{"key": "json:n", "max_keys": 100000}`),
		Limits: abi.Limits{Deadline: time.Minute}, // nothing here may depend on how busy the machine is
	}
	for _, i := range listen {
		spec.Listen = append(spec.Listen, deploy.WireSpec{Channel: fmt.Sprint("channel.pond-", i), Alias: fmt.Sprint("pond-", i)})
	}
	return spec
}

// numbered is a message that exists only once.
func numbered(pond int, n uint64) []byte { return fmt.Appendf(nil, `{"n":"%d %d"}`, pond, n) }

func keeperOf(pond int) string { return fmt.Sprint("keeper-", pond) }

// deployment is the edition as a recipe.
func (d edition) deployment(durability journal.Durability) *deploy.Deployment {
	out := &deploy.Deployment{Name: editedName, Session: deploy.SessionSettings{Durability: &durability}}
	for i := range ponds {
		out.Channels = append(out.Channels, deploy.ChannelSpec{Address: fmt.Sprint("channel.pond-", i), Name: fmt.Sprint("pond-", i)})
		out.Creatures = append(out.Creatures, census(keeperOf(i), i))
	}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		out.Creatures = append(out.Creatures, census(name, d[name]...))
	}
	return out
}

// listens returns the ponds on which each creature listens.
func (d edition) listens() map[string]string {
	out := map[string]string{"steady": "[well]"}
	for i := range ponds {
		out[keeperOf(i)] = fmt.Sprintf("[pond-%d]", i)
	}
	for name, listen := range d {
		var on []string
		for _, i := range slices.Sorted(slices.Values(listen)) {
			on = append(on, fmt.Sprint("pond-", i))
		}
		out[name] = fmt.Sprint(on)
	}
	return out
}

// graphs returns the members of each graph of the edition, found in the simplest way.
func (d edition) graphs() (out []string) {
	group := [ponds]int{0, 1, 2, 3}
	for _, listen := range d {
		for _, i := range listen[1:] {
			from, to := group[i], group[listen[0]]
			for p := range group {
				if group[p] == from {
					group[p] = to
				}
			}
		}
	}
	members := map[int][]string{-1: {"steady"}}
	for i := range ponds {
		members[group[i]] = append(members[group[i]], keeperOf(i))
	}
	for name, listen := range d {
		members[group[listen[0]]] = append(members[group[listen[0]]], name)
	}
	for _, names := range members {
		slices.Sort(names)
		out = append(out, strings.Join(names, " "))
	}
	slices.Sort(out)
	return out
}

// resumed is what a victim reports when it has applied the recipe: its shape, and how many
// messages each pond had.
type resumed struct {
	Graphs  []string
	Listens map[string]string
	Marks   [ponds]uint64
}

// run continues with the directory as a resume does: it applies the recipe, and restores what
// no recipe has. Then it feeds every pond.
func (r *resuming) run(ctx context.Context, dir string, options Options) error {
	durability := journal.Normal
	d, err := Open(ctx, dir, options)
	if err != nil {
		return err
	}
	h, err := host.New(ctx, host.Options{CacheDir: r.Cache, CacheKey: r.Cache + ".key"})
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, engine.Options{
		Host: h, Storage: d, Durability: durability, FreshInstances: fresh.Instances(), Workers: 2,
		Load: func(_ context.Context, module string) ([]byte, error) { return plugins.Get(module) },
	})
	if err != nil {
		return err
	}
	deployments := []*deploy.Deployment{r.Edition.deployment(durability)}
	if len(e.Remembered()) < 2 { // the steady deployment does not exist yet
		deployments = append(deployments, steady())
	}
	applied, err := e.ApplyAll(ctx, deployments...)
	if err != nil {
		return err
	}
	if _, problems, err := e.Restore(ctx); err != nil || len(problems) > 0 {
		return errors.Join(append(problems, err)...)
	}
	if err := r.feed(ctx, e, applied[0].Channels); err != nil {
		return err
	}
	return errors.Join(e.WaitIdle(ctx), d.Settle(ctx), e.Close(ctx), d.Close(), h.Close(ctx))
}

// steady is a deployment that is never edited, and is applied only once.
func steady() *deploy.Deployment {
	spec := census("steady")
	spec.Listen = []deploy.WireSpec{{Channel: "channel.well", Alias: "well"}}
	return &deploy.Deployment{Name: steadyName, Creatures: []deploy.CreatureSpec{spec}, Channels: []deploy.ChannelSpec{{Address: "channel.well", Name: "well"}}}
}

// feed sends the messages that the ponds do not have yet, and a few before them again.
func (r *resuming) feed(ctx context.Context, e *engine.Engine, channels map[string]journal.ChannelID) error {
	said, err := shapeOf(e)
	if err != nil {
		return err
	}
	for i := range ponds {
		known, err := e.Producers(channels[fmt.Sprint("channel.pond-", i)])
		if err != nil {
			return err
		}
		said.Marks[i] = known["test"]
	}
	tellOf("applied", said)
	first := slices.Min(said.Marks[:])
	for n := first + 1 - min(first, 2); n <= r.Goal; n++ {
		for i := range ponds {
			durable := n%resumeDurable == uint64(i)
			sent, err := e.Send(ctx, channels[fmt.Sprint("channel.pond-", i)], engine.Outgoing{
				Payload: numbered(i, n), Producer: "test", Offset: n, Durable: durable,
			})
			if err != nil {
				return err
			}
			if sent.Duplicate != (n <= said.Marks[i]) {
				return fmt.Errorf("message %d of pond %d: duplicate %t, but the pond has %d", n, i, sent.Duplicate, said.Marks[i])
			}
			if durable {
				tell(progress{Word: "ok", Seq: n, At: int64(i)})
			}
		}
	}
	return nil
}

func tellOf(word string, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		tell(progress{Word: "error", Text: err.Error()})
		return
	}
	tell(progress{Word: word, Text: string(text)})
}

// shapeOf returns the shape of an engine's graphs.
func shapeOf(e *engine.Engine) (out resumed, err error) {
	graphs, err := e.Status("")
	out.Listens = map[string]string{}
	for _, g := range graphs {
		var names []string
		for _, c := range g.Creatures {
			names = append(names, c.Name)
			out.Listens[c.Name] = fmt.Sprint(slices.Sorted(maps.Keys(c.Aliases.Listen)))
		}
		slices.Sort(names)
		out.Graphs = append(out.Graphs, strings.Join(names, " "))
	}
	slices.Sort(out.Graphs)
	return out, err
}
