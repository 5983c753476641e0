package operations

import (
	"context"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
)

// ExportArgs are the arguments of export.
type ExportArgs struct {
	Session string `json:"session,omitempty" doc:"session id, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"instead of a session: a graph, live or ended: any id it has had, or the name of a member"`
	Path    string `json:"path" op:"required" doc:"file to write; it must not exist. If the name ends in .jsonl, the history is written as JSON lines"`
}

// ExportResult is the result of export.
type ExportResult struct {
	Session terrarium.SessionID `json:"session"` // session that was exported
	Path    string              `json:"path"`    // file that was written
}

// ForkArgs are the arguments of fork.
type ForkArgs struct {
	Session string `json:"session,omitempty" doc:"id of a session whose file exists"`
	Graph   string `json:"graph,omitempty" doc:"instead of a session: a graph, live or ended: any id it has had, or the name of a member"`
	Dir     string `json:"dir" op:"required" doc:"session directory to create; it must not exist"`

	At journal.EventCursor `json:"at,omitempty" doc:"fork the session as it was at this event cursor; if left out, as it is now"`
}

// ForkResult is the result of fork.
type ForkResult struct {
	Session terrarium.SessionID `json:"session"`        // the new session
	Parent  terrarium.SessionID `json:"parent"`         // session that was forked
	Dir     string              `json:"dir"`            // session directory that was created
	Last    string              `json:"last,omitempty"` // with at: the last event of the fork
}

func copyOperations() []Operation {
	return []Operation{
		read("export", "Exports a session to a single file: its history and, as long as the session's own file exists, the state of its creatures.", export).needs(Admin),
		read("fork", "Copies a session to a new session directory, in which another engine can continue it independently.", fork).needs(Admin),
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
