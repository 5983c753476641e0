package engine_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestAPolicyIsReplacedWithoutAGap looks up the policy for tool calls again and again while one
// policy replaces another. It always finds one.
func TestAPolicyIsReplacedWithoutAGap(t *testing.T) {
	s := newSaved(t, engine.Options{})
	strict := func() *judge { return &judge{kinds: []journal.PolicyKind{journal.JudgeTool}} }
	s.apply(team(1, judgedBy(strict())))
	stop := make(chan struct{})
	var turns sync.WaitGroup
	turns.Go(func() {
		for asked := 0; ; asked++ {
			select {
			case <-stop:
				return
			default:
			}
			if !engine.Judges(s.Engine, "team", journal.JudgeTool) {
				t.Errorf("no policy judges tool calls in lookup %d", asked)
				return
			}
		}
	})
	for range 200 {
		s.apply(team(1, judgedBy(strict())))
	}
	close(stop)
	turns.Wait()
}

// attentive is a context that reports when its end is first waited for.
type attentive struct {
	context.Context
	asked func()
}

func (c attentive) Done() <-chan struct{} {
	c.asked()
	return c.Context.Done()
}

// TestRestoreWaitsForWhoApplies calls Restore while ApplyAll waits for a turn to end. The
// graphs get what ApplyAll applies.
func TestRestoreWaitsForWhoApplies(t *testing.T) {
	s := newSaved(t, engine.Options{})
	other := func(more ...func(*deploy.Deployment)) *deploy.Deployment {
		return team(2, append(more, func(d *deploy.Deployment) { d.Name = "other" })...)
	}
	s.apply(team(2))
	s.apply(other())
	s.rest()
	begun, let := s.host.slow("slow")
	a := s.apply(team(2, func(d *deploy.Deployment) { d.Creatures[0].Wasm = []byte("slow") }))
	s.send(a.Channels["channel.c0"], "long")
	<-begun
	edited := []*deploy.Deployment{team(2), other(configured(0, `{"v":1}`))}
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := s.ApplyAll(t.Context(), edited...); err != nil {
			t.Errorf("ApplyAll: %v", err)
		}
	})
	for !engine.Held(s.Engine, a.Creatures["creature.m0"]) {
		runtime.Gosched()
	}
	waits := make(chan struct{})
	both.Go(func() {
		ctx := attentive{t.Context(), sync.OnceFunc(func() { close(waits) })}
		if _, _, err := s.Restore(ctx); err != nil {
			t.Errorf("Restore: %v", err)
		}
	})
	<-waits // until Apply is done; or Restore has the mutation lock, and Apply waits
	close(let)
	both.Wait()
	nothingLeft(t, s, edited)
}

// reversed is a storage that returns its rows in reverse order.
type reversed struct{ journal.Storage }

func (r reversed) Saved(ctx context.Context) ([]journal.SavedGraph, []error, error) {
	graphs, problems, err := r.Storage.Saved(ctx)
	for _, g := range graphs {
		slices.Reverse(g.Creatures)
		slices.Reverse(g.Edges)
	}
	return graphs, problems, err
}

// TestAPlanBesideARestore makes a plan read saved graphs while they are restored. The race
// detector checks that the plan has its own copy of the rows.
func TestAPlanBesideARestore(t *testing.T) {
	s := newSaved(t, engine.Options{})
	s.wrap = func(storage journal.Storage) journal.Storage { return reversed{storage} }
	s.apply(team(5))
	for range 5 {
		s.rest()
		var restoring sync.WaitGroup
		restoring.Go(func() {
			if _, _, err := s.Restore(t.Context()); err != nil {
				t.Errorf("Restore: %v", err)
			}
		})
		plan, err := s.Plan(t.Context(), team(5))
		restoring.Wait()
		if err != nil || !plan.Empty() {
			t.Errorf("the plan has changes: %+v, %v", plan, err)
		}
	}
}
