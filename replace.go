package terrarium

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
)

// AllTurns checks a replacement against all recorded turns; see [ReplaceOptions].
const AllTurns = -1

// ReplaceOptions names the new module of a creature, and says what to check before the
// replacement.
type ReplaceOptions struct {
	// Module is a path or, with the prefix builtin:, the name of a creature that ships with
	// terrarium. The session keeps this name.
	Module string
	// Wasm is the module; nil means that Module is loaded.
	Wasm []byte
	// Check is the number of the creature's last recorded turns that the new module must
	// repeat with the same effects: none by default, all with [AllTurns]. Turns that cannot
	// be compared do not count; if there are only such turns, the check fails.
	Check int
	// Force replaces the module even if the check fails.
	Force bool
}

// ReplacedModule is the result of [Terrarium.ReplaceModule].
type ReplacedModule struct {
	engine.Replaced
	// Check is the result of the check; nil if there was none.
	Check *replay.Report
}

// CheckFailed is the cause of the error of [Terrarium.ReplaceModule] if recorded turns
// have other effects on the new module.
type CheckFailed struct{ Report *replay.Report }

// Error describes the first difference.
func (c *CheckFailed) Error() string {
	if len(c.Report.Differences) == 0 {
		if len(c.Report.Unjudged) == 0 {
			return "there are no recorded turns"
		}
		return "the recorded turns cannot be compared: they " + c.Report.Unjudged[0].Reason.Text()
	}
	d := &c.Report.Differences[0]
	return fmt.Sprintf("turn %s: recorded %s, now %s", d.Turn, effectAt(d.Recorded, d.First), effectAt(d.Replayed, d.First))
}

func effectAt(list []replay.Effect, i int) string {
	if i >= len(list) {
		return "no further effect"
	}
	return list[i].String()
}

// ReplaceModule makes a running creature continue with another module; see
// [engine.Engine.ReplaceModule]. With [ReplaceOptions.Check] it first runs recorded turns
// of the creature on the new module, and refuses the module with the code conflict if one
// has other effects; the cause is a [CheckFailed]. It returns once the replacement is as
// durable as the creature's graph promises.
func (t *Terrarium) ReplaceModule(ctx context.Context, creature CreatureID, o ReplaceOptions) (*ReplacedModule, error) {
	var out ReplacedModule
	var err error
	if o.Wasm == nil {
		if o.Wasm, err = LoadModule(ctx, o.Module); err != nil {
			return nil, err
		}
	}
	if o.Check != 0 {
		if out.Check, err = t.checkModule(ctx, creature, o); err != nil {
			return nil, err
		}
	}
	if out.Replaced, err = t.engine.ReplaceModule(ctx, creature, engine.Replacement{Module: o.Module, Wasm: o.Wasm}); err != nil {
		return nil, err
	}
	if err := out.Wait(ctx); err != nil {
		return nil, err
	}
	return &out, nil
}

// checkModule runs the last recorded turns of a creature on a module.
func (t *Terrarium) checkModule(ctx context.Context, creature CreatureID, o ReplaceOptions) (*replay.Report, error) {
	r := replay.Options{Source: t.storage, Host: t.host, Creatures: []string{string(creature)}, Module: o.Wasm}
	graph, err := t.graphOf(creature)
	if err != nil {
		return nil, err
	}
	if t.storage == nil || graph.Session == "" {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "replace_module", Message: "the graph of the creature keeps no history to check the module against",
			Remedy: "replace it without a check", IDs: map[string]string{"creature": string(creature), "graph": string(graph.ID)},
		}
	}
	if r.First, err = t.firstToCheck(ctx, graph.ID, creature, o.Check); err != nil {
		return nil, err
	}
	lineage, err := t.engine.Lineage(ctx, string(graph.ID))
	if err != nil {
		return nil, err
	}
	r.Sessions = func(info *journal.SessionInfo) bool {
		return slices.ContainsFunc(lineage, func(i journal.SessionInfo) bool { return i.Session == info.Session })
	}
	report, err := replay.Run(ctx, r)
	if abi.CodeOf(err) == abi.NotFound {
		return &replay.Report{}, nil // the creature has had no turn
	}
	if err != nil || o.Force || report.Same() || report.Turns+report.Skipped() == 0 {
		return report, err
	}
	return nil, &abi.Error{
		Code: abi.Conflict, Op: "replace_module", Message: "the new module does not repeat the recorded turns",
		Remedy: "fix the module, or force the replacement if it is meant to differ",
		IDs:    map[string]string{"creature": string(creature), "graph": string(graph.ID)}, Err: &CheckFailed{report},
	}
}

// firstToCheck returns the first of the last recorded turns of a creature; zero if all of
// its turns count.
func (t *Terrarium) firstToCheck(ctx context.Context, graph GraphID, creature CreatureID, turns int) (journal.EventID, error) {
	if turns < 0 {
		return journal.EventID{}, nil
	}
	last, err := t.engine.History(ctx, string(graph), journal.HistoryQuery{
		Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}, Creature: creature, Newest: true, Limit: turns,
	})
	if err != nil || len(last) < turns {
		return journal.EventID{}, err
	}
	return last[0].ID, nil
}

// graphOf returns the graph of a creature.
func (t *Terrarium) graphOf(creature CreatureID) (inspect.GraphStatus, error) {
	graphs, err := t.engine.Status("")
	if err != nil {
		return inspect.GraphStatus{}, err
	}
	for _, g := range graphs {
		if slices.ContainsFunc(g.Creatures, func(c inspect.CreatureStatus) bool { return c.ID == creature }) {
			return g, nil
		}
	}
	return inspect.GraphStatus{}, &abi.Error{
		Code: abi.NotFound, Op: "replace_module", Message: "there is no such creature", Remedy: "status lists the creatures",
		IDs: map[string]string{"creature": string(creature)},
	}
}
