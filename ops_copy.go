package terrarium

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
)

// Copier is what a session directory offers that copies sessions: the
// directory of a running engine, or one that is open for reading.
type Copier interface {
	// Export writes a session, live or ended, to a file that stands alone. It
	// answers already_exists if there is a file.
	Export(ctx context.Context, session SessionID, path string) error
	// Fork makes a new session directory in which a session goes on by itself
	// under a new id, with the same history. It answers already_exists if dir
	// is a session directory.
	Fork(ctx context.Context, session SessionID, dir string) (SessionID, error)
}

// CopierOf returns a session directory as something that copies sessions.
func CopierOf(directory any) (Copier, error) {
	if c, can := directory.(Copier); can {
		return c, nil
	}
	return nil, &abi.Error{Code: abi.Unsupported, Message: "these session stores cannot be copied", Remedy: "copy the whole session directory while nobody uses it"}
}

// Export writes a session, or a graph's session, to a file that stands alone:
// any tool can open it, and no other file of the directory is needed.
func (t *Terrarium) Export(ctx context.Context, graphOrSession, path string) error {
	from, session, err := t.copied(ctx, "export", graphOrSession)
	if err != nil {
		return err
	}
	return from.Export(ctx, session, path)
}

// Fork makes a new session directory in which a session, or a graph's session,
// goes on by itself under the id that is returned; the original goes on, too.
func (t *Terrarium) Fork(ctx context.Context, graphOrSession, dir string) (SessionID, error) {
	from, session, err := t.copied(ctx, "fork", graphOrSession)
	if err != nil {
		return "", err
	}
	return from.Fork(ctx, session, dir)
}

// copied finds what is to be copied, and who copies.
func (t *Terrarium) copied(ctx context.Context, op, graphOrSession string) (Copier, SessionID, error) {
	if t.storage == nil {
		return nil, "", &abi.Error{Code: abi.Unavailable, Op: op, Message: "there is no session directory", Remedy: "run with one"}
	}
	session, err := t.sessionNamed(ctx, graphOrSession)
	if err != nil {
		return nil, "", err
	}
	from, err := CopierOf(t.storage)
	return from, session, err
}

// sessionNamed finds a session by its id or by any id or member of its graph.
func (t *Terrarium) sessionNamed(ctx context.Context, graphOrSession string) (SessionID, error) {
	g, err := t.FindGraph(graphOrSession)
	if abi.CodeOf(err) == abi.NotFound {
		heir, found, err := t.heir(ctx, GraphID(graphOrSession))
		if err != nil || found {
			return heir.Session, err
		}
		return SessionID(graphOrSession), nil
	}
	if err != nil {
		return "", err
	}
	graphs, err := t.Status(g)
	if err != nil {
		return "", err
	}
	if graphs[0].Session == "" {
		return "", &abi.Error{
			Code: abi.Unavailable, Message: "the graph " + graphOrSession + " has no store",
			Remedy: "run it with durability normal or full", IDs: map[string]string{"graph": string(g)},
		}
	}
	return graphs[0].Session, nil
}

// ExportArgs are the arguments of export.
type ExportArgs struct {
	Session string `json:"session,omitempty" doc:"a session, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"or a graph, by any id it has had or the name of a member, also one that ended"`
	Path    string `json:"path" op:"required" doc:"the file to be written; there must be none"`
}

// ExportResult is the result of export.
type ExportResult struct {
	Session SessionID `json:"session"`
	Path    string    `json:"path"`
}

// ForkArgs are the arguments of fork.
type ForkArgs struct {
	Session string `json:"session,omitempty" doc:"a session, live or ended"`
	Graph   string `json:"graph,omitempty" doc:"or a graph, by any id it has had or the name of a member, also one that ended"`
	Dir     string `json:"dir" op:"required" doc:"the session directory to be made"`
}

// ForkResult is the result of fork.
type ForkResult struct {
	Session SessionID `json:"session"` // the new one
	Parent  SessionID `json:"parent"`
	Dir     string    `json:"dir"`
}

func copyOperations() []Operation {
	return []Operation{
		read("export", "Writes a session to a file that stands alone.", export),
		read("fork", "Makes a new session directory in which a session goes on by itself.", fork),
	}
}

func export(ctx context.Context, s *session, a *ExportArgs) (*ExportResult, error) {
	from, session, err := s.copied(ctx, "export", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	if err := from.Export(ctx, session, a.Path); err != nil {
		return nil, err
	}
	return &ExportResult{Session: session, Path: a.Path}, nil
}

func fork(ctx context.Context, s *session, a *ForkArgs) (*ForkResult, error) {
	from, parent, err := s.copied(ctx, "fork", a.Graph, a.Session)
	if err != nil {
		return nil, err
	}
	child, err := from.Fork(ctx, parent, a.Dir)
	if err != nil {
		return nil, err
	}
	return &ForkResult{Session: child, Parent: parent, Dir: a.Dir}, nil
}

// copied is [Terrarium.copied] of what an operation names.
func (s *session) copied(ctx context.Context, op, graph, session string) (Copier, SessionID, error) {
	of, err := graphOrSession(ctx, s, op, graph, session)
	if err != nil {
		return nil, "", err
	}
	return s.t.copied(ctx, op, of)
}
