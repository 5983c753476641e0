package terrarium

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/cronsource"
	"github.com/seed47132306/terrarium/connector/files"
	"github.com/seed47132306/terrarium/connector/mqtt"
	"github.com/seed47132306/terrarium/connector/webhook"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// builtinConnectors are the kinds of connectors that every recipe can declare.
func builtinConnectors(hooks *webhook.Router) []connector.Kind {
	return []connector.Kind{files.Source{}, files.NewStdin(nil), files.Sink{}, cronsource.Kind{}, webhook.New(hooks), mqtt.Source{}, mqtt.Sink{}}
}

// ConnectorKinds are the kinds of sources and sinks that every recipe can declare.
func ConnectorKinds() []connector.Kind { return builtinConnectors(webhook.NewRouter()) }

// Connectors are the sources and sinks of a terrarium. The methods may be called from any
// goroutine.
type Connectors struct {
	kinds  []connector.Kind
	hooks  *webhook.Router
	runner *connector.Runner // nil: they do not run
	manual *connector.Manual // nil: the clock moves by itself
}

func (c *Connectors) open(o *Options) {
	c.hooks = webhook.NewRouter()
	c.kinds = append(builtinConnectors(c.hooks), o.Connectors...)
	if o.NoConnectors || o.Paused {
		return
	}
	var clock connector.Clock
	switch given := o.Clock.(type) {
	case *ManualClock:
		c.manual = connector.NewManual(given.Now)
		clock = c.manual
	case nil:
		clock = connector.Steps{Clock: machineClock{}}
	default:
		clock = connector.Steps{Clock: given}
	}
	c.runner = connector.NewRunner(clock, o.Log)
}

// machineClock is the clock of the machine.
type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// kind finds a kind. Later kinds of a name replace earlier ones.
func (c *Connectors) kind(d *deploy.Connector) (found connector.Kind) {
	for _, k := range c.kinds {
		if k.Name() == string(d.Kind) && string(k.Direction()) == d.Direction {
			found = k
		}
	}
	return found
}

// opened checks the connectors of deployments before these are applied.
func (c *Connectors) opened(deployments []*deploy.Deployment) (map[string][]connector.Declared, error) {
	out := map[string][]connector.Declared{}
	for _, d := range deployments {
		out[d.Name] = nil
		for i := range d.Connectors {
			spec := &d.Connectors[i]
			kind := c.kind(spec)
			if kind == nil {
				return nil, &abi.Error{
					Code: abi.Unsupported, Op: "apply", Message: fmt.Sprintf("this program has no %s of the kind %q, which %s needs", spec.Direction, spec.Kind, spec.Address()),
					Remedy: "use a program that has it, or remove the block",
				}
			}
			opened, err := connector.Open(kind, spec.Settings, spec.Address())
			if err != nil {
				return nil, err
			}
			out[d.Name] = append(out[d.Name], connector.Declared{
				Direction: kind.Direction(), Kind: connector.KindName(spec.Kind), Name: spec.Name, Deployment: d.Name, Channel: spec.Channel,
				Settings: string(spec.Settings), Opened: opened,
			})
		}
	}
	return out, nil
}

// applied starts, ends and changes connectors after deployments were applied. The channels are
// known from then on.
func (c *Connectors) applied(t *Terrarium, deployments []*deploy.Deployment, applied []*Applied, declared map[string][]connector.Declared) {
	for _, d := range deployments { // before any of them: a path may move from one to another
		var list []connector.Connector
		for i := range declared[d.Name] {
			list = append(list, declared[d.Name][i].Connector)
		}
		c.hooks.Declare(d.Name, list)
	}
	if c.runner == nil {
		return
	}
	for i, d := range deployments {
		list := declared[d.Name]
		for j := range list {
			id := applied[i].Channels[list[j].Channel]
			list[j].ChannelID = string(id)
			reader := ""
			if list[j].Direction == connector.Sink {
				reader = fmt.Sprintf("sink.%s.%s", d.Name, list[j].Name)
			}
			name := channelName(d, list[j].Channel)
			list[j].Open = func() (connector.Channel, error) { return openChannel(t, id, name, reader) }
		}
		c.runner.Set(d.Name, list)
	}
	if c.hooks.Served() { // else they do not work
		c.runner.Begun(webhook.KindName) // so that requests are taken once the recipe is applied
	}
}

