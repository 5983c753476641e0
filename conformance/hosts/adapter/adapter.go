// Package adapter defines the messages between the conformance suite for hosts and an
// adapter, as docs/reference/host-adapters.md describes them. It contains no
// implementation, so a host that is tested can use it.
package adapter

import "encoding/json"

// Op is what an adapter is asked to do. It is stable.
type Op string

// The operations of the adapter protocol.
const (
	OpHello   Op = "hello"   // describe the host
	OpCheck   Op = "check"   // say what is wrong with a module, without running it
	OpLoad    Op = "load"    // make a creature of a module, and an instance of it
	OpDeliver Op = "deliver" // hand one delivery to a creature
	OpSend    Op = "send"    // publish a message on a channel, from outside
	OpAdvance Op = "advance" // move the clock, and hand out all that is due
	OpDrop    Op = "drop"    // discard a creature's instance, without calling it
	OpStop    Op = "stop"    // close a creature's instance in an orderly way
	OpReset   Op = "reset"   // remove all creatures, and start over
)

// Request is one line to an adapter.
type Request struct {
	ID       int64  `json:"id"` // the response repeats it
	Op       Op     `json:"op"`
	Creature string `json:"creature,omitempty"` // its name

	// For check and load.
	Module []byte `json:"module,omitempty"`

	// For load.
	Config json.RawMessage   `json:"config,omitempty"` // a JSON object
	Send   []Edge            `json:"send,omitempty"`
	Listen []Edge            `json:"listen,omitempty"`
	Clock  bool              `json:"grant_clock,omitempty"`
	Random bool              `json:"grant_random,omitempty"`
	Limits *Limits           `json:"limits,omitempty"` // absent ones are the defaults
	Lacks  []string          `json:"lacks,omitempty"`  // features that the creature finds missing
	Tools  []Tool            `json:"tools,omitempty"`  // what tool answers
	State  map[string][]byte `json:"state,omitempty"`
	Fresh  bool              `json:"fresh,omitempty"` // every turn gets an instance of its own

	// For deliver and send.
	Kind     int32       `json:"kind,omitempty"`
	Alias    string      `json:"alias,omitempty"` // of deliver; empty: directly
	Channel  string      `json:"channel,omitempty"`
	Payload  []byte      `json:"payload,omitempty"`
	Headers  [][2]string `json:"headers,omitempty"`
	Sender   string      `json:"sender,omitempty"`
	Attempt  int         `json:"attempt,omitempty"`  // 1 by default
	Message  uint64      `json:"message,omitempty"`  // equal numbers are one message; by default a new one
	Name     string      `json:"name,omitempty"`     // of a timer
	Tag      int64       `json:"tag,omitempty"`      // of a result
	Code     string      `json:"code,omitempty"`     // of a result; ok by default
	Deadline int64       `json:"deadline,omitempty"` // of a request, in milliseconds
	Wire     string      `json:"wire,omitempty"`     // of an output

	MS int64 `json:"ms,omitempty"` // of advance; 0 hands out what waits
}

// Edge is an alias of a creature and the channel that it leads to.
type Edge struct {
	Alias   string `json:"alias"`
	Channel string `json:"channel"`
}

// Limits are those of [abi.Limits] in plain numbers, and the deadline in milliseconds.
type Limits map[string]int64

// Tool is what the function tool answers for a name.
type Tool struct {
	Name   string `json:"name"`
	Result string `json:"result,omitempty"`
	Code   string `json:"code,omitempty"` // refuses the call
}

// Response is one line from an adapter.
type Response struct {
	ID int64 `json:"id"`
	// Error is about the adapter itself: it could not do what was asked.
	Error string `json:"error,omitempty"`
	// Lacks says that the host cannot do this at all, so that it is not scored.
	Lacks string `json:"lacks,omitempty"`

	// For hello.
	Host     string   `json:"host,omitempty"`
	Version  string   `json:"version,omitempty"`
	Features []string `json:"features,omitempty"`

	// For check: all problems. A module without problems has none.
	Problems []Problem `json:"problems,omitempty"`
	// For advance: what creatures did, in order. For load, deliver and stop: one, or none
	// if nothing was run.
	Turns []Turn `json:"turns,omitempty"`
	// For load, deliver and stop: how many instances of the creature were made so far.
	Instances int `json:"instances,omitempty"`
}

// Problem is why a module is refused.
type Problem struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Turn is what one call into a guest did.
type Turn struct {
	Creature string      `json:"creature"`
	Kind     int32       `json:"kind,omitempty"`  // of a delivery
	Alias    string      `json:"alias,omitempty"` // of its channel
	Payload  []byte      `json:"payload,omitempty"`
	Status   string      `json:"status"`         // ok, or the code of the failure
	Text     string      `json:"text,omitempty"` // of the failure
	Effects  []Effect    `json:"effects,omitempty"`
	Logs     [][2]string `json:"logs,omitempty"` // level and text
}

// EffectKind is the kind of an effect. It is stable.
type EffectKind string

// The kinds of effects, in the order of a transcript.
const (
	EffectSend    EffectKind = "send"    // to a channel: alias
	EffectSendTo  EffectKind = "send_to" // to a creature: name
	EffectRequest EffectKind = "request"
	EffectReply   EffectKind = "reply"
	EffectOutput  EffectKind = "output"
	EffectState   EffectKind = "state"
	EffectDelete  EffectKind = "delete"
	EffectTimer   EffectKind = "timer"
	EffectCancel  EffectKind = "cancel"
)

// Effect is an effect of a turn.
type Effect struct {
	Kind    EffectKind  `json:"kind"`
	To      string      `json:"to,omitempty"` // alias, creature, key or name of the timer
	Payload []byte      `json:"payload,omitempty"`
	Headers [][2]string `json:"headers,omitempty"`
	Tag     int64       `json:"tag,omitempty"`
	MS      int64       `json:"ms,omitempty"` // deadline of a request, delay of a timer
	Period  int64       `json:"period,omitempty"`
}
