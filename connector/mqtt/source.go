// Package mqtt implements the source and the sink of the kind mqtt: messages of topics at a
// broker, with version 5 or 3.1.1 of the protocol.
//
// A source acknowledges a message once it is durable, and recognizes it when the broker sends
// it again. A sink moves its cursor once the broker has acknowledged a message.
package mqtt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// Source is the source of the kind mqtt.
type Source struct{}

// Name implements [connector.Kind].
func (Source) Name() string { return "mqtt" }

// Direction implements [connector.Kind].
func (Source) Direction() connector.Direction { return connector.Source }

// Bounds and defaults of sources.
const (
	defaultInFlight = 256
	// maxInFlight leaves room in recent for the messages of two connections.
	maxInFlight    = slots / 2
	defaultPayload = 1 << 20
	defaultSession = 24 * time.Hour
)

// Settings implements [connector.Kind].
func (Source) Settings() []capability.Setting {
	own := []capability.Setting{
		{Name: "topics", Type: capability.Texts, Required: true, Doc: "the topics, such as `[\"sensors/+/temperature\", \"alarms/#\"]`"},
		{Name: "qos", Type: capability.Count, Default: "1", Doc: "the quality of service that the source requests: 0, 1 or 2"},
		{Name: "session", Type: capability.Duration, Default: `"24h"`, Doc: "how long the broker keeps messages while the source is not connected; with `\"0s\"` each connection begins with new messages. In version 3.1.1 the broker decides how long"},
		{Name: "retained", Type: capability.Flag, Default: "true", Doc: "take the messages that the broker retains for a topic when the source subscribes to it; they have the header `retained`"},
		{Name: "properties", Type: capability.Texts, Without: "none", Doc: "user properties that become headers of the message, in lower case; version 5 only"},
		{Name: "key_property", Type: capability.Text, Without: "none", Doc: fmt.Sprintf("a message with this user property is taken once: the last %d keys are remembered, even after a kill; version 5 only", connector.WindowSize)},
		{Name: "max_payload", Type: capability.Size, Default: `"1MiB"`, Doc: "the largest payload; a larger message is acknowledged, left out and reported"},
		{Name: "max_in_flight", Type: capability.Count, Default: fmt.Sprint(defaultInFlight), Doc: fmt.Sprintf("how many messages may be waiting to be durable; from 1 to %d", maxInFlight)},
	}
	return append(linkSettings(true), own...)
}

// source is a source as a recipe has declared it. What it remembers from one connection to the
// next is for the one goroutine that calls Run.
type source struct {
	link
	Topics      []string      `json:"topics"`
	QoS         int           `json:"qos"`
	Session     time.Duration `json:"session"`
	Retained    bool          `json:"retained"`
	Properties  []string      `json:"properties"`
	KeyProperty string        `json:"key_property"`
	MaxPayload  int64         `json:"max_payload"`
	MaxInFlight int           `json:"max_in_flight"`

	subscribed bool            // in this process
	refusals   uint16          // of ids for subscriptions
	held       map[uint16]mark // taken, and not acknowledged yet, or with QoS 2 not released
	settled    uint64          // the broker has got the acknowledgements of messages below it
}

// Open implements [connector.Kind].
func (Source) Open(data json.RawMessage) (connector.Connector, error) {
	s := &source{QoS: 1, Session: defaultSession, Retained: true, MaxPayload: defaultPayload, MaxInFlight: defaultInFlight, held: map[uint16]mark{}}
	if err := s.parse(data, s); err != nil {
		return nil, err
	}
	for _, topic := range s.Topics {
		if !validFilter(topic) {
			return nil, invalid(fmt.Sprintf("%q is not a topic filter", topic), `use levels with slashes between them, + for any level, and # at the end for all further ones, such as "sensors/+/temperature"`)
		}
	}
	for _, name := range append(slices.Clone(s.Properties), s.KeyProperty) {
		if len(name) > maxName || !validText(name) {
			return nil, invalid(fmt.Sprintf("%.40q is not the name of a property", name), fmt.Sprintf("use a text of at most %d bytes", maxName))
		}
	}
	switch {
	case s.ClientID == "":
		return nil, invalid("client_id is empty", "use a name that no other client of the broker has")
	case len(s.Topics) == 0:
		return nil, invalid("there is no topic", "name at least one in topics")
	case len(s.Topics) > maxTopics:
		return nil, invalid(fmt.Sprintf("there are more than %d topics", maxTopics), "use wildcards, or several sources")
	case s.QoS > 2:
		return nil, invalid(fmt.Sprintf("there is no quality of service %d", s.QoS), "use 0, 1 or 2")
	case s.MaxInFlight < 1 || s.MaxInFlight > maxInFlight:
		return nil, invalid(fmt.Sprintf("max_in_flight is not between 1 and %d", maxInFlight), "use a number in between")
	case s.MaxPayload > deploy.MaxMessage/2:
		return nil, invalid(fmt.Sprintf("max_payload is above %d bytes", deploy.MaxMessage/2), "use a smaller one; a message has a limit")
	case s.Session > 0 && s.Session < time.Second:
		return nil, invalid("session is below one second", `use "0s" for none, or at least "1s"`)
	case !s.v5() && (len(s.Properties) > 0 || s.KeyProperty != ""):
		return nil, invalid("version 3.1.1 has no user properties", `remove properties and key_property, or use version = "5"`)
	}
	return s, nil
}

