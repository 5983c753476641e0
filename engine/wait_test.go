package engine_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// unsure is a storage whose stores return a given error to callers that wait.
type unsure struct {
	journal.Storage
	err    error
	waited uint64
}

type unsureStore struct {
	journal.Store
	u *unsure
}

func (u *unsure) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	return createThrough(ctx, u.Storage, specs, func(s journal.Store) journal.Store { return &unsureStore{s, u} })
}

func (u *unsure) Cut(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	return cutThrough(ctx, u.Storage, cut, func(s journal.Store) journal.Store { return &unsureStore{s, u} })
}

func (s *unsureStore) wrapped() journal.Store { return s.Store }

func (s *unsureStore) Wait(ctx context.Context, seq uint64) error {
	s.u.waited = max(s.u.waited, seq)
	return cmp.Or(s.u.err, s.Store.Wait(ctx, seq))
}

// TestABatchIsWaitedFor waits for the events of changes that neither merge nor split. An event
// that cannot be written is reported, unless a cut has carried it over meanwhile.
func TestABatchIsWaitedFor(t *testing.T) {
	u := &unsure{}
	s := &saved{t: t, dir: t.TempDir(), wrap: func(storage journal.Storage) journal.Storage { u.Storage = storage; return u }}
	s.open()
	t.Cleanup(s.shut)
	a, b := s.add("a", "sink"), s.add("b", "sink")
	ch := s.connect(a, b, "in")
	change := func(op topology.Op) *engine.Batch {
		var made *engine.Batch
		s.try(func(b *engine.Batch) error {
			made = b
			_, err := b.Do(t.Context(), op)
			return err
		})
		return made
	}
	if err := change(topology.SetPrivileged{ID: a, Privileged: true}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := s.events(a, journal.EventTopologyChanged)
	if last := told[len(told)-1].ID.Seq; u.waited != last {
		t.Errorf("Wait has waited for event %d, but the change is event %d", u.waited, last)
	}
	made := change(topology.SetPrivileged{ID: a})
	u.err = errors.New("the disk is full")
	if err := made.Wait(t.Context()); !errors.Is(err, u.err) {
		t.Errorf("waiting for a change that cannot be written: %v, want its error", err)
	}
	u.err = nil
	made = change(topology.SetPrivileged{ID: a, Privileged: true})
	s.change(topology.RemoveChannel{ID: ch}) // splits
	u.err = errors.New("the store is closed")
	if err := made.Wait(t.Context()); err != nil {
		t.Errorf("waiting for a change that a cut has carried over: %v", err)
	}
	u.err = nil
}
