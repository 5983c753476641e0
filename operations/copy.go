package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ExportArgs are the arguments of export.
type ExportArgs struct {
	Session string `json:"session,omitempty" doc:"a session, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"or a graph, by any id it has had or the name of a member, also one that ended"`
	Path    string `json:"path" op:"required" doc:"the file to be written; there must be none. One that ends in .jsonl gets the history as JSON lines"`
}

// ExportResult is the result of export.
type ExportResult struct {
	Session terrarium.SessionID `json:"session"`
	Path    string              `json:"path"`
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
	Session terrarium.SessionID `json:"session"` // the new one
	Parent  terrarium.SessionID `json:"parent"`
	Dir     string              `json:"dir"`
	Last    string              `json:"last,omitempty"` // with at: the last event of the fork
}

func copyOperations() []Operation {
	return []Operation{
		read("export", "Writes a session to a file that stands alone: its history and, of one that is live, what its creatures hold.", export),
		read("fork", "Makes a new session directory in which a live session goes on by itself, for another engine.", fork),
	}
}

func export(ctx context.Context, s *client, a *ExportArgs) (*ExportResult, error) {
	of, err := graphOrSession(ctx, s, "export", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	session := s.t.SessionOf(of)
	if asLines(a.Path) {
		err = ExportLinesOf(ctx, s.t, string(session), a.Path)
	} else {
		err = s.t.Export(ctx, string(session), a.Path)
	}
	if err != nil {
		return nil, err
	}
	return &ExportResult{Session: session, Path: a.Path}, nil
}

func fork(ctx context.Context, s *client, a *ForkArgs) (*ForkResult, error) {
	of, err := graphOrSession(ctx, s, "fork", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	parent := s.t.SessionOf(of)
	if a.At != "" {
		child, last, err := s.t.ForkAt(ctx, string(parent), a.At, a.Dir)
		if err != nil {
			return nil, err
		}
		return &ForkResult{Session: child, Parent: parent, Dir: a.Dir, Last: last.String()}, nil
	}
	child, err := s.t.Fork(ctx, string(parent), a.Dir)
	if err != nil {
		return nil, err
	}
	return &ForkResult{Session: child, Parent: parent, Dir: a.Dir}, nil
}
