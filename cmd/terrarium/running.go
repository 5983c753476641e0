package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium"
)

// running is one run under way.
type running struct {
	f *runFlags
	s streams
	t *terrarium.Terrarium
	// begin applies the recipes to run.
	begin func(ctx context.Context) ([]*terrarium.Applied, error)
	// beside, if set by begin, works until its context ends, which is when the run is over.
	beside  func(ctx context.Context)
	applied []*terrarium.Applied
	inputs  []*input
	printer *printer
	report  *reporter
	// redelivered is the number of dead letters that were delivered again.
	redelivered atomic.Int64
}

// deadLetters is the number of deliveries that have become dead letters in this run, and
// were not delivered again.
func (x *running) deadLetters() int64 { return x.t.DeadLetterCount() - x.redelivered.Load() }

// watched is do with a watcher, if there is one. When the watcher has seen enough, the
// run ends as if it were done.
func (x *running) watched(ctx context.Context) error {
	if x.f.watch == nil {
		return x.do(ctx)
	}
	work, enough := context.WithCancel(ctx)
	defer enough()
	end, err := x.f.watch(ctx, x.t, enough)
	if err != nil {
		return err
	}
	err = x.do(work)
	if ctx.Err() == nil && work.Err() != nil {
		err = nil
	}
	return errors.Join(err, end())
}

// do runs the applied recipes until the run is idle or interrupted.
func (x *running) do(ctx context.Context) (err error) {
	x.report = newReporter(x)
	if x.applied, err = x.begin(ctx); err != nil {
		return applyExit(ctx, err)
	}
	x.tellRemoved()
	defer tellWeakDisk(ctx, os.DirFS("/"), x.f.session, x.t, func(message, remedy string) {
		x.report.write(fmt.Sprintf("Warning: %s\n  Remedy: %s\n", oneLine(message), remedy))
	})()
	x.printer, err = newPrinter(x)
	if err != nil {
		return failWith(exitFailed, err)
	}
	watch := x.report.start(ctx)
	err = x.feedAndPrint(ctx)
	watch()
	switch {
	case errors.Is(err, errNoReader):
		x.report.summary("Stopped, because the reader of standard output has closed it,")
		return err
	case err != nil:
		x.report.summary("Failed")
		return failWith(exitFailed, err)
	case ctx.Err() != nil:
		x.report.summary("Stopped")
		return nil
	}
	x.report.summary("Done")
	x.tellStops()
	x.tellBacklog()
	if err := policyFailures(x.s, x.t); err != nil {
		return err
	}
	if n := x.deadLetters(); n > 0 {
		return failWith(exitDeadLetters, fmt.Errorf("%s%s", becameDeadLetters(n), x.whereToLook()))
	}
	return nil
}

// printGrace is how long a write to standard output may block after an interruption.
// Such a write cannot be ended.
const printGrace = 2 * time.Second

// feedAndPrint feeds the inputs and prints the outputs. It returns when the
// run is over: done, failed or, without an error, interrupted.
func (x *running) feedAndPrint(ctx context.Context) error {
	work, fail := context.WithCancelCause(ctx)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		x.printer.run(work, fail)
	}()
	var others sync.WaitGroup
	if x.beside != nil {
		others.Go(func() { x.beside(work) })
	}
	x.work(work, fail)
	failure := context.Cause(work)
	fail(nil)
	others.Wait()
	select {
	case <-printed:
	case <-time.After(printGrace):
	}
	if ctx.Err() != nil {
		return nil
	}
	return failure
}

// work feeds the inputs and waits until the run is done, all recipes have stopped or the
// context ends.
func (x *running) work(work context.Context, fail context.CancelCauseFunc) {
	feeding, enough := context.WithCancel(work)
	var watching sync.WaitGroup
	watching.Go(func() { x.watchStops(feeding, enough) })
	defer func() { enough(); watching.Wait() }()
	x.feed(feeding, fail)
	if !x.f.exitWhenIdle && feeding.Err() == nil {
		x.tellItGoesOn()
		<-feeding.Done()
	}
	if work.Err() != nil {
		return
	}
	err := x.t.Connectors().WaitSources(feeding)
	if feeding.Err() != nil && work.Err() == nil {
		err = nil // further input would only wait
	}
	for _, wait := range []func(context.Context) error{x.t.WaitIdle, x.printer.drain, x.t.Connectors().WaitSinks} {
		if err == nil {
			err = wait(work)
		}
	}
	if err != nil {
		fail(err)
	}
}

// feed feeds all inputs, and returns when they have ended.
func (x *running) feed(work context.Context, fail context.CancelCauseFunc) {
	unhook := context.AfterFunc(work, func() { closeInputs(x.inputs) })
	defer unhook()
	var feeders sync.WaitGroup
	for _, in := range x.inputs {
		feeders.Go(func() {
			if err := in.feed(work, x); err != nil && work.Err() == nil {
				fail(err)
			}
		})
	}
	feeders.Wait()
}

// channel finds a channel of the recipes by its name or address.
func (x *running) channel(name string) (terrarium.ChannelID, error) {
	for _, a := range x.applied {
		for _, address := range []string{name, "channel." + name} {
			if id, ok := a.Channels[address]; ok {
				return id, nil
			}
		}
	}
	return x.t.FindChannel("", name)
}