const (
	maxName   = 128
	maxTopics = 64
)

// Reaches implements [connector.Connector].
func (s *source) Reaches() string {
	return fmt.Sprintf("subscribes to %s at %s", strings.Join(s.Topics, ", "), s.Broker)
}

// Needs implements [connector.Exclusive].
func (s *source) Needs() string { return "the client " + s.ClientID + " at " + s.address }

// Endless implements [connector.Connector].
func (s *source) Endless() bool { return true }

// Run implements [connector.Connector].
func (s *source) Run(ctx context.Context, p connector.Port) error {
	known, err := newRecent(p)
	if err != nil {
		return err
	}
	in := &intake{source: s, port: p, recent: known, waiting: make(chan taken, s.MaxInFlight), granted: make(chan struct{})}
	if s.KeyProperty != "" {
		if in.keys, err = connector.NewWindow(p); err != nil {
			return err
		}
		if in.last, err = anyTaken(p); err != nil {
			return err
		}
	}
	if in.conn, err = s.connect(ctx, session{keep: s.Session, receiveMax: uint16(s.MaxInFlight)}); err != nil {
		return err
	}
	defer in.conn.close()
	return in.run(ctx)
}

// anyTaken returns a message that repeats one that the channel has taken, if there is
// one.
func anyTaken(p connector.Port) (connector.Message, error) {
	producers, err := p.Producers()
	for producer, offset := range producers {
		return connector.Message{Producer: producer, Offset: offset}, err
	}
	return connector.Message{}, err
}

// intake is one connection of a source.
type intake struct {
	*source
	port    connector.Port
	conn    *conn
	recent  *recent
	keys    *connector.Window // or nil
	last    connector.Message // repeats a message that was taken
	waiting chan taken        // to be acknowledged, in order
	granted chan struct{}     // closed once the subscription is there
	once    sync.Once         // for closing it

	mu       sync.Mutex // guards the rest, and source.held
	acked    uint64     // messages below it are acknowledged
	pinged   int        // how many PINGREQ were sent
	answered int        // and how many PINGRESP have come
	telling  int        // the PINGREQ whose answer says that the broker has the acknowledgements
	told     uint64     // of the messages below it
}

// taken is a message that is to be acknowledged.
type taken struct {
	id      uint16
	qos     byte
	receipt connector.Receipt // nil: it was left out
	mark    mark
	marked  bool
}

func (in *intake) run(outer context.Context) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	if !in.conn.present {
		in.recent.forget()
		in.held, in.subscribed, in.settled = map[uint16]mark{}, false, 0
	}
	in.acked, in.told = in.settled, in.settled
	var tasks sync.WaitGroup
	tasks.Go(func() { <-ctx.Done(); in.conn.close() })
	tasks.Go(func() { cancel(in.acknowledge(ctx)) })
	tasks.Go(func() {
		if err := in.conn.pings(ctx, in.pings); err != nil {
			cancel(in.conn.gone(&in.link, err))
		}
	})
	tasks.Go(func() {
		late := time.NewTimer(cmp.Or(in.patience, ackTime))
		defer late.Stop()
		select {
		case <-in.granted:
		case <-ctx.Done():
		case <-late.C:
			cancel(in.conn.gone(&in.link, errors.New("the broker does not answer the subscription")))
		}
	})
	cancel(in.read(ctx))
	tasks.Wait()
	if outer.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// pings reports whether a PINGREQ is to be sent: if nothing else was for a while, or if the broker
// may not have got an acknowledgement. The broker handles packets in their order, so its
// answer proves that it has got all earlier acknowledgements.
func (in *intake) pings(idle bool) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	doubt := in.acked != in.told && in.answered >= in.telling
	if !doubt && !idle {
		return false
	}
	in.pinged++
	if doubt {
		in.telling, in.told = in.pinged, in.acked
	}
	return true
}

// pong handles a PINGRESP.
func (in *intake) pong() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.answered++; in.answered >= in.telling {
		in.settled = max(in.settled, in.told)
	}
}

