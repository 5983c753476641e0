package terrarium

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Export is [engine.Engine.Export]. It accepts the same names as History.
func (t *Terrarium) Export(ctx context.Context, graphOrSession, path string) error {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return err
	}
	return t.engine.Export(ctx, of, path)
}

// Fork is [engine.Engine.Fork]. It accepts the same names as History.
func (t *Terrarium) Fork(ctx context.Context, graphOrSession, dir string) (SessionID, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return "", err
	}
	return t.engine.Fork(ctx, of, dir)
}

// ForkAt is [engine.Engine.ForkAt]. It accepts the same names as History.
func (t *Terrarium) ForkAt(ctx context.Context, graphOrSession string, at journal.EventCursor, dir string) (SessionID, journal.EventID, error) {
	of, err := t.lasting(ctx, graphOrSession)
	if err != nil {
		return "", journal.EventID{}, err
	}
	return t.engine.ForkAt(ctx, of, at, dir)
}

// Settle waits until the history of every graph is in the file of its session, and all
// files that no session needs have been removed; see [sqlitestore.Directory.Settle]. It
// returns the problems that prevent this at present. Only a caller that reads the files
// with other tools needs Settle.
func (t *Terrarium) Settle(ctx context.Context) error {
	if s, ok := t.storage.(interface{ Settle(context.Context) error }); ok {
		return s.Settle(ctx)
	}
	return nil
}

// SessionOf returns the present session of a live graph. Any other id is returned as the
// id of a session.
func (t *Terrarium) SessionOf(graphOrSession string) SessionID {
	graphs, err := t.Status(GraphID(graphOrSession))
	if err == nil && len(graphs) == 1 && graphs[0].Session != "" {
		return graphs[0].Session
	}
	return SessionID(graphOrSession)
}
