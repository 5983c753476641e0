// Package notes keeps and counts the notes of an app that the system may suspend or end at
// any time. A mobile app would use such a package through a binding.
package notes

import (
	"context"
	"embed"
	"errors"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/host"
)

//go:embed notes.hcl
var files embed.FS

// suspending bounds how long Suspend takes, because a system gives an app little time.
const suspending = 2 * time.Second

// Notes are the notes of an app. One goroutine at a time may use them.
type Notes struct {
	dir  string
	host *host.Host // kept while suspended, so that no module is compiled twice
	t    *terrarium.Terrarium
	ids  *terrarium.Applied
}

// Open opens the notes in a directory. They are suspended at first.
func Open(ctx context.Context, dir string) (*Notes, error) {
	h, err := host.New(ctx, host.Options{})
	if err != nil {
		return nil, err
	}
	return &Notes{dir: dir, host: h}, nil
}

// Resume continues after Suspend, or after the end of an earlier process.
func (n *Notes) Resume(ctx context.Context) error {
	t, err := terrarium.New(ctx, terrarium.Options{
		Dir: n.dir, Host: n.host, FS: files, Workers: 1, NoSearchIndex: true, ShutdownTimeout: suspending,
	})
	if err != nil {
		return err
	}
	applied, err := t.Apply(ctx, "fs:/notes.hcl", terrarium.RecipeOptions{})
	if err != nil {
		return errors.Join(err, t.Close(ctx))
	}
	n.t, n.ids = t, applied
	return nil
}

// Add adds a note. Once it returns, the note survives the end of the process.
func (n *Notes) Add(ctx context.Context, text string) error {
	_, err := n.t.Send(ctx, n.ids.Channels["channel.notes"], terrarium.Outgoing{Payload: []byte(text), Durable: true})
	return err
}

// Total returns how many notes there are.
func (n *Notes) Total(ctx context.Context) (string, error) {
	if err := n.t.WaitIdle(ctx); err != nil {
		return "", err
	}
	state, err := n.t.State(ctx, n.ids.Creatures["creature.counter"], "total")
	if err != nil || len(state) == 0 {
		return "0", err
	}
	return string(state[0].Value), nil
}

// Suspend writes everything and releases the directory.
func (n *Notes) Suspend(ctx context.Context) error {
	err := n.t.Close(ctx)
	n.t = nil
	return err
}

// Close releases what Open has taken. The notes must be suspended.
func (n *Notes) Close(ctx context.Context) error { return n.host.Close(ctx) }
