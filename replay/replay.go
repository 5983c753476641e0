package replay

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Source is a session directory whose turns are run again. It is only read.
type Source interface {
	journal.Chronicle
	// Messages reads messages of a channel; see [journal.Store].
	Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error)
}

// Options selects the turns to run again, and the module.
type Options struct {
	Source Source   // required
	Host   abi.Host // required; it is not closed
	// Load reads a module by its recorded name.
	Load func(ctx context.Context, module string) ([]byte, error)
	// Creatures lists the ids or names of creatures whose turns are run again. In names,
	// * matches any text. Empty means all.
	Creatures []string
	// Module replaces the recorded modules of Creatures.
	Module []byte
	// From is the cursor after which to begin; see [journal.EventCursor]. Empty means the start.
	From journal.EventCursor
	// First is the event of the first turn to compare; the turns before it only determine
	// the state. Zero means all.
	First journal.EventID
	// Sessions, if not nil, selects sessions.
	Sessions func(*journal.SessionInfo) bool
	// Fresh runs every turn on a new instance. Otherwise an instance is kept until it
	// fails.
	Fresh bool
	// All continues after the first turn that differs.
	All bool

	only journal.EventID // the turn to run; zero: see First
}

// Report is the result of a replay.
type Report struct {
	Turns       int          `json:"turns"`       // turns that were run and compared
	Differ      int          `json:"differ"`      // turns that differ, up to the end of the replay
	Differences []Difference `json:"differences"` // in the order of the log; at most [MaxDifferences]
	Unjudged    []Unjudged   `json:"unjudged"`    // turns that could not be compared
}

// MaxDifferences is the largest number of differences that a report describes.
const MaxDifferences = 100

// Difference is a turn whose effects differ from the record.
type Difference struct {
	Turn     journal.EventID     `json:"turn"` // its event, turn_ended or turn_failed
	Creature journal.CreatureID  `json:"creature"`
	Name     string              `json:"name"` // the creature's name at that time
	Attempt  int                 `json:"attempt"`
	Ended    time.Time           `json:"ts"`
	Cursor   journal.EventCursor `json:"cursor"` // begins with this turn, for Options.From
	Delivery Delivery            `json:"delivery"`
	Recorded []Effect            `json:"recorded"`
	Replayed []Effect            `json:"replayed"`
	// First is the index of the first effect that differs, in both lists.
	First int `json:"first"`
}

// Delivery is the delivery that a turn handled.
type Delivery struct {
	Kind    journal.DeliveryKind `json:"kind"`
	Message journal.EventID      `json:"message,omitzero"` // absent for a start and for graph_changed
	Channel journal.ChannelID    `json:"channel,omitempty"`
	Alias   string               `json:"alias,omitempty"` // alias of the channel; absent for the inbox
	Seq     uint64               `json:"seq,omitempty"`
	Sender  string               `json:"sender,omitempty"`
	Payload Text                 `json:"payload,omitempty"`
}

// Unjudged counts the turns of a creature that could not be compared for one reason.
type Unjudged struct {
	Creature journal.CreatureID `json:"creature"`
	Name     string             `json:"name,omitempty"`
	Reason   Reason             `json:"reason"`
	Detail   string             `json:"detail,omitempty"` // for example the module
	Turns    int                `json:"turns"`
	First    journal.EventID    `json:"first"`
	Last     journal.EventID    `json:"last"`
}

// Reason is the reason why a turn could not be compared. It is stable.
type Reason string

// The reasons. All but the first three concern a call of the guest.
const (
	NoSetting   Reason = "setting"   // the history lacks the creature's setting
	NoMessage   Reason = "message"   // the log no longer has its message
	NoModule    Reason = "module"    // the recorded module is not available
	ByDeadline  Reason = "deadline"  // it was ended by the clock
	UnknownKey  Reason = "state"     // a key of the state that the history has not mentioned yet
	UnknownName Reason = "timers"    // a timer that the history has not mentioned yet
	RealClock   Reason = "clock"     // the real time, which was granted
	RealRandom  Reason = "random"    // real random bytes, which were granted
	Secret      Reason = "secret"    // a configuration with secret attributes, which no store keeps
	Surrounding Reason = "awareness" // the awareness document
	SenderName  Reason = "sender"    // the name of a sender that was renamed or removed
	Peers       Reason = "peers"     // a creature that the history has not mentioned
	Tools       Reason = "tools"     // the answer of a group tool
	Outside     Reason = "outside"   // the answer of a capability
)

// Text returns the reason in words, as the end of a sentence about turns.
func (r Reason) Text() string {
	if text := reasons[r]; text != "" {
		return text
	}
	return string(r)
}

var reasons = map[Reason]string{
	NoSetting:   "come before the first record of the creature's setting",
	NoMessage:   "handled messages that the log no longer has",
	NoModule:    "ran on a module that is not available",
	ByDeadline:  "were ended by the clock, which does not repeat itself",
	UnknownKey:  "read a key of the state that was last written before the history begins",
	UnknownName: "cancel a timer that was last set before the history begins",
	RealClock:   "read the real time, which was granted",
	RealRandom:  "read real random bytes, which were granted",
	Secret:      "read a secret attribute of the configuration, which no store keeps",
	Surrounding: "read the awareness document, which is not in the log",
	SenderName:  "read the name of a sender that has been renamed or removed",
	Peers:       "name a creature that is missing from the history",
	Tools:       "got an answer from a group tool that this version does not know",
	Outside:     "got an answer from a capability that this version does not know",
}

// Run runs recorded turns again. Turns that differ are not an error; the report lists them.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w, err := newWalk(ctx, o)
	if err != nil {
		return nil, err
	}
	defer w.close(context.WithoutCancel(ctx))
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return w.stage.report()
}

func (o *Options) check() error {
	if o.Source == nil || o.Host == nil {
		return invalid("a replay needs a source and a host", "set both")
	}
	if len(o.Module) > 0 && len(o.Creatures) == 0 {
		return invalid("Module is set, but Creatures names no creature whose module it replaces", "name the creatures")
	}
	return nil
}

func invalid(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "replay", Message: message, Remedy: remedy}
}

// Skipped returns the number of turns that could not be compared.
func (r *Report) Skipped() (n int) {
	for _, u := range r.Unjudged {
		n += u.Turns
	}
	return n
}

// Same reports whether turns were compared and none differed.
func (r *Report) Same() bool { return r.Turns > 0 && r.Differ == 0 }
