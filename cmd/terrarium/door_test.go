package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// A command waits for a process that has the directory but not yet its socket, and says what
// to do if no socket appears.
func TestCommandsWaitForAProcessThatStarts(t *testing.T) {
	dir := t.TempDir()
	tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	s := streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	find := func() (*holder, error) { return findHolder(t.Context(), s, dir, holding{paused: true, despite: false}) }
	pauses := 0
	_, err = waitForHolder(t.Context(), find, func() { pauses++ })
	var e *abi.Error
	var code *exit
	if !errors.As(err, &e) || e.Code != abi.Unavailable || !strings.Contains(e.Remedy, "run the command again") || !errors.As(err, &code) || code.code != exitSession || pauses != startingTries-1 {
		t.Errorf("without a socket: %v after %d pauses", err, pauses)
	}

	ctx, end := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer end()
	h, err := waitForHolder(t.Context(), find, func() {
		if pauses++; pauses != startingTries+2 {
			return
		}
		listener, err := serve.ListenSocket(ctx, dir)
		if err != nil {
			t.Error(err)
			return
		}
		handler := serve.NewHandler(tr, serve.Options{})
		serving.Go(func() {
			if err := handler.ServeTrusted(ctx, listener); err != nil {
				t.Error(err)
			}
		})
	})
	if err != nil || !h.running {
		t.Fatalf("with a socket that comes later: %+v, %v", h, err)
	}
	var status operations.StatusResult
	if err := h.do(t.Context(), "status", operations.StatusArgs{}, &status); err != nil {
		t.Error(err)
	}
	if err := h.close(t.Context()); err != nil {
		t.Error(err)
	}
}
