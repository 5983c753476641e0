package operations

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// StatusArgs are the arguments of status.
type StatusArgs struct {
	Graph string `json:"graph,omitempty" doc:"only this graph: any id it has had, or the name of a member"`
}

// StatusResult is the result of status.
type StatusResult struct {
	Graphs           []inspect.GraphStatus `json:"graphs"`                      // oldest first
	UnaccountedBytes int64                 `json:"unaccounted_bytes,omitempty"` // Go heap of the process after its last garbage collection, without the part that is accounted to creatures
	Connectors       []ConnectorRecord     `json:"connectors,omitempty"`        // sources and sinks of the recipes that run, in the order of their start
	Wear             *WearRecord           `json:"wear,omitempty"`              // how often the logs of the session directory were synced, and how many bytes were written to them
	Problems         []*ErrorRecord        `json:"problems,omitempty"`          // problems of the session directory, such as a store that was set aside or cannot be written, and failed policies
}

// WearRecord describes how the logs of a session directory wear its disk.
type WearRecord struct {
	Since               string `json:"since"`                  // RFC 3339, UTC: when the directory was opened
	Syncs               int64  `json:"syncs"`                  // number of syncs since the directory was opened
	SyncsPerHour        int64  `json:"syncs_per_hour"`         // on average; in the first hour, the number so far
	WrittenBytes        int64  `json:"written_bytes"`          // bytes written to logs since the directory was opened; when logs are emptied, at most as many bytes are written again
	WrittenBytesPerHour int64  `json:"written_bytes_per_hour"` // on average; in the first hour, the number so far
}

// NewWearRecord returns the wear for callers.
func NewWearRecord(w sqlitestore.Wear) *WearRecord {
	hours := max(w.Until.Sub(w.Since).Hours(), 1)
	return &WearRecord{
		Since: w.Since.UTC().Format(time.RFC3339), Syncs: w.Syncs, SyncsPerHour: int64(float64(w.Syncs) / hours),
		WrittenBytes: w.WrittenBytes, WrittenBytesPerHour: int64(float64(w.WrittenBytes) / hours),
	}
}

// StateArgs are the arguments of state.
type StateArgs struct {
	Creature string `json:"creature" op:"required" doc:"id, or a name that is unique"`
	Prefix   string `json:"prefix,omitempty" doc:"only keys with this prefix"`
}

// StateResult is the result of state.
type StateResult struct {
	State map[string]Payload `json:"state"` // values by key
}

// HistoryArgs are the arguments of history.
type HistoryArgs struct {
	Graph    string   `json:"graph,omitempty" doc:"a graph, live or ended: any id it has had, or the name of a member"`
	Session  string   `json:"session,omitempty" doc:"instead of a graph: a session id, live or ended"`
	Kinds    []string `json:"kinds,omitempty" doc:"only events of these kinds"`
	Creature string   `json:"creature,omitempty" doc:"only events about this creature"`
	Channel  string   `json:"channel,omitempty" doc:"only events of this channel"`
	After    string   `json:"after,omitempty" doc:"only events listed after the event with this id"`
	Limit    int      `json:"limit,omitempty" doc:"maximum number of events; 1,000 if left out"`
}

// HistoryResult is the result of history.
type HistoryResult struct {
	Events []EventRecord `json:"events"` // in causal order
}

// hideContent implements withoutContent.
func (r *HistoryResult) hideContent() {
	for i := range r.Events {
		r.Events[i] = r.Events[i].WithoutContent()
	}
}

// LineageArgs are the arguments of lineage.
type LineageArgs struct {
	Session string `json:"session,omitempty" doc:"session id, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"instead of a session: a graph, live or ended: any id it has had, or the name of a member"`
}

// LineageResult is the result of lineage.
type LineageResult struct {
	Lineage []SessionRecord `json:"lineage"` // the session, then its ancestors
}

// SessionRecord describes a session.
type SessionRecord struct {
	Session    terrarium.SessionID   `json:"session"`
	Graph      terrarium.GraphID     `json:"graph,omitempty"`       // graph whose session it is or was
	Live       bool                  `json:"live"`                  // whether it has not ended
	Complete   bool                  `json:"complete"`              // whether its own file holds its whole history
	Durability string                `json:"durability"`            // `full`, `normal` or `none`
	Created    string                `json:"created,omitempty"`     // RFC 3339, UTC
	Parents    []terrarium.SessionID `json:"parents"`               // sessions from which it resulted
	MadeBy     journal.CutKind       `json:"made_by,omitempty"`     // merge, split, rearrange or fork
	MergedAt   string                `json:"merged_at,omitempty"`   // when a merge made it
	SplitAt    string                `json:"split_at,omitempty"`    // when a split made it
	StorePath  string                `json:"store_path,omitempty"`  // absent if only other sessions' files hold its history
	Bytes      int64                 `json:"bytes,omitempty"`       // size of its file
	Events     int64                 `json:"events"`                // -1 if not counted
	Deployment string                `json:"deployment,omitempty"`  // deployment of its members; after a merge, a comma-separated list
	ConfigPath string                `json:"config_path,omitempty"` // recipe path of the first deployment
}

