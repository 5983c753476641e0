package terrarium

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
)

// ReplayTurnOptions names a recorded turn to run again, and the module.
type ReplayTurnOptions struct {
	Turn journal.EventID // its event, turn_ended or turn_failed
	// Of is the graph or session in whose history the turn is looked up, by the same names
	// as in [Terrarium.History]. Empty means all sessions.
	Of string
	// Module replaces the recorded module: a path, builtin:NAME, or sha256: and at least 8
	// digits of the hash of a module that a creature of this terrarium has.
	Module string
}

const (
	// maxRepeating is how many calls of ReplayTurn run at a time.
	maxRepeating = 2
	// replayTurnTime bounds one of them.
	replayTurnTime = 30 * time.Second
)

// ReplayTurn runs a recorded turn again and compares it with the record; see [replay.Turn].
// It changes nothing, and the graph continues meanwhile. At most two calls run at a time, and
// others wait. One that takes more than 30 seconds ends with the code deadline.
func (t *Terrarium) ReplayTurn(ctx context.Context, o ReplayTurnOptions) (*replay.Comparison, error) {
	source, recorded := t.storage.(replay.Source)
	if !recorded {
		return nil, &abi.Error{
			Code: abi.Unsupported, Op: "replay_turn", Message: "there is no session directory, so no turn is recorded", Remedy: "start with a session directory",
			IDs: map[string]string{"turn": o.Turn.String()},
		}
	}
	select {
	case t.repeating <- struct{}{}:
		defer func() { <-t.repeating }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, t.replayTurnTime)
	defer cancel()
	out, err := replayTurn(bounded, t, source, o)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return nil, &abi.Error{
			Code: abi.Deadline, Op: "replay_turn", Message: fmt.Sprintf("the turn was not run again within %v", t.replayTurnTime),
			Remedy: "run terrarium replay --turn on the session directory, which may take longer", IDs: map[string]string{"turn": o.Turn.String()},
		}
	}
	return out, err
}

func replayTurn(ctx context.Context, t *Terrarium, source replay.Source, o ReplayTurnOptions) (*replay.Comparison, error) {
	r := replay.TurnOptions{Source: source, Host: t.host, Load: t.defaults.LoadModule, Turn: o.Turn}
	if o.Of != "" {
		lineage, err := t.Lineage(ctx, o.Of)
		if err != nil {
			return nil, err
		}
		in := map[journal.SessionID]bool{}
		for i := range lineage {
			in[lineage[i].Session] = true
		}
		r.Sessions = func(info *journal.SessionInfo) bool { return in[info.Session] }
	}
	if o.Module != "" {
		var err error
		if r.Module, err = moduleNamed(ctx, t, o.Module); err != nil {
			return nil, err
		}
	}
	return replay.Turn(ctx, r)
}

// ReplayTurn runs one recorded turn of a session directory again and compares it with the
// record; see [replay.Turn]. It uses only the options Module and Sessions, and those of the
// host. The directory is only read, and may be in use.
func ReplayTurn(ctx context.Context, dir string, turn journal.EventID, o ReplayOptions) (out *replay.Comparison, err error) {
	err = o.replaying(ctx, dir, func(source replay.Source, h abi.Host) error {
		out, err = replay.Turn(ctx, replay.TurnOptions{Source: source, Host: h, Load: o.Load, Turn: turn, Module: o.Module, Sessions: o.Sessions})
		return err
	})
	return out, err
}

// hashPrefix begins the name of a module by its hash.
const hashPrefix = "sha256:"

// minHash is how many digits of a hash name a module at least.
const minHash = 8

// moduleNamed reads a module by its name, or by the hash of one that a creature has.
func moduleNamed(ctx context.Context, t *Terrarium, name string) ([]byte, error) {
	hash, ok := strings.CutPrefix(name, hashPrefix)
	if !ok {
		return t.defaults.LoadModule(ctx, name)
	}
	ids := map[string]string{"module": name}
	found, err := modulesWithHash(t, hash)
	switch {
	case err != nil:
		return nil, err
	case len(hash) < minHash:
		return nil, &abi.Error{Code: abi.InvalidArgument, Op: "replay_turn", Message: fmt.Sprintf("the hash has fewer than %d digits", minHash), Remedy: "give more digits of the hash", IDs: ids}
	case len(found) == 0:
		return nil, &abi.Error{Code: abi.NotFound, Op: "replay_turn", Message: "no creature has a module with that hash", Remedy: "status lists the modules of creatures", IDs: ids}
	case len(found) > 1:
		return nil, &abi.Error{Code: abi.Ambiguous, Op: "replay_turn", Message: "several modules have a hash that begins with these digits", Remedy: "give more digits of the hash", IDs: ids}
	}
	for sum, names := range found {
		var errs []error
		for path := range names {
			wasm, err := t.defaults.LoadModule(ctx, path)
			if now := sha256.Sum256(wasm); err == nil && hex.EncodeToString(now[:]) == sum {
				return wasm, nil
			}
			errs = append(errs, err)
		}
		err = errors.Join(errs...)
	}
	return nil, &abi.Error{
		Code: abi.Conflict, Op: "replay_turn", Message: "the module's file has changed or disappeared since a creature was started with it",
		Remedy: "build it again, or name another one", IDs: ids, Err: err,
	}
}

// modulesWithHash returns the modules of creatures whose hashes begin with some digits: their
// names, by hash.
func modulesWithHash(t *Terrarium, hash string) (map[string]map[string]bool, error) {
	out := map[string]map[string]bool{}
	add := func(sum, name string) {
		if !strings.HasPrefix(sum, strings.ToLower(hash)) {
			return
		}
		if out[sum] == nil {
			out[sum] = map[string]bool{}
		}
		out[sum][name] = true
	}
	graphs, err := t.engine.Status("")
	for i := range graphs {
		for k := range graphs[i].Creatures {
			add(graphs[i].Creatures[k].ModuleSHA256, graphs[i].Creatures[k].Module)
		}
	}
	for _, g := range t.engine.Saved() {
		for k := range g.Creatures {
			add(g.Creatures[k].SHA256, g.Creatures[k].Module)
		}
	}
	return out, err
}
