package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TurnOptions names a recorded turn to run again, and the module.
type TurnOptions struct {
	Source Source   // required
	Host   abi.Host // required; it is not closed
	// Load reads a module by its recorded name.
	Load func(ctx context.Context, module string) ([]byte, error)
	Turn journal.EventID // its event, turn_ended or turn_failed
	// Module replaces the recorded module.
	Module []byte
	// Sessions, if not nil, selects sessions in whose history the turn is looked up.
	Sessions func(*journal.SessionInfo) bool
}

// Comparison contains what a turn did and what it did when it was run again, even if that
// is the same.
type Comparison struct {
	Difference // First is -1 if nothing differs
	Session    journal.SessionID
	Graph      journal.GraphID
	Then       Performed
	Again      Performed
}

// Performed describes one of the two sides.
type Performed struct {
	Module string // what was loaded; empty for Options.Module
	SHA256 string // of the module
	Fuel   int64  // that the guest used; -1 if that is not known
	Code   string // of the failure; empty if the turn succeeded
	Error  string // what happened, with the location in the module if that is known
}

// Pair is an effect of the record beside the one that takes its place in the replay.
type Pair struct {
	Then, Again *Effect // nil: this side has none
	Same        bool
}

// Pairs puts the effects of both sides next to each other. Effects that differ are paired if
// they have the same kind and target, or else the same kind.
func (d *Difference) Pairs() []Pair {
	var out []Pair
	var then, again []Effect
	flush := func() {
		out = append(out, pairs(then, again)...)
		then, again = nil, nil
	}
	for _, c := range d.Diff() {
		switch c.Sign {
		case '-':
			then = append(then, c.Effect)
		case '+':
			again = append(again, c.Effect)
		default:
			flush()
			out = append(out, Pair{&c.Effect, &c.Effect, true})
		}
	}
	flush()
	return out
}

// pairs pairs effects that all differ. The order of the record is kept.
func pairs(then, again []Effect) []Pair {
	out := make([]Pair, 0, len(then)+len(again))
	for i := range then {
		out = append(out, Pair{Then: &then[i]})
	}
	taken := make([]bool, len(again))
	for _, fits := range []func(a, b *Effect) bool{
		func(a, b *Effect) bool { return a.Kind == b.Kind && a.Target == b.Target },
		func(a, b *Effect) bool { return a.Kind == b.Kind },
	} {
		next := 0
		for i := range then {
			if out[i].Again != nil {
				continue
			}
			for at := next; at < len(again); at++ {
				if !taken[at] && fits(&then[i], &again[at]) {
					out[i].Again, taken[at], next = &again[at], true, at+1
					break
				}
			}
		}
	}
	for i := range again {
		if !taken[i] {
			out = append(out, Pair{Again: &again[i]})
		}
	}
	return out
}

// Turn runs one recorded turn again, with its delivery, state and configuration, and compares
// it with the record. Nothing changes, and requests to capabilities are answered from the
// record. The limits of the creature apply, except that it gets more time: see [Run]. To
// determine the state, Turn reads the history of the creature's graph up to the turn, so the
// caller bounds the time with ctx.
//
// A turn that cannot be run again is an error: not_found if the log lacks it or something
// that it needs, conflict if the recorded module has changed, and unsupported if it got an
// answer that is in no log. The error's ids name the turn and the [Reason].
func Turn(ctx context.Context, o TurnOptions) (*Comparison, error) {
	if o.Source == nil || o.Host == nil || o.Turn.IsZero() {
		return nil, invalid("a turn to run again needs a source, a host and an id", "set all of them")
	}
	ev, sessions, err := o.find(ctx)
	if err != nil {
		return nil, err
	}
	w, err := newWalk(ctx, Options{
		Source: o.Source, Host: o.Host, Load: o.Load, Module: o.Module, Creatures: []string{string(ev.Creature)}, Sessions: sessions, only: o.Turn,
	})
	if err != nil {
		return nil, err
	}
	defer w.close(context.WithoutCancel(ctx))
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	r := w.stage.repeated
	if r == nil {
		return nil, o.problem(ev, &abi.Error{
			Code: abi.Unsupported, Message: "the turn ran no guest: a group tool was called on behalf of the creature", Remedy: "choose a turn that handled a delivery",
		})
	}
	if r.gap != nil {
		return nil, o.problem(ev, o.unknown(r))
	}
	return &r.Comparison, nil
}

