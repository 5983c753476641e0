package creatures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/host"
)

// bench is a module on the test bench.
type bench struct {
	host    *host.Host
	subject *Subject
	module  abi.Module // nil until the module has been compiled

	listen, send []string // aliases of the manifest
	schema       map[string]any
	words        []string // from the schema, for payloads
	notice       bool     // it gets graph_changed
	config       string   // with which it starts
	started      bool
}

func (b *bench) close(ctx context.Context) {
	if b.module != nil {
		_ = b.module.Close(ctx) // the verdicts are known
	}
}

// draw takes the shape of deliveries from the module.
func (b *bench) draw(info *abi.ModuleInfo) {
	b.notice = slices.Contains(info.Exports, abi.ExportGraphChanged)
	b.words = []string{"a", "frog", "newt 3", "1", "-7.5", "{}", `{"op":"get","id":1}`, "[1,2]", `"text"`, "null", "line\nline", "ünï"}
	m := info.Manifest
	if m == nil {
		b.send = []string{"out"}
		return
	}
	for _, c := range m.Listen {
		b.listen = append(b.listen, c.Alias)
	}
	for _, c := range m.Send {
		b.send = append(b.send, c.Alias)
	}
	if len(b.send) == 0 {
		b.send = []string{"out"}
	}
	_ = json.Unmarshal(m.Config, &b.schema) // an invalid schema shapes nothing
	b.collect(b.schema, 0)
}

// collect takes words for payloads from a schema.
func (b *bench) collect(v any, depth int) {
	const deepest, most = 16, 100
	if depth > deepest || len(b.words) > most {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			if name == "enum" || name == "default" || name == "const" || name == "examples" || name == "properties" {
				b.words = append(b.words, leaves(v[name])...)
			}
			b.collect(v[name], depth+1)
		}
	case []any:
		for _, x := range v {
			b.collect(x, depth+1)
		}
	}
}

// leaves returns the strings of an enum, and the names of properties.
func leaves(v any) (out []string) {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, x := range v {
			out = append(out, leaves(x)...)
		}
	case map[string]any:
		out = sortedKeys(v)
	}
	return out
}

// creature makes a creature with a configuration.
func (b *bench) creature(config string, change func(*stage.Options)) (*stage.Creature, error) {
	o := stage.Options{Config: config, Listen: b.listen, Send: b.send, Peers: []string{"ann", "bob"}, Privileged: true}
	if change != nil {
		change(&o)
	}
	return stage.New(b.module, o)
}

// deliverAlone hands one delivery to a creature that has only started.
func (b *bench) deliverAlone(ctx context.Context, d *stage.Delivery) (*stage.Record, error) {
	c, err := b.creature(b.config, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	return c.Deliver(ctx, d)
}

// maxSpinning is how many turns may run until they are stopped before a run ends: each
// takes about a second. maxTimers is how many timers of an advance fire; the clock stays at
// the last of them.
const maxSpinning, maxTimers = 3, 500

// perform hands out deliveries to a new creature.
func (b *bench) perform(ctx context.Context, list []stage.Delivery, change func(*stage.Options)) ([]*stage.Record, error) {
	c, err := b.creature(b.config, change)
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	var out []*stage.Record
	spun := 0
	for i := range list {
		var records []*stage.Record
		note := func(r *stage.Record) (more bool) {
			if records = append(records, r); r.Spun() {
				spun++
			}
			return spun < maxSpinning && len(records) < maxTimers
		}
		var err error
		if list[i].Advance != "" {
			err = c.Advance(ctx, list[i].Step(), note)
		} else {
			var r *stage.Record
			if r, err = c.Deliver(ctx, &list[i]); err == nil {
				note(r)
			}
		}
		if errors.Is(err, stage.ErrManyTimers) {
			return out, nil // what has been done is enough to compare
		}
		if err != nil {
			return nil, err
		}
		joined := &stage.Record{Status: abi.OK.String()} // of an advance: what all its timers did
		if list[i].Advance == "" {
			joined = records[0]
		} else {
			for _, r := range records {
				joined.Effects = append(joined.Effects, r.Effects...)
				joined.Status, joined.Error = r.Status, r.Error
			}
		}
		out = append(out, joined)
		if spun >= maxSpinning || len(records) > 0 && records[0].Refused {
			break
		}
	}
	return out, nil
}

// deliveries draws deliveries of every kind: the same ones for the same seed.
func (b *bench) deliveries(seed uint64) []stage.Delivery {
	const count = 40
	r := rand.New(rand.NewPCG(seed, 0x7e44a))
	list := []stage.Delivery{{Kind: stage.Start}}
	tag := int64(0)
	for range count {
		d := stage.Delivery{Kind: stage.Message, Payload: b.payload(r)}
		switch n := r.IntN(20); {
		case n < 9 && len(b.listen) > 0:
			d.Alias = b.listen[r.IntN(len(b.listen))]
		case n < 11:
			d.Sender = "ann"
		case n < 13:
			d.Kind, d.Sender = stage.Request, "bob"
		case n == 13:
			d.Kind, d.Name = stage.TimerFired, []string{"t", "tick", "poll"}[r.IntN(3)]
		case n == 14:
			tag++
			d.Kind, d.Tag, d.Code = stage.Result, tag, []string{"ok", "deadline", "unavailable"}[r.IntN(3)]
		case n == 15:
			d.Kind, d.Sender, d.Wire = stage.Output, "ann", "w1"
		case n == 16 && b.notice:
			d = stage.Delivery{Kind: stage.GraphChanged, Peers: [][]string{{"ann", "bob"}, {"bob"}, {"ann", "bob", "carol"}}[r.IntN(3)]}
		case n > 17:
			d = stage.Delivery{Advance: []string{"1ms", "1s", "1m"}[r.IntN(3)]}
		}
		if d.Advance == "" && d.Kind != stage.GraphChanged && r.IntN(4) == 0 {
			d.Headers = map[string]string{"trace": string(b.payload(r)), "n": "1"}
			d.Headers["trace"] = strings.ReplaceAll(d.Headers["trace"], "\x00", "")
		}
		list = append(list, d)
	}
	return list
}

// payload draws words of the schema, text, JSON or bytes.
func (b *bench) payload(r *rand.Rand) []byte {
	word := func() string { return b.words[r.IntN(len(b.words))] }
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		out := make([]byte, r.IntN(40))
		for i := range out {
			out[i] = byte(r.Uint32())
		}
		return out
	case 2:
		text, _ := json.Marshal(map[string]any{word(): word(), word(): r.IntN(100), "kind": word()}) // strings and numbers
		return text
	case 3:
		return []byte(word() + " " + word() + " " + word())
	case 4:
		return fmt.Appendf(nil, "%d", r.IntN(2000)-1000)
	}
	return []byte(word())
}
