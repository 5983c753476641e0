// Package connector connects channels with the outside of the process: a source takes
// input and sends it on a channel, and a sink delivers the messages of a channel. A
// recipe declares them in blocks source and sink. The kinds that ship with terrarium are
// in the packages below this one. A program can add kinds of its own, in Go, and pass
// them to terrarium in its options.
//
// A source can give each message a producer and an offset, which the session keeps with
// the message. A message that is sent again, even by another process, is then left out. A
// sink gets each message with its id, and a cursor in the session records how far the
// sink has got. So each message is delivered at least once, and the receiver recognizes a
// repetition by the id.
package connector

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/seed47132306/terrarium/capability"
)

// Direction says which way messages go.
type Direction string

// The directions, which are also the names of the blocks of recipes.
const (
	Source Direction = "source" // into a channel
	Sink   Direction = "sink"   // out of a channel
)

// KindName is the name of a kind. Programs can add others. It is stable.
type KindName string

// Kind is a kind of connector. Its methods may be called from any goroutine.
type Kind interface {
	// Name identifies the kind in recipes and logs: lower-case letters, digits and
	// underscores. There may be a source and a sink of the same name. The name must never
	// change.
	Name() string
	Direction() Direction
	// Settings describe the attributes of the block, besides channel and description.
	Settings() []capability.Setting
	// Open checks settings and returns a connector. The settings are a JSON object with the
	// attributes of the block, of the types in Settings. Open must not reach outside,
	// because it is also called to check a recipe. Errors should be [abi.Error].
	Open(settings json.RawMessage) (Connector, error)
}

// Connector is a connector as a recipe has declared it.
type Connector interface {
	// Run works until ctx ends or, for a source with an end, until everything is sent. It
	// is called by one goroutine at a time. If it returns an error before ctx ends, the
	// error is reported, and Run is called again after a pause that grows with each
	// failure. With nil, the connector has ended. A connector that does not return within
	// five seconds of the end of ctx is abandoned: its port returns errors from then on. So does
	// the port after Run has returned: the next call gets a port of its own.
	Run(ctx context.Context, p Port) error
	// Reaches describes in one line, for people, what it reads or writes.
	Reaches() string
	// Endless reports whether a source has no end. Otherwise a run that ends when it is
	// idle waits for the source.
	Endless() bool
}

// Exclusive is a [Connector] that needs something for itself, such as a path or a client id: a
// recipe with two sources or sinks that need the same is refused.
type Exclusive interface {
	// Needs names that thing. The name also appears in messages. It is empty if it needs none.
	Needs() string
}

// UsesFile is a [Connector] that reads or writes a file. A recipe that writes to a file from
// which it also reads is refused, because its messages would come back.
type UsesFile interface {
	// File is the path of the file, as the settings have it.
	File() string
}

// Port is the connector's access to its channel. Its methods may be called from any
// goroutine, except that Next and Ack must be called by one goroutine at a time.
type Port interface {
	// Name is unique in the session and the same in every process.
	Name() string
	// Send sends a message on the channel of a source. It waits while the graph does not
	// accept messages. The error has the code denied if a policy refuses the message, and
	// too_large if the message is above the size limit; sending it again does not help.
	// After other errors, it may help; see [Final].
	Send(ctx context.Context, m Message) (Receipt, error)
	// Producers returns the highest offset of every producer on the channel.
	Producers() (map[string]uint64, error)
	// Next returns the next message of the channel of a sink. It waits until there is one,
	// and until that is as durable as its graph promises.
	Next(ctx context.Context) (Delivery, error)
	// Ack moves the sink's cursor past a message, but not past the last one that Next has
	// returned. After a kill, messages whose acknowledgement was not yet in the log are
	// delivered again.
	Ack(seq uint64)
	// Now returns the time of the engine. Until waits for a time; it returns the cause of
	// ctx if that ends first. If it notices that the clock was set back meanwhile, it returns
	// early, without an error.
	Now() time.Time
	Until(ctx context.Context, at time.Time) error
	// Working reports that the connector has reached what it connects to. If it then works at
	// least for as long as the last pause was, the pauses between attempts start again with the
	// shortest after the next failure.
	Working()
	// Refused reports a message that is left out, and why.
	Refused(err error)
	Log() *slog.Logger
}

// Message is a message of a source.
type Message struct {
	Payload []byte
	Headers map[string]string
	// Producer and Offset, which are set together, make sure that no message is taken twice.
	// Offsets start at 1 and have 63 bits. The name of a producer should begin with the name
	// of the port.
	Producer string
	Offset   uint64
	// Mark keeps the offset in the session, and sends nothing. A source can note with it where
	// it begins.
	Mark bool
}

// Receipt is the result of sending a message.
type Receipt interface {
	// Duplicate reports whether the offset was not new, so that the message was left out.
	Duplicate() bool
	// Wait waits until the message is as durable as its graph promises.
	Wait(ctx context.Context) error
}

// Delivery is a message for a sink.
type Delivery struct {
	ID      string // of the event; the same whenever the message is delivered
	Channel string // the name of the channel
	Seq     uint64 // in its channel
	Time    time.Time
	Sender  string // name of the sender; empty when it came from outside
	Payload []byte
	Headers map[string]string
}

// State is what a connector is doing.
type State string

// The states.
const (
	Starting State = "starting" // it has not reached what it connects to yet
	Working  State = "working"
	Retrying State = "retrying" // it has failed, and waits before the next attempt
	Ended    State = "ended"    // everything is sent
	// Abandoned: the recipe no longer declares it, or declares it differently, and it does
	// not end.
	Abandoned State = "abandoned"
)

// Status describes a connector.
type Status struct {
	Direction  Direction // `source` or `sink`
	Kind       KindName  // kind of the connector
	Name       string    // name in the recipe
	Deployment string    // recipe that declares it
	Channel    string    // address of the channel
	Reaches    string    // what it reads or writes
	State      State     // `starting`, `working`, `retrying`, `ended` or `abandoned`
	Messages   int64     // messages sent or delivered since the start of the process
	Repeated   int64     // messages that a source left out because it had taken them before
	Refused    int64     // messages that were left out because of a policy or their size
	Failures   int64     // times that it has failed since the start of the process
	Error      string    // the last failure, while it is retrying
	Remedy     string    // what to do about it
	Problem    string    // the last message that was left out, and why
}
