package terrarium

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/host/translation"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// ReplayOptions selects the recorded turns of a session directory to run again, and the
// module; see [replay.Options], which has more.
type ReplayOptions struct {
	// Creatures lists ids or names, in which * matches any text. Empty means all.
	Creatures []string
	// Module replaces the recorded module.
	Module []byte
	// From is the cursor after which to begin. Empty means the start.
	From journal.EventCursor
	// Fresh runs every turn on a new instance.
	Fresh bool
	// All continues after the first turn that differs.
	All bool
	// Sessions, if not nil, selects sessions.
	Sessions func(*journal.SessionInfo) bool
	// CacheDir and CacheOptional keep compiled modules, as in [Options].
	CacheDir      string
	CacheOptional bool
	// Load reads a module by its recorded name; nil means [LoadModule].
	Load func(ctx context.Context, module string) ([]byte, error)
	// Compiler compiles large modules, as in [Options].
	Compiler []string
	// Translations are modules that run as Go code, as in [Options].
	Translations []translation.Code
}

// Replay runs recorded turns of a session directory again, on the recorded modules or on
// another one, and compares their effects. The directory is only read, and may be in use.
func Replay(ctx context.Context, dir string, o ReplayOptions) (report *replay.Report, err error) {
	err = o.replaying(ctx, dir, func(source replay.Source, h abi.Host) error {
		report, err = replay.Run(ctx, replay.Options{
			Source: source, Host: h, Load: o.Load, Creatures: o.Creatures, Module: o.Module, From: o.From,
			Sessions: o.Sessions, Fresh: o.Fresh, All: o.All,
		})
		return err
	})
	return report, err
}

// replaying calls f with a session directory, which is only read, and a host.
func (o *ReplayOptions) replaying(ctx context.Context, dir string, f func(replay.Source, abi.Host) error) (err error) {
	if o.Load == nil {
		o.Load = LoadModule
	}
	view, err := sqlitestore.OpenReadOnly(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	h, err := host.New(ctx, host.Options{CacheDir: o.CacheDir, CacheOptional: o.CacheOptional, Compiler: o.Compiler, Translations: o.Translations})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	return f(view, h)
}
