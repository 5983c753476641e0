package terrarium

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Export is [engine.Engine.Export] with the names that History takes.
func (t *Terrarium) Export(ctx context.Context, graphOrSession, path string) error {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return err
	}
	return t.Engine.Export(ctx, of, path)
}

// Fork is [engine.Engine.Fork] with the names that History takes.
func (t *Terrarium) Fork(ctx context.Context, graphOrSession, dir string) (SessionID, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return "", err
	}
	return t.Engine.Fork(ctx, of, dir)
}

// ForkAt is [engine.Engine.ForkAt] with the names that History takes.
func (t *Terrarium) ForkAt(ctx context.Context, graphOrSession string, at journal.EventCursor, dir string) (SessionID, journal.EventID, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return "", journal.EventID{}, err
	}
	return t.Engine.ForkAt(ctx, of, at, dir)
}

// Settle waits until the history of every graph is in the file of its session, and
// files that nobody needs any more are gone; see [sqlitestore.Directory.Settle]. It
// answers what stands in the way of that at present. Nothing has to wait for it but
// somebody who is about to read the files with other tools.
func (t *Terrarium) Settle(ctx context.Context) error {
	if t.storage == nil {
		return nil
	}
	return t.storage.Settle(ctx)
}

// sessionOf returns the session that a live graph has at present. Anything else
// is taken for a session.
func (t *Terrarium) sessionOf(graphOrSession string) SessionID {
	graphs, err := t.Status(GraphID(graphOrSession))
	if err == nil && len(graphs) == 1 && graphs[0].Session != "" {
		return graphs[0].Session
	}
	return SessionID(graphOrSession)
}

// ExportArgs are the arguments of export.
type ExportArgs struct {
	Session string `json:"session,omitempty" doc:"a session, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"or a graph, by any id it has had or the name of a member, also one that ended"`
	Path    string `json:"path" op:"required" doc:"the file to be written; there must be none. One that ends in .jsonl gets the history as JSON lines"`
}

// ExportResult is the result of export.
type ExportResult struct {
	Session SessionID `json:"session"`
	Path    string    `json:"path"`
}

// ForkArgs are the arguments of fork.
type ForkArgs struct {
	Session string `json:"session,omitempty" doc:"a session whose file is there"`
	Graph   string `json:"graph,omitempty" doc:"or a graph, by any id it has had or the name of a member, also one that ended"`
	Dir     string `json:"dir" op:"required" doc:"the session directory to be made; it must not exist"`

	At journal.EventCursor `json:"at,omitempty" doc:"as the session was at this cursor of an event; without it, as it is now"`
}

// ForkResult is the result of fork.
type ForkResult struct {
	Session SessionID `json:"session"` // the new one
	Parent  SessionID `json:"parent"`
	Dir     string    `json:"dir"`
	Last    string    `json:"last,omitempty"` // with at: the last event of the fork
}

func copyOperations() []Operation {
	return []Operation{
		read("export", "Writes a session to a file that stands alone: its history and, of one that is live, what its creatures hold.", export),
		read("fork", "Makes a new session directory in which a live session goes on by itself, for another engine.", fork),
	}
}

func export(ctx context.Context, s *session, a *ExportArgs) (*ExportResult, error) {
	of, err := graphOrSession(ctx, s, "export", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	session := s.t.sessionOf(of)
	write := s.t.Engine.Export
	if asLines(a.Path) {
		write = s.t.ExportLines
	}
	if err := write(ctx, string(session), a.Path); err != nil {
		return nil, err
	}
	return &ExportResult{Session: session, Path: a.Path}, nil
}

func fork(ctx context.Context, s *session, a *ForkArgs) (*ForkResult, error) {
	of, err := graphOrSession(ctx, s, "fork", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	parent := s.t.sessionOf(of)
	if a.At != "" {
		child, last, err := s.t.Engine.ForkAt(ctx, string(parent), a.At, a.Dir)
		if err != nil {
			return nil, err
		}
		return &ForkResult{Session: child, Parent: parent, Dir: a.Dir, Last: last.String()}, nil
	}
	child, err := s.t.Engine.Fork(ctx, string(parent), a.Dir)
	if err != nil {
		return nil, err
	}
	return &ForkResult{Session: child, Parent: parent, Dir: a.Dir}, nil
}