// SessionsArgs are the arguments of sessions.
type SessionsArgs struct {
	Dir string `json:"dir,omitempty" doc:"another session directory, which may be in use; if left out, the engine's own"`
}

// SessionsResult is the result of sessions.
type SessionsResult struct {
	Sessions []SessionRecord `json:"sessions"` // oldest first
}

func readingOperations() []Operation {
	return []Operation{
		read("status", "Describes graphs with their creatures and channels.", status),
		read("topology", "Describes graphs as they were at an earlier moment.", topologyAt),
		read("state", "Shows the state of a creature.", state).needs(Operate),
		read("awareness", "Shows what a creature can see of itself and of its surroundings.", awareness).needs(Operate),
		read("history", "Lists events of a graph or session, in causal order.", history),
		read("replay_turn", "Runs a recorded turn again, on the recorded module or on another one, and shows the recorded effects beside those of the new run. Nothing is changed. "+
			"Hostcalls are answered from the record, and the limits of the creature apply. At most two turns are run again at a time, each within 30 seconds.", replayTurn),
		read("search", "Searches the text of events, newest first.", searchEvents).needs(Operate),
		read("lineage", "Lists a session and its ancestors, back to the first ones.", lineage),
		read("sessions", "Lists the sessions of the session directory, oldest first.", sessions),
	}
}

func status(ctx context.Context, s *client, a *StatusArgs) (*StatusResult, error) {
	g, err := s.graphs(ctx).ifNamed(a.Graph)
	if err != nil {
		return nil, err
	}
	graphs, err := s.t.Status(g)
	if err != nil {
		return nil, err
	}
	if len(s.rights.Graphs) > 0 {
		allowed := s.allowed(s.graphs(ctx))
		graphs = slices.DeleteFunc(graphs, func(g inspect.GraphStatus) bool { return !slices.Contains(allowed, g.ID) })
		return &StatusResult{Graphs: graphs}, nil
	}
	out := &StatusResult{Graphs: graphs, UnaccountedBytes: s.t.UnaccountedBytes(), Connectors: connectorsOf(s.t), Problems: errorRecords(append(s.t.Problems(), s.t.PolicyFailures()...))}
	if d := s.t.Directory(); d != nil {
		out.Wear = NewWearRecord(d.Wear())
	}
	return out, nil
}

func state(ctx context.Context, s *client, a *StateArgs) (*StateResult, error) {
	c, err := s.t.FindCreature("", a.Creature)
	if err != nil {
		return nil, err
	}
	entries, err := s.t.State(ctx, c, a.Prefix)
	if err != nil {
		return nil, err
	}
	out := &StateResult{State: map[string]Payload{}}
	for _, e := range entries {
		out.State[e.Key] = e.Value
	}
	return out, nil
}

func history(ctx context.Context, s *client, a *HistoryArgs) (*HistoryResult, error) {
	of, err := graphOrSession(ctx, s, "history", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	q := journal.HistoryQuery{Limit: a.Limit}
	if s.rights.Bounded {
		q.Bytes = maxListedBytes
	}
	if q.Kinds, err = ParseKinds("history", a.Kinds); err != nil {
		return nil, err
	}
	if q.After, err = journal.ParseEventID(a.After); err != nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "history", Message: "after is not an event id", Remedy: "use the id of an event; history lists them", Err: err}
	}
	g, _ := s.t.FindGraph(ctx, a.Graph) // a live graph is where names are looked up
	if q.Creature, err = everNamed(s.t.FindCreature, g, a.Creature); err != nil {
		return nil, err
	}
	if q.Channel, err = everNamed(s.t.FindChannel, g, a.Channel); err != nil {
		return nil, err
	}
	events, err := s.t.History(ctx, of, q)
	if err != nil {
		return nil, err
	}
	out := &HistoryResult{Events: make([]EventRecord, len(events))}
	for i := range events {
		out.Events[i] = NewEventRecord(&events[i])
	}
	return out, nil
}

