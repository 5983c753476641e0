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
// has other effects; the cause is a [CheckFailed]. ReplaceModule returns once the
// replacement is as durable as the creature's graph promises.
func (t *Terrarium) ReplaceModule(ctx context.Context, creature CreatureID, o ReplaceOptions) (*ReplacedModule, error) {
	var out ReplacedModule
	var err error
	if o.Wasm == nil {
		if o.Wasm, err = t.defaults.LoadModule(ctx, o.Module); err != nil {
			return nil, err
		}
	}
	if o.Check != 0 {
		if out.Check, err = checkModule(ctx, t, creature, o); err != nil {
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

// CheckModule runs the last recorded turns of a creature, or all with [AllTurns], on a
// module, and compares their effects with the record. Nothing changes: it is the check of
// [Terrarium.ReplaceModule]. With all, it continues after the first turn that differs. The
// creature may be saved without running. The error has the code [abi.Unsupported] if there
// is no record.
func (t *Terrarium) CheckModule(ctx context.Context, creature CreatureID, wasm []byte, turns int, all bool) (*replay.Report, error) {
	source, recorded := t.storage.(replay.Source)
	r := replay.Options{Source: source, Host: t.host, Creatures: []string{string(creature)}, Module: wasm, All: all}
	graph, session, err := t.graphOf(creature)
	if err != nil {
		return nil, err
	}
	if !recorded || session == "" {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "replace_module", Message: "the graph of the creature keeps no history to check the module against",
			Remedy: "replace it without a check", IDs: map[string]string{"creature": string(creature), "graph": string(graph)},
		}
	}
	if r.First, err = t.firstToCheck(ctx, graph, creature, turns); err != nil {
		return nil, err
	}
	lineage, err := t.Lineage(ctx, string(graph))
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
	return report, err
}

// checkModule refuses a module that does not repeat the recorded turns of a creature,
// unless it is forced.
func checkModule(ctx context.Context, t *Terrarium, creature CreatureID, o ReplaceOptions) (*replay.Report, error) {
	report, err := t.CheckModule(ctx, creature, o.Wasm, o.Check, false)
	if err != nil || o.Force || report.Same() || report.Turns+report.Skipped() == 0 {
		return report, err
	}
	graph, _, err := t.graphOf(creature)
	if err != nil {
		return nil, err // it was removed meanwhile
	}
	return nil, &abi.Error{
		Code: abi.Conflict, Op: "replace_module", Message: "the new module does not repeat the recorded turns",
		Remedy: "fix the module, or force the replacement if it is meant to differ",
		IDs:    map[string]string{"creature": string(creature), "graph": string(graph)}, Err: &CheckFailed{report},
	}
}

// firstToCheck returns the first of the last recorded turns of a creature; zero if all of
// its turns count.
func (t *Terrarium) firstToCheck(ctx context.Context, graph GraphID, creature CreatureID, turns int) (journal.EventID, error) {
	if turns < 0 {
		return journal.EventID{}, nil
	}
	last, err := t.History(ctx, string(graph), journal.HistoryQuery{
		Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}, Creature: creature, Newest: true, Limit: turns,
	})
	if err != nil || len(last) < turns {
		return journal.EventID{}, err
	}
	return last[0].ID, nil
}

// graphOf returns the graph and the session of a creature that runs or is saved.
func (t *Terrarium) graphOf(creature CreatureID) (GraphID, SessionID, error) {
	graphs, err := t.engine.Status("")
	if err != nil {
		return "", "", err
	}
	for _, g := range graphs {
		if slices.ContainsFunc(g.Creatures, func(c inspect.CreatureStatus) bool { return c.ID == creature }) {
			return g.ID, g.Session, nil
		}
	}
	for _, g := range t.engine.Saved() {
		if slices.ContainsFunc(g.Creatures, func(c journal.CreatureRow) bool { return c.ID == creature }) {
			return g.Graph, g.Session, nil
		}
	}
	return "", "", &abi.Error{
		Code: abi.NotFound, Op: "replace_module", Message: "there is no such creature", Remedy: "status lists the creatures",
		IDs: map[string]string{"creature": string(creature)},
	}
}