// find looks the event of the turn up. It returns the sessions whose logs lead to it: the one
// that wrote it, and the ancestors of that.
func (o *TurnOptions) find(ctx context.Context) (*journal.Event, func(*journal.SessionInfo) bool, error) {
	list, err := o.Source.Catalogue(ctx)
	if err != nil {
		return nil, nil, err
	}
	gone := &abi.Error{Code: abi.NotFound, Message: "there is no such turn", Remedy: "take the id from a turn_ended or turn_failed event; history lists them"}
	if o.Turn.Seq == 0 {
		return nil, nil, o.problem(nil, gone)
	}
	before := journal.Mark{Event: journal.EventID{Origin: o.Turn.Origin, Seq: o.Turn.Seq - 1}, Since: math.MaxInt64} // nothing of other origins is behind it
	later := false
	for i := len(list) - 1; i >= 0; i-- {
		if o.Sessions != nil && !o.Sessions(&list[i]) {
			continue
		}
		found, err := o.Source.History(ctx, list[i].Session, journal.HistoryQuery{Own: true, Behind: before, Limit: 1})
		switch {
		case abi.CodeOf(err) == abi.NotFound: // it has been deleted meanwhile, or left no file
			continue
		case err != nil:
			return nil, nil, err
		case len(found) == 0:
			continue
		case found[0].ID != o.Turn:
			later = true
			continue
		case !endsTurn(&found[0]):
			return nil, nil, o.problem(nil, &abi.Error{
				Code: abi.InvalidArgument, Message: fmt.Sprintf("the event is not a turn, but a %v", found[0].Kind), Remedy: "name the turn_ended or turn_failed event of a turn",
			})
		}
		return &found[0], ancestry(list, list[i].Session), nil
	}
	if later {
		gone.Message, gone.Remedy = "the turn is no longer recorded, because its history has been pruned", "choose a later turn, or keep more history"
	}
	return nil, nil, o.problem(nil, gone)
}

// ancestry selects a session and its ancestors.
func ancestry(list []journal.SessionInfo, of journal.SessionID) func(*journal.SessionInfo) bool {
	in := map[journal.SessionID]bool{of: true}
	for i := len(list) - 1; i >= 0; i-- { // parents are listed before their children
		if in[list[i].Session] {
			for _, p := range list[i].Parents {
				in[p] = true
			}
		}
	}
	return func(info *journal.SessionInfo) bool { return in[info.Session] }
}

// problem adds the ids of the turn and of its creature to an error.
func (o *TurnOptions) problem(ev *journal.Event, err *abi.Error) *abi.Error {
	err.Op = "replay"
	err = err.With("turn", o.Turn.String())
	if ev != nil {
		err = err.With("creature", string(ev.Creature))
	}
	return err
}

// comparing is a comparison, or the reason why there is none.
type comparing struct {
	Comparison
	gap   *gap
	cause error
}

func newComparison(a *actor, t *recorded, name string, p *performance) *comparing {
	if p.gap != nil {
		return &comparing{gap: p.gap, cause: p.cause}
	}
	out := &comparing{Comparison: Comparison{
		Difference: newDifference(a, t, name, p.effects), Session: t.session, Graph: t.event.Graph,
		Then:  Performed{Module: a.setting.Module, SHA256: a.setting.SHA256, Fuel: t.fuel, Code: t.code, Error: t.reason},
		Again: Performed{SHA256: p.sha256, Fuel: p.fuel},
	}}
	if len(a.stage.o.Module) == 0 {
		out.Again.Module = a.setting.Module
	}
	if p.failed != nil {
		out.Again.Code, out.Again.Error = abi.CodeOf(p.failed).String(), p.failed.Error()
	}
	return out
}

// unknown is the error for a turn whose effects cannot be known.
func (o *TurnOptions) unknown(c *comparing) *abi.Error {
	err := &abi.Error{Message: "the turn cannot be run again, like all turns that " + c.gap.reason.Text(), IDs: map[string]string{"reason": string(c.gap.reason)}}
	switch c.gap.reason {
	case NoModule:
		o.noModule(err, c.cause)
		return err
	case NoSetting, NoMessage, UnknownKey, UnknownName, SenderName, Peers:
		err.Code, err.Remedy = abi.NotFound, "choose a later turn, or keep more history"
	default:
		err.Code, err.Remedy = abi.Unsupported, "look at what is recorded about the turn, or try the module on a message of your own with terrarium call"
	}
	if c.gap.detail != "" {
		err.IDs["detail"] = c.gap.detail
	}
	return err
}

// noModule completes the error for a module that is missing, has changed, or is refused.
func (o *TurnOptions) noModule(err *abi.Error, cause error) {
	err.Err, err.Code, err.Remedy = cause, abi.CodeOf(cause), "restore the recorded module, or name another one"
	if len(o.Module) > 0 {
		err.Message, err.Remedy = "the module cannot run the turn", "name another module"
	}
	var e *abi.Error
	if errors.As(cause, &e) {
		maps.Copy(err.IDs, e.IDs)
	}
}
