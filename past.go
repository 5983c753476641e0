package terrarium

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
)

// FindGraph finds a graph by its id, by an id that it had before a merge, in
// this run or an earlier one, or by the name of a creature in it.
func (t *Terrarium) FindGraph(ctx context.Context, name string) (GraphID, error) {
	return t.FindGraphBy(ctx, t.engine.FindGraph, name)
}

// FindGraphBy is [Terrarium.FindGraph] with another lookup, such as
// [engine.Batch.FindGraph] of a batch. For an id unknown to the lookup it asks the session
// directory: an engine only knows the graphs that it has resumed, but the directory also
// knows their ancestors.
func (t *Terrarium) FindGraphBy(ctx context.Context, find func(string) (GraphID, error), name string) (GraphID, error) {
	g, err := find(name)
	if err == nil || !journal.IsID('g', name) {
		return g, err
	}
	successor, found, lerr := t.Successor(ctx, GraphID(name))
	if lerr != nil || !found {
		return "", err
	}
	if successor.Graph != GraphID(name) {
		if g, ferr := find(string(successor.Graph)); ferr == nil {
			return g, nil
		}
	}
	return "", notRunning(GraphID(name), successor)
}

// notRunning returns the error for a graph that is only saved. It names the successor.
func notRunning(g GraphID, successor journal.SessionInfo) error {
	ids := map[string]string{"graph": string(g), "session": string(successor.Session)}
	became := "it"
	if successor.Graph != g {
		became = "it became " + string(successor.Graph) + ", which"
		ids["successor"] = string(successor.Graph)
	}
	if successor.Live {
		return &abi.Error{
			Code: abi.NotFound, IDs: ids,
			Message: fmt.Sprintf("the graph %s does not run: %s is saved in session %s", g, became, successor.Session),
			Remedy:  "resume it by applying its recipe or with resume; history, lineage and export also work without that",
		}
	}
	return &abi.Error{
		Code: abi.NotFound, IDs: ids,
		Message: fmt.Sprintf("graph %s no longer exists: %s ended, and session %s has its history", g, became, successor.Session),
		Remedy:  "status lists the live graphs; history, lineage and export also work with ended ones",
	}
}

// History is [engine.Engine.History]. It also accepts the ids of graphs that merged into
// others in an earlier run, or ended.
func (t *Terrarium) History(ctx context.Context, graphOrSession string, q journal.HistoryQuery) ([]Event, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return nil, err
	}
	return t.engine.History(ctx, of, q)
}

// maxLooking is how many calls of GraphsAt run at a time.
const maxLooking = 2

// GraphsAt returns graphs as they were at a moment, oldest first: creatures, channels,
// edges and output wires. The moment is the cursor of an event, or a time in the form of
// RFC 3339. With graphOrSession, which accepts the same names as History, these are only
// the graphs that have become that one. The second result says which graphs cannot be
// determined. Graphs without a session are left out. GraphsAt reads many rows of the
// stores, so at most two calls run at a time, and others wait.
func (t *Terrarium) GraphsAt(ctx context.Context, moment, graphOrSession string) (graphs []journal.SavedGraph, problems []error, err error) {
	select {
	case t.looking <- struct{}{}:
		defer func() { <-t.looking }()
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	of := graphOrSession
	if of != "" {
		if of, err = t.lasting(ctx, of); err != nil {
			return nil, nil, err
		}
	}
	return t.engine.GraphsAt(ctx, moment, of)
}

// Lineage is [engine.Engine.Lineage]. It accepts the same names as History.
func (t *Terrarium) Lineage(ctx context.Context, graphOrSession string) ([]journal.SessionInfo, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return nil, err
	}
	return t.engine.Lineage(ctx, of)
}

// Verify is [engine.Engine.Verify]. It accepts the same names as History.
func (t *Terrarium) Verify(ctx context.Context, graphOrSession string) (journal.VerifyReport, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return journal.VerifyReport{}, err
	}
	return t.engine.Verify(ctx, of)
}

// lasting returns the name of a graph or session in the engine: the present graph or, for a
// graph that is not live, the session that continues its history.
func (t *Terrarium) lasting(ctx context.Context, graphOrSession string) (string, error) {
	if !journal.IsID('g', graphOrSession) {
		return graphOrSession, nil
	}
	if g, err := t.FindGraph(ctx, graphOrSession); err == nil {
		return string(g), nil
	}
	successor, found, err := t.Successor(ctx, GraphID(graphOrSession))
	if err != nil || !found {
		return graphOrSession, err
	}
	return string(successor.Session), nil
}

// Successor finds the session with the history of a graph that is not live; see [Successor].
func (t *Terrarium) Successor(ctx context.Context, g GraphID) (journal.SessionInfo, bool, error) {
	list, err := t.Sessions(ctx)
	if err != nil {
		return journal.SessionInfo{}, false, err
	}
	successor, found := Successor(list, g)
	return successor, found, nil
}

// Successor finds the session of a directory that continues the history of a graph: the
// graph's newest session or, if that has merged, its successor, and so on. The session is
// not live if the graph has ended. sessions must be listed oldest first, as by [Terrarium.Sessions].
func Successor(sessions []journal.SessionInfo, g GraphID) (journal.SessionInfo, bool) {
	at := slices.IndexFunc(sessions, func(i journal.SessionInfo) bool { return i.Graph == g })
	if at < 0 {
		return journal.SessionInfo{}, false
	}
	for next := at; next >= 0; next = child(sessions, at) {
		at = next
	}
	return sessions[at], true
}

// Deprecated: use [Terrarium.Successor].
func (t *Terrarium) Heir(ctx context.Context, g GraphID) (journal.SessionInfo, bool, error) {
	return t.Successor(ctx, g)
}

// Deprecated: use [Successor].
func Heir(sessions []journal.SessionInfo, g GraphID) (journal.SessionInfo, bool) {
	return Successor(sessions, g)
}

// child returns the index of a session's successor, or -1. After a split it is the child
// that kept the graph's id. Children are younger than their parents, so they are listed
// after them.
func child(sessions []journal.SessionInfo, of int) int {
	found := -1
	for i := of + 1; i < len(sessions); i++ {
		if !slices.Contains(sessions[i].Parents, sessions[of].Session) {
			continue
		}
		if sessions[i].Graph == sessions[of].Graph {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}
