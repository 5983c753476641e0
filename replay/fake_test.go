package replay_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// behaviour is a creature in Go: it does the work of creature_handle. memory stands for
// the linear memory.
type behaviour func(t abi.Turn, kind abi.Kind, memory *int) error

// fakeHost runs behaviours. The bytes of a module are its behaviour's name.
type fakeHost struct {
	mu         sync.Mutex
	behaviours map[string]behaviour
}

func (h *fakeHost) Close(context.Context) error { return nil }

func (h *fakeHost) Compile(_ context.Context, wasm []byte) (abi.Module, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.behaviours[string(wasm)]
	if b == nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "there is no behaviour " + string(wasm)}
	}
	return &fakeModule{b, abi.ModuleInfo{SHA256: "sum-of-" + string(wasm)}}, nil
}

type fakeModule struct {
	b    behaviour
	info abi.ModuleInfo
}

func (m *fakeModule) Info() *abi.ModuleInfo       { return &m.info }
func (m *fakeModule) Close(context.Context) error { return nil }
func (m *fakeModule) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return &fakeInstance{m: m}, nil
}

type fakeInstance struct {
	m      *fakeModule
	memory int
	broken bool
}

func (i *fakeInstance) Handle(_ context.Context, t abi.Turn, kind abi.Kind, _ int) error {
	if i.broken {
		return errors.New("a broken instance is used again")
	}
	err := i.m.b(t, kind, &i.memory)
	i.broken = err != nil
	return err
}

func (i *fakeInstance) Stop(context.Context, abi.Turn) error { return nil }
func (i *fakeInstance) MemoryBytes() int64                   { return 0 }
func (i *fakeInstance) FuelUsed() int64                      { return -1 }
func (i *fakeInstance) Close(context.Context) error          { return nil }

func load(_ context.Context, module string) ([]byte, error) { return []byte(module), nil }

// world is an engine with a session directory.
type world struct {
	*engine.Engine
	t       testing.TB
	dir     string
	host    *fakeHost
	options sqlitestore.Options
	storage *sqlitestore.Directory
}

func newWorld(t testing.TB, behaviours map[string]behaviour) *world {
	w := &world{t: t, dir: t.TempDir(), host: &fakeHost{behaviours: behaviours}}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.storage, err = sqlitestore.Open(w.t.Context(), w.dir, w.options); err != nil {
		w.t.Fatal(err)
	}
	if w.Engine, err = engine.New(w.t.Context(), engine.Options{Host: w.host, Storage: w.storage, Load: load}); err != nil {
		w.t.Fatal(err)
	}
	if _, problems, err := w.Restore(w.t.Context()); err != nil || len(problems) > 0 {
		w.t.Fatal(problems, err)
	}
}

// close ends the run; it may be called twice.
func (w *world) close() {
	w.t.Helper()
	if w.Engine == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(w.Close(ctx), w.storage.Close()); err != nil {
		w.t.Error(err)
	}
	w.Engine = nil
}

func (w *world) add(name, module string, more ...func(*deploy.CreatureSpec)) journal.CreatureID {
	w.t.Helper()
	spec := deploy.CreatureSpec{Name: name, Module: module, Restart: deploy.RestartPolicy{Max: 1000, Backoff: time.Microsecond, BackoffMax: time.Microsecond, Attempts: 2}}
	for _, f := range more {
		f(&spec)
	}
	added, err := w.AddCreature(w.t.Context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return added.Creature
}

func (w *world) tell(to journal.CreatureID, payload string) journal.EventID {
	w.t.Helper()
	sent, err := w.SendTo(w.t.Context(), to, engine.Outgoing{Payload: []byte(payload)})
	if err != nil {
		w.t.Fatal(err)
	}
	return sent.Message
}

func (w *world) change(op topology.Op) {
	w.t.Helper()
	if _, err := w.Change(w.t.Context(), op); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wait() {
	w.t.Helper()
	if err := w.WaitIdle(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// replay ends the run and replays what it has recorded.
func (w *world) replay(o replay.Options) *replay.Report {
	w.t.Helper()
	w.close()
	return replayDir(w.t, w.dir, w.host, o)
}

func replayDir(t testing.TB, dir string, h abi.Host, o replay.Options) *replay.Report {
	t.Helper()
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}()
	o.Source, o.Host, o.Load = v, h, load
	r, err := replay.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// turnOf finds the first turn that handled a message, without the help of the package.
func (w *world) turnOf(creature journal.CreatureID, message journal.EventID) journal.EventID {
	w.t.Helper()
	v, err := sqlitestore.OpenReadOnly(w.t.Context(), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer v.Close()
	sessions, err := v.Sessions(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range sessions {
		events, err := v.History(w.t.Context(), s.Session, journal.HistoryQuery{
			Creature: creature, Kinds: []journal.EventKind{journal.EventTurnEnded, journal.EventTurnFailed}, Limit: 100_000,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Cause == message {
				return ev.ID
			}
		}
	}
	w.t.Fatalf("no turn of %s has handled %s", creature, message)
	return journal.EventID{}
}

// same fails the test unless every turn was compared and none differs.
func same(t testing.TB, r *replay.Report, turns int) {
	t.Helper()
	for _, d := range r.Differences {
		t.Errorf("turn %s of %s differs (%s %q):\nrecorded %v\nreplayed %v", d.Turn, d.Name, d.Delivery.Kind, d.Delivery.Payload, d.Recorded, d.Replayed)
	}
	for _, u := range r.Unjudged {
		t.Errorf("not compared: %+v", u)
	}
	if r.Turns < turns {
		t.Errorf("%d turns were run again, want %d at least", r.Turns, turns)
	}
}
