package terrarium

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// ReplayOptions say which recorded turns of a session directory are run again, and on
// which module; see [replay.Options], which has more.
type ReplayOptions struct {
	// Creatures are ids or names, in which * stands for any text; none means all.
	Creatures []string
	// Module is run in place of the recorded one.
	Module []byte
	// From begins behind a cursor; empty means the start.
	From journal.EventCursor
	// Fresh makes a new instance for each turn.
	Fresh bool
	// All goes on behind the first turn that differs.
	All bool
	// Sessions, if it is not nil, chooses among the sessions.
	Sessions func(*journal.SessionInfo) bool
	// CacheDir keeps compiled modules, as in [Options].
	CacheDir string
	// Compiler compiles large modules, as in [Options].
	Compiler []string
}

// Replay runs recorded turns of a session directory again, on the modules that were
// recorded or on another, and compares what they do. The directory is only read, and
// may be in use.
func Replay(ctx context.Context, dir string, o ReplayOptions) (report *replay.Report, err error) {
	view, err := sqlitestore.OpenReadOnly(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	h, err := host.New(ctx, host.Options{CacheDir: o.CacheDir, Compiler: o.Compiler})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	return replay.Run(ctx, replay.Options{
		Source: view, Host: h, Load: LoadModule, Creatures: o.Creatures, Module: o.Module, From: o.From,
		Sessions: o.Sessions, Fresh: o.Fresh, All: o.All,
	})
}
