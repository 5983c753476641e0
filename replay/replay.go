package replay

import (
	"context"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Source is a session directory whose turns are run again; it is only read.
type Source interface {
	journal.Chronicle
	// Messages reads messages of a channel; see [journal.Store].
	Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error)
}

// Options say what is run again, and on what.
type Options struct {
	Source Source   // required
	Host   abi.Host // required; it is not closed
	// Load reads a module by the name that was recorded.
	Load func(ctx context.Context, module string) ([]byte, error)
	// Creatures are the ids or names of those whose turns are run again; in names *
	// stands for any text. None means all.
	Creatures []string
	// Module is run in place of the recorded modules, which are those of Creatures.
	Module []byte
	// From begins behind a cursor; see [journal.EventCursor]. Empty means the start.
	From journal.EventCursor
	// Sessions, if it is not nil, chooses among the sessions.
	Sessions func(*journal.SessionInfo) bool
	// Fresh makes a new instance for each turn, where otherwise one is kept as long as
	// it does not fail.
	Fresh bool
	// All goes on behind the first turn that differs.
	All bool
}

// Report says what came of it.
type Report struct {
	Turns       int          `json:"turns"`       // that were run and compared
	Differ      int          `json:"differ"`      // of them, as far as was gone on
	Differences []Difference `json:"differences"` // in the order of the log; at most [MaxDifferences]
	Unjudged    []Unjudged   `json:"unjudged"`    // turns that could not be compared
}

// MaxDifferences is how many differences a report describes.
const MaxDifferences = 100

// Difference is a turn that did something else than was recorded.
type Difference struct {
	Turn     journal.EventID     `json:"turn"` // its event, turn_ended or turn_failed
	Creature journal.CreatureID  `json:"creature"`
	Name     string              `json:"name"` // of the creature, then
	Attempt  int                 `json:"attempt"`
	Ended    time.Time           `json:"ts"`
	Cursor   journal.EventCursor `json:"cursor"` // begins with this turn, for Options.From
	Delivery Delivery            `json:"delivery"`
	Recorded []Effect            `json:"recorded"`
	Replayed []Effect            `json:"replayed"`
	// First is the place of the first effect that differs, in both lists.
	First int `json:"first"`
}

// Delivery is what a turn handled.
type Delivery struct {
	Kind    journal.DeliveryKind `json:"kind"`
	Message journal.EventID      `json:"message,omitzero"` // none for a start, or a change of the surroundings
	Channel journal.ChannelID    `json:"channel,omitempty"`
	Alias   string               `json:"alias,omitempty"` // of the channel; none for the inbox
	Seq     uint64               `json:"seq,omitempty"`
	Sender  string               `json:"sender,omitempty"`
	Payload Text                 `json:"payload,omitempty"`
}

// Unjudged are turns of a creature that could not be compared, and why.
type Unjudged struct {
	Creature journal.CreatureID `json:"creature"`
	Name     string             `json:"name,omitempty"`
	Reason   Reason             `json:"reason"`
	Detail   string             `json:"detail,omitempty"` // for example which module it was
	Turns    int                `json:"turns"`
	First    journal.EventID    `json:"first"`
	Last     journal.EventID    `json:"last"`
}

// Reason says why a turn could not be compared. It is stable.
type Reason string

// The reasons. All but the first three are about something that the guest asked for.
const (
	NoSetting   Reason = "setting"   // the history does not say what the creature was
	NoMessage   Reason = "message"   // the log does not have its message any more
	NoModule    Reason = "module"    // the module that was recorded is not to be had
	ByDeadline  Reason = "deadline"  // it was ended by the clock
	UnknownKey  Reason = "state"     // a key of the state that the history has not told of yet
	UnknownName Reason = "timers"    // a timer that the history has not told of yet
	RealClock   Reason = "clock"     // the real time, which was granted
	RealRandom  Reason = "random"    // real random bytes, which were granted
	Secret      Reason = "secret"    // a configuration with secret attributes, which no store keeps
	Surrounding Reason = "awareness" // the awareness document
	SenderName  Reason = "sender"    // the name of a sender who had another one, or is gone
	Peers       Reason = "peers"     // a creature that the history has not told of
	Tools       Reason = "tools"     // what a group tool answered
)

// Text says the same in words, of turns: "they …".
func (r Reason) Text() string {
	if text := reasons[r]; text != "" {
		return text
	}
	return string(r)
}

var reasons = map[Reason]string{
	NoSetting:   "come before the log first says what the creature was",
	NoMessage:   "handled messages that the log does not have any more",
	NoModule:    "ran on a module that is not to be had",
	ByDeadline:  "were ended by the clock, which does not repeat itself",
	UnknownKey:  "read a key of the state that was last written before the history begins",
	UnknownName: "cancel a timer that was last set before the history begins",
	RealClock:   "ask for the real time, which was granted",
	RealRandom:  "ask for real random bytes, which were granted",
	Secret:      "read a secret attribute of the configuration, which no store keeps",
	Surrounding: "read the awareness document, which is not in the log",
	SenderName:  "ask for the name of a sender that has another one now, or is gone",
	Peers:       "name a creature of which the history does not tell",
	Tools:       "got an answer from a group tool that this version does not know",
}

// Run runs recorded turns again. Turns that differ are no error: the report has them.
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
		return invalid("it is not said whose module is replaced", "name the creatures")
	}
	return nil
}

func invalid(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "replay", Message: message, Remedy: remedy}
}

// Skipped is how many turns could not be compared.
func (r *Report) Skipped() (n int) {
	for _, u := range r.Unjudged {
		n += u.Turns
	}
	return n
}

// Same reports whether something was compared, and nothing differed.
func (r *Report) Same() bool { return r.Turns > 0 && r.Differ == 0 }

// noteUnjudged counts a turn that was not compared.
func (r *Report) noteUnjudged(t *recorded, name string, reason Reason, detail string) {
	same := func(u Unjudged) bool {
		return u.Creature == t.creature && u.Reason == reason && u.Detail == detail
	}
	at := slices.IndexFunc(r.Unjudged, same)
	if at < 0 {
		at = len(r.Unjudged)
		r.Unjudged = append(r.Unjudged, Unjudged{Creature: t.creature, Name: name, Reason: reason, Detail: detail, First: t.event.ID})
	}
	u := &r.Unjudged[at]
	u.Turns++
	u.Last = t.event.ID
	u.Name = name
}