// firstSubscription is the id of the SUBSCRIBE: a connection has one at most. There are
// brokers that compare it with the ids of their messages, which begin with 1.
const firstSubscription = 1<<16 - 1

// idInUse is the reason code for an id that is in use.
const idInUse = 0x91

// read subscribes, and takes what the broker sends.
func (in *intake) read(ctx context.Context) error {
	// Version 3.1.1 would send the retained messages again.
	if in.subscribed && in.conn.present && !in.v5() {
		in.works()
	} else if err := in.conn.write(true, in.subscribe); err != nil {
		return in.conn.gone(&in.link, err)
	}
	for {
		p, err := readPacket(in.conn.in, int(in.MaxPayload)+overhead)
		if err == nil {
			err = in.packet(ctx, &p)
		} else {
			err = in.conn.gone(&in.link, err)
		}
		if err != nil {
			return err
		}
	}
}

func (in *intake) subscribe(o *output) {
	var body output
	body.uint16(firstSubscription - in.refusals)
	options := byte(in.QoS)
	if in.v5() {
		body.length(0)
		handling := byte(1) // retained messages come only for a subscription that is not there yet
		if !in.Retained {
			handling = 2 // they do not come
		}
		options |= handling << 4
	}
	for _, topic := range in.Topics {
		body.text(topic)
		body.byte(options)
	}
	o.packet(typeSubscribe, flagsFixed, body.b)
}

// packet handles a packet of the broker.
func (in *intake) packet(ctx context.Context, p *packet) error {
	switch p.kind {
	case typePublish:
		m, err := readMessage(p, in.v5())
		if err != nil {
			return in.conn.gone(&in.link, err)
		}
		return in.publish(ctx, &m, p.size)
	case typePubrel:
		f := fields{b: p.body}
		id := f.uint16()
		if f.bad || p.flags != flagsFixed {
			break
		}
		in.mu.Lock()
		delete(in.held, id)
		in.mu.Unlock()
		// The broker also releases what it had sent to an earlier process.
		if err := in.conn.write(true, func(o *output) { o.ack(typePubcomp, id) }); err != nil {
			return in.conn.gone(&in.link, err)
		}
		return nil
	case typeSuback:
		return in.grant(p)
	case typePingresp:
		in.pong()
		return nil
	case typeDisconnect:
		return in.conn.disconnected(&in.link, p)
	}
	return in.conn.gone(&in.link, fmt.Errorf("%w: type %d", errMalformed, p.kind))
}

// grant reads the answer to SUBSCRIBE.
func (in *intake) grant(p *packet) error {
	f := fields{b: p.body}
	id, props := f.uint16(), properties{}
	if in.v5() {
		props = f.properties()
	}
	if f.bad || id != firstSubscription-in.refusals || len(f.b) != len(in.Topics) || in.subscribed && !in.v5() {
		return in.conn.gone(&in.link, fmt.Errorf("%w: the answer to a subscription", errMalformed))
	}
	for i, code := range f.b {
		switch {
		case code >= 0x80:
			if code == idInUse {
				in.refusals++
			}
			return &abi.Error{
				Code: abi.Unavailable, Message: fmt.Sprintf("%s refuses the subscription to %s: %s", in.Broker, in.Topics[i], reasonText(code, props.reason)),
				Remedy: "correct topics, or the permissions of the client at the broker",
			}
		case int(code) < in.QoS && !in.subscribed:
			in.port.Log().Warn("a broker grants a lower quality of service", "topic", in.Topics[i], "qos", code)
		}
	}
	in.subscribed = true
	in.works()
	return nil
}

// works reports that the subscription is there. A broker may grant it again.
func (in *intake) works() {
	in.port.Working()
	in.once.Do(func() { close(in.granted) })
}

// publish takes a message.
func (in *intake) publish(ctx context.Context, m *message, size int) error {
	t := taken{id: m.id, qos: m.qos}
	if reason := in.leaveOut(m, size); reason != nil {
		in.port.Refused(reason)
		return in.queue(ctx, t)
	}
	if m.retain && !in.Retained {
		return in.queue(ctx, t)
	}
	out := connector.Message{Payload: m.payload, Headers: in.headers(m)}
	var hash uint32
	if m.qos > 0 {
		hash = contentHash(m)
		if t.mark, t.marked = in.repetition(m, hash); t.marked {
			out.Producer, out.Offset = in.recent.place(t.mark)
			return in.again(ctx, t, out)
		}
	}
	if key, ok := in.key(m); ok {
		repeated, err := in.keys.Once(key, func(producer string, offset uint64) (duplicate bool, err error) {
			out.Producer, out.Offset = producer, offset
			if t.receipt, err = in.port.Send(ctx, out); err != nil {
				return false, err
			}
			return t.receipt.Duplicate(), nil
		})
		if repeated && t.receipt == nil { // nothing was sent whose receipt can be waited for
			return in.again(ctx, t, in.last)
		}
		return in.sent(ctx, t, out, err)
	}
	if m.qos > 0 {
		t.mark, t.marked = in.recent.mark(m.id, hash), true
		out.Producer, out.Offset = in.recent.place(t.mark)
	}
	var err error
	t.receipt, err = in.port.Send(ctx, out)
	return in.sent(ctx, t, out, err)
}

