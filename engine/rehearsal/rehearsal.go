// Package rehearsal defines the data of a turn that is run outside of any engine: the
// delivery that it handles, and the effects that it would have had.
package rehearsal

import (
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Delivery is a delivery as a guest sees it.
type Delivery struct {
	Kind    abi.Kind
	ID      journal.EventID // zero: a start, or a change of the graph
	Time    int64           // nanoseconds since 1970
	Channel journal.ChannelID
	Seq     uint64
	Alias   string // of the channel; empty for the inbox
	Sender  string // name
	Headers []byte // in the form of the ABI
	Payload []byte
	Attempt int // from 1
	// Revision of the awareness document.
	Revision uint64
}

// Effects are the effects that a turn requests.
type Effects struct {
	Sends  []Send
	Reply  []byte               // nil: none
	Output []byte               // nil: none
	Writes []journal.StateRow   // in ascending order of keys
	Timers []journal.NotedTimer // in ascending order of names
	Logs   []journal.LogPayload
}

// Send is a message that a turn requests to send: on a channel, or to a creature.
type Send struct {
	Channel  journal.ChannelID
	To       journal.CreatureID
	Request  bool   // it waits for a reply
	Reach    string // the capability that it is a request to; Headers is its head
	Deadline time.Duration
	Tag      int64
	Payload  []byte
	Headers  []byte
}