// everNamed finds the id for a name in a filter. A text that is not a name is taken for
// an id, because history also has the ids of removed creatures and channels.
func everNamed[T ~string](find func(terrarium.GraphID, string) (T, error), g terrarium.GraphID, name string) (T, error) {
	if name == "" {
		return "", nil
	}
	id, err := find(g, name)
	if abi.CodeOf(err) == abi.NotFound {
		return T(name), nil
	}
	return id, err
}

// graphOrSession resolves the two ways to name a store.
func graphOrSession(ctx context.Context, s *client, op, graph, session string) (string, error) {
	switch {
	case session != "" && graph != "":
		return "", invalid(op, "graph and session are both given", "leave out one of them")
	case session != "":
		return session, nil
	case graph != "":
		return liveOrSuccessor(ctx, s, op, graph)
	}
	graphs, err := s.t.Status("")
	if err == nil && len(graphs) == 1 {
		return string(graphs[0].ID), nil
	}
	return "", invalid(op, "graph or session is missing", "name a graph or a session; status lists them")
}

// liveOrSuccessor returns the id of a live graph or, for any other graph, the session that
// continues its history.
func liveOrSuccessor(ctx context.Context, s *client, op, graph string) (string, error) {
	g, err := s.t.FindGraph(ctx, graph)
	if abi.CodeOf(err) != abi.NotFound {
		return string(g), err
	}
	if successor, found, err := s.t.Successor(ctx, terrarium.GraphID(graph)); err != nil || found {
		return string(successor.Session), err
	}
	return "", &abi.Error{
		Code: abi.NotFound, Op: op, Message: "there is no graph " + graph,
		Remedy: "status lists the live graphs, and sessions lists all past ones", IDs: map[string]string{"graph": graph},
	}
}

// ParseKinds reads names of event kinds.
func ParseKinds(op string, names []string) ([]journal.EventKind, error) {
	var out []journal.EventKind
	for _, name := range names {
		k, ok := journal.ParseEventKind(name)
		if !ok {
			var known []string
			for _, k := range journal.EventKinds() {
				known = append(known, k.String())
			}
			slices.Sort(known)
			return nil, invalid(op, "there is no event kind "+name, "the kinds are "+strings.Join(known, ", "))
		}
		out = append(out, k)
	}
	return out, nil
}

func lineage(ctx context.Context, s *client, a *LineageArgs) (*LineageResult, error) {
	of, err := graphOrSession(ctx, s, "lineage", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	list, err := s.t.Lineage(ctx, of)
	if err != nil {
		return nil, err
	}
	return &LineageResult{sessionRecords(list)}, nil
}

func sessions(ctx context.Context, s *client, a *SessionsArgs) (*SessionsResult, error) {
	if a.Dir != "" {
		if err := s.allow("sessions", Admin); err != nil {
			return nil, err
		}
	}
	list, err := s.sessions(ctx, a.Dir)
	if err != nil {
		return nil, err
	}
	return &SessionsResult{sessionRecords(list)}, nil
}

// sessions lists the sessions of the engine's directory or of another one.
func (s *client) sessions(ctx context.Context, dir string) (list []journal.SessionInfo, err error) {
	if dir == "" {
		return s.t.Sessions(ctx)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &abi.Error{
			Code: abi.NotFound, Op: "sessions", Message: "there is no directory " + strconv.Quote(dir), Remedy: "name a session directory",
			IDs: map[string]string{"path": dir}, Err: err,
		}
	}
	v, err := sqlitestore.OpenReadOnly(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	return v.Sessions(ctx)
}

func sessionRecords(list []journal.SessionInfo) []SessionRecord {
	out := []SessionRecord{}
	for i := range list {
		out = append(out, NewSessionRecord(&list[i]))
	}
	return out
}

// NewSessionRecord returns the JSON form of a session.
func NewSessionRecord(i *journal.SessionInfo) SessionRecord {
	parents := i.Parents
	if parents == nil {
		parents = []terrarium.SessionID{}
	}
	return SessionRecord{
		Session: i.Session, Graph: i.Graph, Live: i.Live, Complete: i.Complete, Durability: i.Durability.String(),
		Created: stamp(i.Created), Parents: parents, MadeBy: i.MadeBy, MergedAt: stamp(i.MergedAt), SplitAt: stamp(i.SplitAt),
		StorePath: i.Path, Bytes: i.Bytes, Events: i.Events,
		Deployment: strings.Join(engine.DeploymentsIn(i.Meta), ", "), ConfigPath: i.Meta[engine.MetaConfigPath],
	}
}

func stamp(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
}