// leaveOut says why a message is left out.
func (in *intake) leaveOut(m *message, size int) error {
	switch {
	case size > int(in.MaxPayload)+overhead || len(m.payload) > int(in.MaxPayload):
		return &abi.Error{
			Code: abi.TooLarge, Message: fmt.Sprintf("a message on %.200q has %d bytes, and max_payload is %d", m.topic, size, in.MaxPayload),
			Remedy: "raise max_payload, or send it in parts",
		}
	case !slices.ContainsFunc(in.Topics, func(filter string) bool { return matches(filter, m.topic) }):
		return &abi.Error{
			Code: abi.InvalidArgument, Message: fmt.Sprintf("the broker sends a message on %.200q, which no topic of the source matches", m.topic),
			Remedy: "another program or an earlier recipe has subscribed with this client_id: use another one",
		}
	}
	return nil
}

// repetition finds the message that m repeats.
func (in *intake) repetition(m *message, hash uint32) (mark, bool) {
	in.mu.Lock()
	held, ok := in.held[m.id]
	in.mu.Unlock()
	// While this message has the id, the broker cannot have given the id to another one.
	if ok && held.hash == hash && (m.dup || m.qos == 2) {
		return held, true
	}
	if !m.dup {
		return mark{}, false
	}
	found, ok := in.recent.repeated(m.id, hash)
	return found, ok && found.n >= in.settled
}

// again handles a message that was taken before. The message is as durable as the session
// promises once its receipt has been waited for.
func (in *intake) again(ctx context.Context, t taken, out connector.Message) error {
	receipt, err := in.port.Send(ctx, out)
	if err != nil {
		return err
	}
	t.receipt = receipt
	return in.queue(ctx, t)
}

// sent handles the result of sending a message.
func (in *intake) sent(ctx context.Context, t taken, out connector.Message, err error) error {
	switch {
	case err == nil:
	case connector.Final(err):
		in.port.Refused(err)
		return in.queue(ctx, taken{id: t.id, qos: t.qos})
	default:
		return err
	}
	if out.Producer != "" {
		in.last = connector.Message{Producer: out.Producer, Offset: out.Offset}
	}
	if t.marked {
		in.recent.add(t.mark)
	}
	return in.queue(ctx, t)
}

// queue lets a message be acknowledged. It waits while too many are waiting, and so does the
// broker.
func (in *intake) queue(ctx context.Context, t taken) error {
	if t.qos == 0 {
		return nil
	}
	if t.marked {
		in.mu.Lock()
		in.held[t.id] = t.mark
		in.mu.Unlock()
	}
	select {
	case in.waiting <- t:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acknowledge acknowledges messages in the order in which they came, each once it is durable.
func (in *intake) acknowledge(ctx context.Context) error {
	for {
		select {
		case t := <-in.waiting:
			if err := in.durable(ctx, t); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (in *intake) durable(ctx context.Context, t taken) error {
	if t.receipt != nil {
		if err := t.receipt.Wait(ctx); err != nil {
			return err
		}
	}
	kind := byte(typePuback)
	if t.qos == 2 {
		kind = typePubrec
	}
	if err := in.conn.write(len(in.waiting) == 0, func(o *output) { o.ack(kind, t.id) }); err != nil {
		return in.conn.gone(&in.link, err)
	}
	if !t.marked {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if t.qos == 1 && in.held[t.id] == t.mark {
		delete(in.held, t.id)
	}
	in.acked = max(in.acked, t.mark.n+1)
	return nil
}

// key is the key of a message.
func (in *intake) key(m *message) (string, bool) {
	if in.keys == nil {
		return "", false
	}
	for _, u := range m.props.user {
		if u[0] == in.KeyProperty {
			return u[1], u[1] != ""
		}
	}
	return "", false
}

// headers returns the headers of a message: the properties of MQTT that are useful to
// creatures.
func (in *intake) headers(m *message) map[string]string {
	out := map[string]string{}
	for _, u := range m.props.user {
		if slices.Contains(in.Properties, u[0]) {
			out[strings.ToLower(u[0])] = u[1]
		}
	}
	out["topic"] = m.topic
	if m.retain {
		out["retained"] = "true"
	}
	if m.props.contentType != "" {
		out["content-type"] = m.props.contentType
	}
	return out
}
