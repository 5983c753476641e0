package operations

import (
	"context"
	"strings"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// RequestArgs are the arguments of request.
type RequestArgs struct {
	Creature string            `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Payload  Payload           `json:"payload" doc:"bytes of the request"`
	Headers  map[string]string `json:"headers,omitempty" doc:"headers; names and values must not contain NUL"`
	Deadline Duration          `json:"deadline,omitempty" doc:"how long to wait; 30 s if left out"`
}

// RequestResult is the result of request.
type RequestResult struct {
	Reply Payload `json:"reply"` // bytes of the reply
}

// ReplaceModuleArgs are the arguments of replace_module.
type ReplaceModuleArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Module   string `json:"module" op:"required" doc:"path, or builtin:NAME"`
	Check    int    `json:"check,omitempty" doc:"how many of the creature's last recorded turns the module must repeat first, with the same effects"`
	CheckAll bool   `json:"check_all,omitempty" doc:"check all of its recorded turns"`
	Force    bool   `json:"force,omitempty" doc:"replace the module even if the check fails"`
}

// ReplaceModuleResult is the result of replace_module.
type ReplaceModuleResult struct {
	Creature     terrarium.CreatureID `json:"creature"`
	Graph        terrarium.GraphID    `json:"graph"`            // graph of the creature
	Module       string               `json:"module"`           // the new module
	SHA256       string               `json:"module_sha256"`    // SHA-256 of the new module
	Former       string               `json:"former,omitempty"` // the former module; the same operation with this module undoes the replacement
	FormerSHA256 string               `json:"former_sha256"`    // SHA-256 of the former module
	Check        *ModuleCheck         `json:"check,omitempty"`  // result of the check, if there was one
}

// ModuleCheck is the result of a check in replace_module.
type ModuleCheck struct {
	Turns      int    `json:"turns"`                // turns that were compared
	Skipped    int    `json:"skipped"`              // turns that could not be compared
	Difference string `json:"difference,omitempty"` // the first difference; only with force
}

// TimersArgs are the arguments of timers.
type TimersArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Prefix   string `json:"prefix,omitempty" doc:"only timers whose names have this prefix"`
}

// TimersResult is the result of timers.
type TimersResult struct {
	Timers []TimerRecord `json:"timers"` // the timers of the creature
}

// TimerRecord is the JSON form of a timer.
type TimerRecord struct {
	Name    string   `json:"name"`             // name of the timer, which its creature chose
	Due     string   `json:"due"`              // RFC 3339, UTC
	Period  Duration `json:"period,omitempty"` // interval of a timer that repeats
	Payload Payload  `json:"payload"`
}

// hideContent implements withoutContent.
func (r *TimersResult) hideContent() {
	for i := range r.Timers {
		r.Timers[i].Payload = nil
	}
}

// DeadLettersArgs are the arguments of dead_letters.
type DeadLettersArgs struct {
	Graph    string `json:"graph,omitempty" doc:"any id the graph has had, or the name of a member; not needed if there is only one graph"`
	Creature string `json:"creature,omitempty" doc:"only dead letters of this creature"`
	After    string `json:"after,omitempty" doc:"only dead letters listed after the one with this id"`
	Limit    int    `json:"limit,omitempty" doc:"maximum number of dead letters; 1,000 if left out"`
}

// DeadLettersResult is the result of dead_letters.
type DeadLettersResult struct {
	DeadLetters []DeadLetterRecord `json:"dead_letters"` // at most as many as the limit
}

// DeadLetterRecord is the JSON form of a dead letter.
type DeadLetterRecord struct {
	ID        string               `json:"id"`                // id of the `dead_letter` event
	TS        string               `json:"ts"`                // RFC 3339, UTC
	Creature  terrarium.CreatureID `json:"creature"`          // creature that should have handled it or, if no edge led anywhere, that sent it
	Message   string               `json:"message,omitempty"` // id of the message; absent if it never entered a log
	Kind      journal.EventKind    `json:"kind"`              // kind of the message
	Channel   terrarium.ChannelID  `json:"channel,omitempty"` // channel on which it came
	Seq       uint64               `json:"seq,omitempty"`
	Sender    terrarium.CreatureID `json:"sender,omitempty"`
	Alias     string               `json:"alias,omitempty"`      // alias under which it was sent, if no edge led anywhere; otherwise the creature's alias for the channel
	Reason    journal.DeadReason   `json:"reason"`               // why it was not handled; see [the reasons](events.md#dead_letter)
	Attempts  int                  `json:"attempts,omitempty"`   // how often it was tried
	Error     string               `json:"error,omitempty"`      // error of the last attempt
	LastWords string               `json:"last_words,omitempty"` // the last line that the creature logged
	Headers   map[string]string    `json:"headers,omitempty"`
	Payload   Payload              `json:"payload"`
}

// hideContent implements withoutContent.
func (r *DeadLettersResult) hideContent() {
	for i := range r.DeadLetters {
		l := &r.DeadLetters[i]
		l.Headers, l.Payload, l.LastWords = nil, nil, ""
	}
}

// NewDeadLetterRecord returns the JSON form of a dead letter.
func NewDeadLetterRecord(l *journal.DeadLetterRow) DeadLetterRecord {
	return DeadLetterRecord{
		ID: l.ID.String(), TS: stamp(l.Time), Creature: l.Creature, Message: l.Message.String(), Kind: l.Kind,
		Channel: l.Channel, Seq: l.Seq, Sender: l.Sender, Alias: l.Alias, Reason: l.Reason, Attempts: l.Attempts,
		Error: l.Error, LastWords: l.LastWords, Headers: journal.DecodeHeaders(l.Headers), Payload: l.Payload,
	}
}

// RedeliverArgs are the arguments of redeliver.
type RedeliverArgs struct {
	Message string `json:"message" op:"required" doc:"id of the dead letter, or of its message"`
	Graph   string `json:"graph,omitempty" doc:"any id the graph has had, or the name of a member; not needed if there is only one graph"`
}

// VerifyArgs are the arguments of verify. They name a session as in lineage.
type VerifyArgs LineageArgs

// VerifyResult is the result of verify. For an intact session all lists are empty,
// except for incomplete_from: it names ancestors whose files still hold part of the
// session's history.
type VerifyResult struct {
	Session        terrarium.SessionID   `json:"session"`         // session that was checked
	Events         int64                 `json:"events"`          // number of events that were checked
	Missing        []string              `json:"missing"`         // gaps in the numbers of events and of messages
	Duplicate      []string              `json:"duplicate"`       // numbers of messages that occur twice in a channel
	OutOfOrder     []string              `json:"out_of_order"`    // messages whose numbers are not in the order of their times
	IncompleteFrom []terrarium.SessionID `json:"incomplete_from"` // ancestors whose files still contain a part of the history
	Damage         []string              `json:"damage"`          // damage of the file, and contradictions between live rows
}

// NewVerifyResult returns the JSON form of a report.
func NewVerifyResult(r *journal.VerifyReport) *VerifyResult {
	return &VerifyResult{
		Session: r.Session, Events: r.Events, Missing: filled(r.Missing), Duplicate: filled(r.Duplicate),
		OutOfOrder: filled(r.OutOfOrder), IncompleteFrom: filled(r.IncompleteFrom), Damage: filled(r.Damage),
	}
}

// Sound reports whether the session is intact. It is intact even if part of its history
// has not been copied to its own file yet.
func (r *VerifyResult) Sound() bool {
	return len(r.Missing)+len(r.Duplicate)+len(r.OutOfOrder)+len(r.Damage) == 0
}

// filled returns a list that is never null in JSON.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func supervisionOperations() []Operation {
	return []Operation{
		wait("request", "Sends a request directly to a creature and waits for its reply.", request),
		read("replace_module", "Makes a running creature continue with another module. It keeps its state, cursors, timers and waiting deliveries. "+
			"If a recipe declares the creature, applying the recipe again returns it to the recipe's module.", replaceModule).needs(Admin),
		read("timers", "Lists the timers that a creature has set.", timers),
		read("dead_letters", "Lists dead letters: deliveries that no creature has handled.", deadLetters),
		read("redeliver", "Delivers a dead letter again.", redeliver).needs(Operate),
		read("verify", "Checks that a session's log contains every event once and that every channel is in order.", verify),
	}
}

func request(ctx context.Context, s *client, a *RequestArgs) (*RequestResult, func(context.Context) (*RequestResult, error), error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, nil, err
	}
	call, err := s.t.Ask(ctx, c, engine.Outgoing{Payload: a.Payload, Headers: a.Headers}, time.Duration(a.Deadline))
	if err != nil {
		return nil, nil, err
	}
	return nil, func(ctx context.Context) (*RequestResult, error) {
		reply, err := call.Reply(ctx)
		if err != nil {
			return nil, err
		}
		return &RequestResult{reply}, nil
	}, nil
}

func replaceModule(ctx context.Context, s *client, a *ReplaceModuleArgs) (*ReplaceModuleResult, error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	o := terrarium.ReplaceOptions{Module: a.Module, Check: a.Check, Force: a.Force}
	if a.CheckAll {
		o.Check = terrarium.AllTurns
	}
	r, err := s.t.ReplaceModule(ctx, c, o)
	if err != nil {
		return nil, err
	}
	out := &ReplaceModuleResult{
		Creature: r.Creature, Graph: r.Graph, Module: r.Module, SHA256: r.SHA256, Former: r.Former, FormerSHA256: r.FormerSHA256,
	}
	if check := r.Check; check != nil {
		out.Check = &ModuleCheck{Turns: check.Turns, Skipped: check.Skipped()}
		if check.Differ > 0 {
			out.Check.Difference = (&terrarium.CheckFailed{Report: check}).Error()
		}
	}
	return out, nil
}

func timers(_ context.Context, s *client, a *TimersArgs) (*TimersResult, error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	rows, err := s.t.Timers(c)
	if err != nil {
		return nil, err
	}
	out := &TimersResult{Timers: []TimerRecord{}}
	for _, r := range rows {
		if strings.HasPrefix(r.Name, a.Prefix) {
			out.Timers = append(out.Timers, TimerRecord{r.Name, stamp(r.Due), Duration(r.Period), r.Payload})
		}
	}
	return out, nil
}

// oneGraph finds the graph of an operation.
func oneGraph(ctx context.Context, s *client, op, name string) (terrarium.GraphID, error) {
	if name != "" {
		return s.t.FindGraph(ctx, name)
	}
	graphs, err := s.t.Status("")
	if err != nil {
		return "", err
	}
	if len(graphs) != 1 {
		return "", invalid(op, "graph is missing", "name a graph; status lists them")
	}
	return graphs[0].ID, nil
}

func deadLetters(ctx context.Context, s *client, a *DeadLettersArgs) (*DeadLettersResult, error) {
	g, err := oneGraph(ctx, s, "dead_letters", a.Graph)
	if err != nil {
		return nil, err
	}
	var c terrarium.CreatureID
	if a.Creature != "" {
		if c, err = s.t.FindCreature("", a.Creature); err != nil {
			return nil, err
		}
	}
	after, err := journal.ParseEventID(a.After)
	if err != nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "dead_letters", Message: "after is not the id of a dead letter", Remedy: "use the id of a dead letter; dead_letters lists them", Err: err}
	}
	rows, err := s.t.DeadLetters(ctx, g, c, after, a.Limit)
	if err != nil {
		return nil, err
	}
	out := &DeadLettersResult{DeadLetters: []DeadLetterRecord{}}
	for i := range rows {
		out.DeadLetters = append(out.DeadLetters, NewDeadLetterRecord(&rows[i]))
	}
	return out, nil
}

func redeliver(ctx context.Context, s *client, a *RedeliverArgs) (*SendResult, error) {
	g, err := oneGraph(ctx, s, "redeliver", a.Graph)
	if err != nil {
		return nil, err
	}
	id, err := journal.ParseEventID(a.Message)
	if err != nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "redeliver", Message: "message is not an id", Remedy: "take the id from dead_letters", Err: err}
	}
	sent, err := s.t.Redeliver(ctx, g, id)
	if err != nil {
		return nil, err
	}
	return &SendResult{Message: sent.Message.String(), Seq: sent.Seq}, nil
}

func verify(ctx context.Context, s *client, a *VerifyArgs) (*VerifyResult, error) {
	of, err := graphOrSession(ctx, s, "verify", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	report, err := s.t.Verify(ctx, of)
	if err != nil {
		return nil, err
	}
	return NewVerifyResult(&report), nil
}
