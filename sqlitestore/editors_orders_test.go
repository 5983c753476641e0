package sqlitestore

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/seed47132306/terrarium/engine/journal"
)

// toolCall is a call that an order requests, with the arguments that these tests use.
type toolCall struct {
	Tool string   `json:"tool"`
	Args callArgs `json:"args"`
}

type callArgs struct {
	Species   string              `json:"species,omitempty"`
	Name      string              `json:"name,omitempty"`
	Creature  string              `json:"creature,omitempty"`
	Action    string              `json:"action,omitempty"`
	Channel   string              `json:"channel,omitempty"`
	Direction string              `json:"direction,omitempty"`
	Merge     bool                `json:"merge,omitempty"`
	From      string              `json:"from,omitempty"`
	To        string              `json:"to,omitempty"`
	Wire      string              `json:"wire,omitempty"`
	Listen    []map[string]string `json:"listen,omitempty"`
}

// orderOf returns the order with a number for a side: a few calls that follow from the seed.
// What they name may not exist.
func orderOf(seed uint64, side string, n uint64, otherGate journal.ChannelID) []byte {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, side, n)
	w := &orderWriter{rand.New(rand.NewPCG(seed, h.Sum64())), side, string(otherGate)}
	order := struct {
		ID    uint64     `json:"id"`
		Calls []toolCall `json:"calls"`
	}{ID: n}
	for range 1 + w.random.IntN(3) {
		order.Calls = append(order.Calls, w.calls()...)
	}
	b, _ := json.Marshal(order)
	return b
}

type orderWriter struct {
	random    *rand.Rand
	side      string
	otherGate string // channel of the other side, by id
}

// hand returns the name of a hand that may exist: there are more names than hands may live.
func (w *orderWriter) hand() string { return fmt.Sprintf("%s-%d", w.side, w.random.IntN(mostHands+2)) }

func (w *orderWriter) notes() string { return fmt.Sprintf("%s-notes-%d", w.side, w.random.IntN(3)) }

func (w *orderWriter) calls() []toolCall {
	if w.random.IntN(12) > 0 {
		return []toolCall{w.call()}
	}
	// A channel without wires could end up in either part of a split.
	name := w.notes()
	return []toolCall{
		{"group_channel", callArgs{Action: "create", Name: name}},
		{"group_channel", callArgs{Action: "wire", Creature: w.side + "-relay", Channel: name, Direction: "listen"}},
	}
}

func (w *orderWriter) call() toolCall {
	switch w.random.IntN(17) {
	case 0, 1, 2, 3:
		return toolCall{"group_add_node", callArgs{Species: handSpecies, Name: w.hand(), Listen: []map[string]string{{"channel": w.side + "-answers"}}}}
	case 4, 5:
		return toolCall{"group_remove_node", callArgs{Creature: w.hand()}}
	case 6:
		return toolCall{"group_stop_node", callArgs{Creature: w.hand()}}
	case 7:
		return toolCall{"group_start_node", callArgs{Creature: w.hand()}}
	case 8:
		return toolCall{"group_wire", callArgs{Action: "add", From: w.hand(), To: w.hand(), Name: "told"}}
	case 9:
		return toolCall{"group_wire", callArgs{Action: "remove", From: w.hand(), Wire: "told"}}
	case 10:
		return toolCall{"group_channel", callArgs{Action: "delete", Channel: w.notes()}}
	case 11:
		return toolCall{"group_channel", callArgs{Action: "wire", Creature: w.hand(), Channel: w.notes(), Direction: "listen"}}
	case 12, 13: // a bridge; removing its creature removes it, too
		return toolCall{"group_channel", callArgs{Action: "wire", Creature: w.bridge(), Channel: w.otherGate, Direction: "listen", Merge: true}}
	}
	return toolCall{"group_channel", callArgs{Action: "unwire", Creature: w.bridge(), Channel: w.otherGate, Direction: "listen"}}
}

// bridge is a hand or the relay.
func (w *orderWriter) bridge() string {
	if w.random.IntN(2) == 0 {
		return w.side + "-relay"
	}
	return w.hand()
}
