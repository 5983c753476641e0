// Package gateway stands between sensors and an uplink. It reads lines such as
// "s07 41 too hot", as from a serial port, and forwards alerts. While the uplink is down,
// alerts wait in the session.
package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
)

//go:embed gateway.hcl
var files embed.FS

// Uplink forwards an alert. An error means that the uplink is down. After a crash, an alert
// may be forwarded a second time, with the same number.
type Uplink func(ctx context.Context, number uint64, alert []byte) error

// Gateway is a running gateway. One goroutine at a time may use it.
type Gateway struct {
	t        *terrarium.Terrarium
	channels map[string]terrarium.ChannelID
	alerts   *terrarium.Reader
	waiting  *terrarium.Incoming // read from alerts, but not forwarded yet
	uplink   Uplink
}

// Open opens the gateway, and continues its session if there is one. The options name the
// session directory. Open adds the recipe, and a budget for the disk if they have none.
func Open(ctx context.Context, o terrarium.Options, uplink Uplink) (*Gateway, error) {
	o.FS, o.NoSearchIndex = files, true
	o.MaxDiskBytes = cmp.Or(o.MaxDiskBytes, 64<<20)
	t, err := terrarium.New(ctx, o)
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

// burst is the largest number of lines that are sent together.
const burst = 64

// Serve reads lines until the input ends, and forwards the alerts that result from them.
// Lines that arrive together are made durable together.
func (g *Gateway) Serve(ctx context.Context, in io.Reader) error {
	lines := bufio.NewReader(in)
	var readings []string
	tooLong := false // whether the last piece was the beginning of a line that is too long
	for {
		line, cut, err := lines.ReadLine()
		if err == nil && !cut && !tooLong { // a piece of a longer line is noise
			readings = append(readings, string(line))
		}
		tooLong = cut
		if err != nil || !another(lines) || len(readings) == burst {
			if err := g.take(ctx, readings); err != nil {
				return err
			}
			readings = readings[:0]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// another reports whether a complete line has already been read. The rest of an incomplete
// line may take long to arrive.
func another(lines *bufio.Reader) bool {
	ahead, _ := lines.Peek(lines.Buffered()) // what has been read, without reading more
	return bytes.IndexByte(ahead, '\n') >= 0
}

// take sends readings to the creatures of their sensors, and drops noise. All readings are in
// one log, so they are durable once the last one is.
func (g *Gateway) take(ctx context.Context, readings []string) error {
	readings = slices.DeleteFunc(readings, func(r string) bool { return g.channelOf(r) == "" })
	for i, r := range readings {
		if _, err := g.t.Send(ctx, g.channelOf(r), terrarium.Outgoing{Payload: []byte(r), Durable: i == len(readings)-1}); err != nil {
			return err
		}
	}
	return g.Forward(ctx)
}

// channelOf returns the channel of the sensor that a reading begins with, or "" for noise.
func (g *Gateway) channelOf(reading string) terrarium.ChannelID {
	sensor, _, _ := strings.Cut(reading, " ")
	return g.channels[fmt.Sprintf("channel.readings[%q]", sensor)]
}

// Forward forwards the waiting alerts. If the uplink is down, it returns, and the alerts wait.
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
			return nil // the uplink is down
		}
		g.alerts.Ack(g.waiting.Seq)
		g.waiting = nil
	}
	return nil
}

// Terrarium returns what the gateway runs on, for figures and problems.
func (g *Gateway) Terrarium() *terrarium.Terrarium { return g.t }

// Close closes the gateway.
func (g *Gateway) Close(ctx context.Context) error {
	g.alerts.Close()
	return g.t.Close(ctx)
}
