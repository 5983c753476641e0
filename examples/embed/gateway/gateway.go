// Package gateway stands between sensors and an uplink. It reads lines such as
// "s07 41 too hot", as from a serial port, and forwards alerts. While the uplink is away,
// alerts wait in the session.
package gateway

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed47132306/terrarium"
)

//go:embed gateway.hcl
var files embed.FS

// Uplink sends an alert on. An error means that the uplink is away. An alert may come a
// second time after a crash, and then has the same number.
type Uplink func(ctx context.Context, number uint64, alert []byte) error

// Gateway is a running gateway. One goroutine at a time may use it.
type Gateway struct {
	t        *terrarium.Terrarium
	channels map[string]terrarium.ChannelID
	alerts   *terrarium.Reader
	waiting  *terrarium.Incoming // read from alerts, and not forwarded yet
	uplink   Uplink
}

// Open opens the gateway, and continues its session if there is one.
func Open(ctx context.Context, dir string, uplink Uplink) (*Gateway, error) {
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, FS: files, MaxDiskBytes: 64 << 20, NoSearchIndex: true})
	if err != nil {
		return nil, err
	}
	g := &Gateway{t: t, uplink: uplink}
	applied, err := t.Apply(ctx, "fs:/gateway.hcl", terrarium.RecipeOptions{})
	if err == nil {
		g.channels = applied.Channels
		g.alerts, err = t.Read(g.channels["channel.alerts"], "uplink", terrarium.ReaderOptions{FromStart: true})
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return g, nil
}

// Serve takes lines until in ends, and forwards the alerts that follow from each.
func (g *Gateway) Serve(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		sensor, reading, _ := strings.Cut(lines.Text(), " ")
		channel, known := g.channels[fmt.Sprintf("channel.readings[%q]", sensor)]
		if !known {
			continue // noise on the line
		}
		if _, err := g.t.Send(ctx, channel, terrarium.Outgoing{Payload: []byte(sensor + " " + reading), Durable: true}); err != nil {
			return err
		}
		if err := g.Forward(ctx); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Forward forwards the alerts that wait, until the uplink is away.
func (g *Gateway) Forward(ctx context.Context) error {
	if err := g.t.WaitIdle(ctx); err != nil {
		return err
	}
	for g.waiting != nil || g.alerts.Pending() > 0 {
		if g.waiting == nil {
			alert, err := g.alerts.Next(ctx)
			if err != nil {
				return err
			}
			g.waiting = &alert
		}
		if g.uplink(ctx, g.waiting.Seq, g.waiting.Payload) != nil {
			return nil // it is away
		}
		g.alerts.Ack(g.waiting.Seq)
		g.waiting = nil
	}
	return nil
}

// Close closes the gateway.
func (g *Gateway) Close(ctx context.Context) error {
	g.alerts.Close()
	return g.t.Close(ctx)
}
