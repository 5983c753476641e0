package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Stage is a live engine with innocent creatures, ready for a hostile one.
//
//	outside ─► in ─► relay ─► middle ─► echo ─► out ─► tally      (the neighbours)
//	hostile ─► loot ─► victim                                     (another graph)
//
// Only one goroutine at a time may call its methods.
type Stage struct {
	// CollectGarbage collects garbage continuously during an attack, and
	// reports the longest collection. It slows down the neighbours.
	CollectGarbage bool

	t      *terrarium.Terrarium
	words  *lastWords
	in     journal.ChannelID
	out    journal.ChannelID
	victim journal.CreatureID
	graph  journal.GraphID // of the victim
	// scripts is whether a creature keeps the compiled module of scripts.
	scripts bool
	// resting is the memory use of the process without an attack.
	resting Memory
}

// NewStage starts an engine in dir, or one without stores if dir is empty, and
// its neighbours. The caller must close the stage.
func NewStage(ctx context.Context, dir string) (*Stage, error) {
	words := &lastWords{}
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, Log: slog.New(words)})
	if err != nil {
		return nil, err
	}
	s := &Stage{t: t, words: words}
	if err := s.furnish(ctx); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return s, nil
}

func (s *Stage) furnish(ctx context.Context) error {
	neighbours, err := s.t.ApplyDeployment(ctx, &deploy.Deployment{
		Name: "neighbours",
		Channels: []deploy.ChannelSpec{
			{Address: "in", Name: "in"}, {Address: "middle", Name: "middle"}, {Address: "out", Name: "out"},
		},
		Creatures: []deploy.CreatureSpec{
			{Address: "relay", Name: "relay", Module: "builtin:relay", Listen: wires("in"), Send: wires("middle")},
			{Address: "echo", Name: "echo", Module: "builtin:echo", Listen: wires("middle"), Send: wires("out")},
			{Address: "tally", Name: "tally", Module: "builtin:tally", Listen: wires("out")},
		},
	})
	if err != nil {
		return err
	}
	attacked, err := s.t.ApplyDeployment(ctx, &deploy.Deployment{
		Name:      "attacked",
		Channels:  []deploy.ChannelSpec{{Address: loot, Name: loot}},
		Creatures: []deploy.CreatureSpec{{Address: "victim", Name: "victim", Module: "builtin:relay", Listen: wires(loot)}},
	})
	if err != nil {
		return err
	}
	s.in, s.out = neighbours.Channels["in"], neighbours.Channels["out"]
	s.victim = attacked.Creatures["victim"]
	if s.graph, err = s.t.FindGraph(ctx, string(s.victim)); err != nil {
		return err
	}
	// One-time allocations of a stage are made before the measurement.
	warm, err := startTraffic(ctx, s)
	if err != nil {
		return err
	}
	if _, err := warm.stop(); err != nil {
		return err
	}
	if err := s.t.WaitIdle(ctx); err != nil {
		return err
	}
	s.resting = measure()
	return nil
}

// keepScripts adds a creature that runs a script, so that the module of all scripts is
// compiled only once.
func (s *Stage) keepScripts(ctx context.Context) error {
	if s.scripts {
		return nil
	}
	spec := deploy.CreatureSpec{Name: "scripted", Module: "builtin:js", Config: json.RawMessage(`{"script": "export default {};"}`)}
	if _, err := s.t.AddCreature(ctx, spec); err != nil {
		return err
	}
	s.scripts = true
	err := s.t.WaitIdle(ctx)
	s.resting = measure()
	return err
}

// loot is the channel that the hostile creature may send on.
const loot = "loot"

func wires(channel string) []deploy.WireSpec { return []deploy.WireSpec{{Channel: channel}} }

// Close closes the engine.
func (s *Stage) Close(ctx context.Context) error { return s.t.Close(ctx) }

// rest waits until the engine is idle, and returns the memory use of the
// process. It also waits for memory that a worker or a finalizer is about to
// release.
func (s *Stage) rest(ctx context.Context) (Memory, error) {
	if err := s.t.WaitIdle(ctx); err != nil {
		return Memory{}, err
	}
	const tries = 10
	now := measure()
	for range tries {
		if !s.resting.exceededBy(now) {
			break
		}
		runtime.Gosched()
		now = measure()
	}
	return now, nil
}

// lastWords is a log handler that keeps the last logged error: the log is the
// only place where an engine reports the outcome of a creature_stop.
type lastWords struct {
	mu  sync.Mutex
	err error
}

var _ slog.Handler = (*lastWords)(nil)

// Enabled implements slog.Handler.
func (w *lastWords) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (w *lastWords) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
		}
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (w *lastWords) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *lastWords) WithGroup(string) slog.Handler { return w }

// take returns the last error and forgets it.
func (w *lastWords) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	w.err = nil
	return err
}
