package terrarium

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
)

// staging is a batch in which graphs are also found by ids from before the
// engine started.
type staging struct {
	*engine.Batch
	t *Terrarium
}

// FindGraph is [Terrarium.FindGraph] on the topology as the batch has it.
func (b *staging) FindGraph(name string) (GraphID, error) {
	return b.t.findGraph(b.Batch.FindGraph, name)
}

// FindGraph finds a graph by its id, by an id that it had before a merge, in
// this run or an earlier one, or by the name of a creature in it.
func (t *Terrarium) FindGraph(name string) (GraphID, error) {
	return t.findGraph(t.Engine.FindGraph, name)
}

// findGraph asks the engine and, for an id that it does not know, the session
// directory: an engine that goes on with a session knows the graphs that it
// found, and the directory remembers from which they came.
func (t *Terrarium) findGraph(find func(string) (GraphID, error), name string) (GraphID, error) {
	g, err := find(name)
	if err == nil || !isID('g', name) {
		return g, err
	}
	heir, found, lerr := t.heir(context.Background(), GraphID(name))
	if lerr != nil || !found {
		return "", err
	}
	if heir.Graph != GraphID(name) {
		if g, ferr := find(string(heir.Graph)); ferr == nil {
			return g, nil
		}
	}
	return "", notRunning(GraphID(name), heir)
}

// notRunning says what became of a graph that is only remembered.
func notRunning(g GraphID, heir journal.SessionInfo) error {
	ids := map[string]string{"graph": string(g), "session": string(heir.Session)}
	became := "it"
	if heir.Graph != g {
		became = "it became " + string(heir.Graph) + ", which"
		ids["heir"] = string(heir.Graph)
	}
	if heir.Live {
		return &abi.Error{
			Code: abi.NotFound, IDs: ids,
			Message: fmt.Sprintf("the graph %s does not run: %s is saved in session %s", g, became, heir.Session),
			Remedy:  "bring it back with its recipe or with resume; history, lineage and export take it as it is",
		}
	}
	return &abi.Error{
		Code: abi.NotFound, IDs: ids,
		Message: fmt.Sprintf("there is no graph %s any more: %s ended, and session %s has its history", g, became, heir.Session),
		Remedy:  "status lists what exists; history, lineage and export take what has ended, too",
	}
}

// History is [engine.Engine.History], and also takes the ids of graphs that went
// into others in an earlier run, or ended.
func (t *Terrarium) History(ctx context.Context, graphOrSession string, q journal.HistoryQuery) ([]Event, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return nil, err
	}
	return t.Engine.History(ctx, of, q)
}

// Lineage is [engine.Engine.Lineage] with the names that History takes.
func (t *Terrarium) Lineage(ctx context.Context, graphOrSession string) ([]journal.SessionInfo, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return nil, err
	}
	return t.Engine.Lineage(ctx, of)
}

// Verify is [engine.Engine.Verify] with the names that History takes.
func (t *Terrarium) Verify(ctx context.Context, graphOrSession string) (journal.VerifyReport, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return journal.VerifyReport{}, err
	}
	return t.Engine.Verify(ctx, of)
}

// lasting returns what stands for a graph or session in the engine: the graph
// that it is now, or the session in which the history of one that is not live
// goes on.
func (t *Terrarium) lasting(ctx context.Context, graphOrSession string) (string, error) {
	if !isID('g', graphOrSession) {
		return graphOrSession, nil
	}
	if g, err := t.FindGraph(graphOrSession); err == nil {
		return string(g), nil
	}
	heir, found, err := t.heir(ctx, GraphID(graphOrSession))
	if err != nil || !found {
		return graphOrSession, err
	}
	return string(heir.Session), nil
}

// heir finds the session that has the history of a graph that is not live.
func (t *Terrarium) heir(ctx context.Context, g GraphID) (journal.SessionInfo, bool, error) {
	list, err := t.Sessions(ctx)
	if err != nil {
		return journal.SessionInfo{}, false, err
	}
	heir, found := Heir(list, g)
	return heir, found, nil
}

// Heir finds, among the sessions of a directory, the one in which the history
// of a graph goes on: its own newest session or, if that went into a merge, the
// one that came out of it, and so on. It is not live if the graph ended. The
// sessions are listed eldest first, as by [Terrarium.Sessions].
func Heir(sessions []journal.SessionInfo, g GraphID) (journal.SessionInfo, bool) {
	at := slices.IndexFunc(sessions, func(i journal.SessionInfo) bool { return i.Graph == g })
	if at < 0 {
		return journal.SessionInfo{}, false
	}
	for next := at; next >= 0; next = child(sessions, at) {
		at = next
	}
	return sessions[at], true
}

// child is the index of the session that a session became, or -1: of the
// children of a split the one that kept the graph's id. A child is younger than
// its parents, so it is listed behind them.
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

// idAlphabet are the characters of ids behind their first letter, which says
// what they name; there are idLength of them.
const (
	idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	idLength   = 16
)

// isID reports whether a name has the form of an id.
func isID(kind byte, name string) bool {
	return len(name) == 1+idLength && name[0] == kind && strings.Trim(name[1:], idAlphabet) == ""
}
