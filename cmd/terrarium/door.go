package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
	"github.com/seed47132306/terrarium/telemetry"
)

// openDoor serves the operations on the socket of the session directory, until close is
// called. Without a socket the command works as well, so a failure is only reported.
func (f *engineFlags) openDoor(ctx context.Context, t *terrarium.Terrarium) (closeDoor func()) {
	log := f.web.Log
	f.handler = serve.NewHandler(t, f.web)
	if f.session == "" || f.noSocket {
		return f.handler.End
	}
	listener, err := serve.ListenSocket(ctx, f.session)
	if err != nil {
		log.Warn("other commands cannot reach this process, because it has no socket", "error", err.Error())
		return f.handler.End
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := f.handler.ServeTrusted(work, listener); err != nil {
			log.Warn("the socket of the session directory has failed", "error", err.Error())
		}
	})
	return func() {
		end()
		serving.Wait()
	}
}

// lastSpans bounds how long the end of a command waits for a collector.
const lastSpans = 5 * time.Second

// export sends spans and figures to the collector that the environment names, until the
// door closes.
func (f *engineFlags) export(ctx context.Context, t *terrarium.Terrarium) {
	if !f.telemetry.Enabled() {
		return
	}
	f.telemetry.Log = f.web.Log
	x := telemetry.Start(ctx, t, f.telemetry)
	closeDoor := f.closeDoor
	f.closeDoor = func() {
		closeDoor()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := x.Close(bounded); err != nil {
			f.web.Log.Warn("not everything was sent to the collector", "error", err.Error())
		}
		if n := x.Lost(); n > 0 {
			f.web.Log.Warn("spans were left out", "spans", n)
		}
	}
}

// shut closes the engine, after the door.
func (f *engineFlags) shut(ctx context.Context, t *terrarium.Terrarium) error {
	if f.closeDoor != nil {
		f.closeDoor()
		defer f.collectAll()
	}
	return shut(ctx, t)
}

// holder runs operations in the process that holds a session directory: another one, or
// this one if there is no other.
type holder struct {
	run func(ctx context.Context, operation string, args []byte) ([]byte, error)
	// running says that it is another process, in which creatures run.
	running bool
	close   func(ctx context.Context) error
}

// A process that starts has the session directory for a while before it has the socket: it
// restores creatures meanwhile. Commands look for the socket so often, and pause in between.
const (
	startingTries = 20
	startingPause = 100 * time.Millisecond
)

// holding is how a command holds a session directory that no other process holds.
type holding struct {
	paused   bool // no creature runs meanwhile
	despite  bool // even if the directory is damaged
	unjudged bool // creatures run even if the policies of their recipes are not in force
}

// holderOf finds the holder of a session directory. If nothing holds it, this process does. It
// waits a little for a holder that has no socket yet.
func holderOf(ctx context.Context, s streams, dir string, how holding) (*holder, error) {
	if err := mustExist(dir); err != nil {
		return nil, err
	}
	return waitForHolder(ctx, func() (*holder, error) { return findHolder(ctx, s, dir, how) }, func() {
		t := time.NewTimer(startingPause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	})
}

// waitForHolder calls find again, after a pause, as long as a process has the directory
// without a socket.
func waitForHolder(ctx context.Context, find func() (*holder, error), pause func()) (*holder, error) {
	for try := 1; ; try++ {
		h, err := find()
		var inUse *abi.Error
		if !errors.As(err, &inUse) || inUse.Code != abi.Unavailable || inUse.Op != "open" || ctx.Err() != nil {
			return h, err
		}
		if try == startingTries {
			told := *inUse
			told.Remedy = "if that process has just started, run the command again; otherwise it has no socket, so end it first"
			return nil, sessionExit(&told)
		}
		pause()
	}
}

func findHolder(ctx context.Context, s streams, dir string, how holding) (*holder, error) {
	conn, err := serve.DialSocket(ctx, dir)
	switch {
	case err == nil:
		return remoteHolder(conn), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, failWith(exitSession, err)
	}
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, Paused: how.paused, Log: verbosity(s.err, false), PolicyProcess: policyProcess(), Compiler: compiler(), Translations: translations()})
	if err != nil {
		return nil, sessionExit(err)
	}
	err = refuseDamage(s, dir, t.Problems(), how.despite)
	if err == nil && !how.paused {
		err = refuseUnjudged(s, dir, t.Saved(), how.unjudged)
	}
	if err == nil {
		_, _, err = t.Restore(ctx)
		err = sessionExit(err)
	}
	if err != nil {
		return nil, errors.Join(err, shut(ctx, t))
	}
	return &holder{
		run: func(ctx context.Context, operation string, args []byte) ([]byte, error) {
			result, err := operations.DoAs(ctx, t, operations.Rights{Scope: operations.Admin, Via: "command"}, operation, args)
			if err != nil {
				return nil, err
			}
			return json.Marshal(result)
		},
		close: func(ctx context.Context) error { return shut(ctx, t) },
	}, nil
}

// remoteHolder runs operations in the process at the other end of a socket.
func remoteHolder(conn net.Conn) *holder {
	first := make(chan net.Conn, 1)
	first <- conn
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-first:
				return conn, nil
			default:
				return nil, &abi.Error{Code: abi.Unavailable, Message: "the process that runs the session has closed the connection", Remedy: "run the command again"}
			}
		},
	}}
	return &holder{
		running: true,
		run: func(ctx context.Context, operation string, args []byte) ([]byte, error) {
			return call(ctx, client, operation, args)
		},
		close: func(context.Context) error {
			client.CloseIdleConnections()
			return nil
		},
	}
}

// maxAnswer bounds an answer of the process that runs the session.
const maxAnswer = 1 << 30

// call sends a request for an operation.
func call(ctx context.Context, client *http.Client, operation string, args []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/api/v1/"+operation, bytes.NewReader(args))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, &abi.Error{Code: abi.Unavailable, Op: operation, Message: "the process that runs the session did not answer", Remedy: "run the command again", Err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, &abi.Error{Code: abi.UnknownOutcome, Op: operation, Message: "the process that runs the session ended while it answered", Remedy: "look at the session before you run the command again", Err: err}
	}
	if answer.StatusCode == http.StatusOK {
		return text, nil
	}
	var p serve.Problem
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("the process that runs the session answered with the status %d", answer.StatusCode)
	}
	code, _ := abi.ParseCode(p.Code)
	return nil, &abi.Error{Code: code, Message: p.Detail, Remedy: p.Remedy, IDs: p.IDs}
}

// do runs an operation and reads its result.
func (h *holder) do(ctx context.Context, operation string, args, result any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	text, err := h.run(ctx, operation, raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}
