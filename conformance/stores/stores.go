// Package stores is the conformance suite for session stores. It runs the checks of
// engine/storetest in any program, with a verdict for each: a check that panics or hangs
// does not end the run.
package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
)

// Subject is a store to test.
type Subject struct {
	Name string // for the report
	// Open opens the session directory dir, and creates it if need be. Several goroutines
	// may open different directories at the same time.
	Open func(ctx context.Context, dir string) (journal.Storage, error)
	// Limit is how long a check may take; 0 means one minute. Grace is how long it may take
	// to end after that; 0 means five seconds.
	Limit, Grace time.Duration
}

const (
	defaultLimit = time.Minute
	defaultGrace = 5 * time.Second
	// maxHanging is how many checks may hang; then the rest are not tried. A goroutine that
	// hangs cannot be ended, and keeps its resources.
	maxHanging = 3
	// workers is how many checks run at the same time. They mostly wait for the disk.
	workers = 4
)

// Names returns the names of the checks, in order.
func Names() (out []string) {
	for _, c := range storetest.Checks() {
		out = append(out, c.Name)
	}
	return out
}

// Checks returns the names of the checks and the rules that each proves.
func Checks() map[string][]string {
	out := map[string][]string{}
	for _, c := range storetest.Checks() {
		out[c.Name] = c.Proves
	}
	return out
}

// Run runs the checks for whose names selected returns true. It uses directories below a
// temporary one, which it removes. An error concerns ctx or that directory.
//
// A panic in a goroutine of the store itself ends the process. A check that hangs is left
// behind with its goroutine.
func Run(ctx context.Context, s *Subject, selected func(check string) bool) (results []report.Result, err error) {
	top, err := os.MkdirTemp("", "terrarium-store-")
	if err != nil {
		return nil, err
	}
	r := &runner{subject: s, dir: top}
	defer func() {
		if rerr := os.RemoveAll(top); r.hanging == 0 { // what hangs may still write
			err = errors.Join(err, rerr)
		}
	}()
	checks := slices.DeleteFunc(storetest.Checks(), func(c storetest.Check) bool { return !selected(c.Name) })
	results = make([]report.Result, len(checks))
	queue := make(chan int)
	var group sync.WaitGroup
	for range min(workers, len(checks)) {
		group.Go(func() {
			for i := range queue {
				results[i] = r.run(ctx, &checks[i])
			}
		})
	}
	for i := range checks {
		queue <- i
	}
	close(queue)
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// runner runs the checks of one store.
type runner struct {
	subject *Subject
	dir     string

	mu      sync.Mutex
	hanging int // checks that are left behind
}

func (r *runner) run(ctx context.Context, c *storetest.Check) report.Result {
	out := report.Result{Check: c.Name, Subject: r.subject.Name, About: c.About, Rules: c.Proves, Verdict: report.Passed}
	r.mu.Lock()
	tooMany := r.hanging >= maxHanging
	r.mu.Unlock()
	if tooMany || ctx.Err() != nil {
		out.Verdict, out.Reason, out.Seen = report.Inconclusive, report.Unreached, []string{fmt.Sprintf("it was not run, because %d checks hang", maxHanging)}
		return out
	}
	limit := cmp.Or(r.subject.Limit, defaultLimit)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &trial{ctx: limited, top: r.dir}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.perform(c, r.subject)
	}()
	hangs := !within(limited, ended, cmp.Or(r.subject.Grace, defaultGrace))
	seen, skipped := t.end()
	if hangs {
		r.mu.Lock()
		r.hanging++
		r.mu.Unlock()
		seen = append(seen, "it still runs, and was left behind")
	}
	switch {
	case hangs || limited.Err() != nil: // a check that was cut short has not passed
		out.Verdict, out.Reason = report.Inconclusive, report.StoreSilent
		out.Seen = append([]string{fmt.Sprintf("the check did not end within %v", limit)}, seen...)
	case len(seen) > 0:
		out.Verdict, out.Seen = report.Failed, seen
	case skipped != "":
		out.Verdict, out.Reason, out.Seen = report.NotApplicable, report.LacksFeature, []string{skipped}
	}
	return out
}

// within waits for the end of a check, and a while longer once its context has ended.
func within(ctx context.Context, ended <-chan struct{}, grace time.Duration) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