func channelName(d *deploy.Deployment, address string) string {
	for i := range d.Channels {
		if d.Channels[i].Address == address {
			return d.Channels[i].Name
		}
	}
	return address
}

// connectorChannel implements [connector.Channel].
type connectorChannel struct {
	t      *Terrarium
	id     ChannelID
	name   string
	reader *engine.Reader // of a sink
}

func openChannel(t *Terrarium, id ChannelID, name, reader string) (connector.Channel, error) {
	ch := &connectorChannel{t: t, id: id, name: name}
	if reader == "" {
		return ch, nil
	}
	var err error
	ch.reader, err = t.Read(id, reader, engine.ReaderOptions{FromStart: true})
	return ch, err
}

// receipt implements [connector.Receipt].
type receipt struct{ engine.Sent }

func (r receipt) Duplicate() bool { return r.Sent.Duplicate }

func (c *connectorChannel) Send(ctx context.Context, m connector.Message) (connector.Receipt, error) {
	sent, err := c.t.Send(ctx, c.id, engine.Outgoing{Payload: m.Payload, Headers: m.Headers, Producer: m.Producer, Offset: m.Offset, Mark: m.Mark})
	return receipt{sent}, err
}

func (c *connectorChannel) Producers() (map[string]uint64, error) { return c.t.Producers(c.id) }

func (c *connectorChannel) Next(ctx context.Context) (connector.Delivery, error) {
	for {
		in, err := c.reader.Next(ctx)
		var missed *engine.Missed
		if errors.As(err, &missed) {
			c.t.log.Warn("a sink cannot deliver messages that the session no longer has", "channel", c.name, "from", missed.From, "to", missed.To)
			c.reader.Ack(missed.To)
			continue
		}
		return connector.Delivery{
			ID: in.ID.String(), Channel: c.name, Seq: in.Seq, Time: time.Unix(0, in.Time).UTC(), Sender: in.Sender, Payload: in.Payload, Headers: in.Headers,
		}, err
	}
}

func (c *connectorChannel) Ack(seq uint64) { c.reader.Ack(seq) }

func (c *connectorChannel) Drained(ctx context.Context) error { return c.reader.WaitRead(ctx) }

func (c *connectorChannel) Close() {
	if c.reader != nil {
		c.reader.Close()
	}
}

// Connectors returns the sources and sinks of the applied recipes.
func (t *Terrarium) Connectors() *Connectors { return &t.connectors }

// Status describes the sources and sinks that run, in the order of their start.
func (c *Connectors) Status() []connector.Status {
	if c.runner == nil {
		return nil
	}
	return c.runner.Status()
}

// WaitSources waits until all sources that have an end, such as files that are not followed,
// have sent everything. If ctx ends first, the error is its cause.
func (c *Connectors) WaitSources(ctx context.Context) error {
	if c.runner == nil {
		return nil
	}
	return c.runner.SourcesEnded(ctx)
}

// WaitSinks waits until the sinks have delivered everything that their channels have. If ctx
// ends first, the error is its cause.
func (c *Connectors) WaitSinks(ctx context.Context) error {
	if c.runner == nil {
		return nil
	}
	return c.runner.SinksDrained(ctx)
}

// Webhooks serves the sources of the kind webhook. Their paths begin with [webhook.Prefix].
// From the first call on, these sources count as reachable.
func (c *Connectors) Webhooks() http.Handler { return c.hooks.Serving() }

// connectorGrace bounds how long closing waits for connectors. Those that stay behind get
// errors from the engine.
const connectorGrace = 2 * time.Second

func (c *Connectors) close() {
	if c.runner == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.runner.Close()
	}()
	select {
	case <-closed:
	case <-time.After(connectorGrace):
	}
}
