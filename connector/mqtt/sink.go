package mqtt

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/connector"
)

// Sink is the sink of the kind mqtt.
type Sink struct{}

// Name implements [connector.Kind].
func (Sink) Name() string { return "mqtt" }

// Direction implements [connector.Kind].
func (Sink) Direction() connector.Direction { return connector.Sink }

// Forms of the payload.
const (
	formPayload = "payload"
	formJSON    = "json"
)

// IDProperty is the user property with the id of the event.
const IDProperty = "terrarium-id"

// Settings implements [connector.Kind].
func (Sink) Settings() []capability.Setting {
	own := []capability.Setting{
		{Name: "topic", Type: capability.Text, Without: "none; then `topic_header` is required", Doc: "the topic, such as `\"alarms\"`"},
		{Name: "topic_header", Type: capability.Text, Without: "none", Doc: "the header of a message with its topic; a message without it goes to `topic`"},
		{Name: "qos", Type: capability.Count, Default: "1", Doc: "the quality of service: 1 or 2, or 0 for messages that may be lost"},
		{Name: "retain", Type: capability.Flag, Default: "false", Doc: "let the broker keep the last message of a topic for later subscribers"},
		{Name: "format", Type: capability.Text, Choices: []string{formPayload, formJSON}, Default: `"payload"`, Doc: "`payload`: the payload as it is; `json`: an object with the message and its id"},
		{Name: "properties", Type: capability.Texts, Without: "none", Doc: "headers of the message that become user properties; version 5 only"},
	}
	return append(linkSettings(false), own...)
}

type sink struct {
	link
	Topic       string   `json:"topic"`
	TopicHeader string   `json:"topic_header"`
	QoS         int      `json:"qos"`
	Retain      bool     `json:"retain"`
	Format      string   `json:"format"`
	Properties  []string `json:"properties"`

	// refused is set after the broker has refused a message: the sink sends one at a time until
	// the broker takes that message. It belongs to Run.
	refused bool
}

// Open implements [connector.Kind].
func (Sink) Open(data json.RawMessage) (connector.Connector, error) {
	s := &sink{QoS: 1, Format: formPayload}
	if err := s.parse(data, s); err != nil {
		return nil, err
	}
	for _, name := range append(slices.Clone(s.Properties), s.TopicHeader) {
		if len(name) > maxName || !validText(name) {
			return nil, invalid(fmt.Sprintf("%.40q is not the name of a header", name), fmt.Sprintf("use a text of at most %d bytes", maxName))
		}
	}
	switch {
	case s.Topic == "" && s.TopicHeader == "":
		return nil, invalid("there is no topic", "give topic, topic_header or both")
	case s.Topic != "" && !validTopic(s.Topic):
		return nil, invalid(fmt.Sprintf("%.200q is not a topic", s.Topic), "use a text without + and #")
	case s.QoS > 2:
		return nil, invalid(fmt.Sprintf("there is no quality of service %d", s.QoS), "use 0, 1 or 2")
	case s.Format != formPayload && s.Format != formJSON:
		return nil, invalid(fmt.Sprintf("there is no format %q", s.Format), `use "payload" or "json"`)
	case !s.v5() && len(s.Properties) > 0:
		return nil, invalid("version 3.1.1 has no user properties", `remove properties, or use format = "json" or version = "5"`)
	}
	if s.ClientID != "" {
		return namedSink{s}, nil
	}
	return s, nil
}

// namedSink is a sink with a client id.
type namedSink struct{ *sink }

// Needs implements [connector.Exclusive].
func (s namedSink) Needs() string { return "the client " + s.ClientID + " at " + s.address }

// Reaches implements [connector.Connector].
func (s *sink) Reaches() string {
	topic := s.Topic
	switch {
	case topic == "":
		topic = "the topics in the header " + s.TopicHeader
	case s.TopicHeader != "":
		topic += ", or the topics in the header " + s.TopicHeader + ","
	}
	return fmt.Sprintf("publishes to %s at %s", topic, s.Broker)
}

// Endless implements [connector.Connector].
func (s *sink) Endless() bool { return true }

// maxBatch bounds the messages that are published before their acknowledgements are waited for.
const (
	maxBatch   = 256
	batchBytes = 1 << 20
)

// Run implements [connector.Connector].
func (s *sink) Run(outer context.Context, p connector.Port) error {
	c, err := s.connect(outer, session{})
	if err != nil {
		return err
	}
	defer c.close()
	if s.QoS > int(c.maxQoS) || s.Retain && c.noRetain {
		return &abi.Error{
			Code: abi.Unavailable, Message: fmt.Sprintf("%s does not support a quality of service above %d, or does not retain messages", s.Broker, c.maxQoS),
			Remedy: "lower qos, or remove retain",
		}
	}
	p.Working()
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	out := &outlet{sink: s, port: p, conn: c, acks: make(chan ack, maxBatch)}
	var tasks sync.WaitGroup
	tasks.Go(func() { <-ctx.Done(); c.close() })
	tasks.Go(func() { cancel(out.read(ctx)) })
	tasks.Go(func() {
		if err := c.pings(ctx, func(idle bool) bool { return idle }); err != nil {
			cancel(c.gone(&s.link, err))
		}
	})
	cancel(out.publish(ctx))
	tasks.Wait()
	if outer.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// outlet is one connection of a sink.
type outlet struct {
	*sink
	port connector.Port
	conn *conn
	acks chan ack

	next uint16 // the packet id before the next one
}

// ack is a PUBACK, PUBREC or PUBCOMP.
type ack struct {
	kind   byte
	id     uint16
	code   byte
	reason string
}

// read reads what the broker sends.
func (o *outlet) read(ctx context.Context) error {
	for {
		p, err := readPacket(o.conn.in, 0)
		if err != nil {
			return o.conn.gone(&o.link, err)
		}
		switch p.kind {
		case typePingresp:
		case typeDisconnect:
			return o.conn.disconnected(&o.link, &p)
		case typePuback, typePubrec, typePubcomp:
			f := fields{b: p.body}
			a := ack{kind: p.kind, id: f.uint16()}
			if len(f.b) > 0 {
				a.code = f.byte()
			}
			if len(f.b) > 0 {
				a.reason = f.properties().reason
			}
			if f.bad {
				return o.conn.gone(&o.link, fmt.Errorf("%w: an acknowledgement", errMalformed))
			}
			select {
			case o.acks <- a:
			case <-ctx.Done():
				return nil
			}
		default:
			return o.conn.gone(&o.link, fmt.Errorf("%w: type %d", errMalformed, p.kind))
		}
	}
}

// publish publishes messages, as many as there are at a time, and waits for their
// acknowledgements. It moves the cursor to the first message that the broker has not taken, so
// that earlier ones are not sent again.
func (o *outlet) publish(ctx context.Context) error {
	for {
		d, err := o.port.Next(ctx)
		if err != nil {
			return err
		}
		waiting, order := map[uint16]connector.Delivery{}, []uint64{}
		room := min(maxBatch, o.conn.receiveMax)
		if o.refused {
			room = 1 // otherwise, each attempt would send the messages after it again
		}
		for size := 0; ; {
			if err := o.add(d, waiting); err != nil {
				return o.conn.gone(&o.link, err)
			}
			order = append(order, d.Seq)
			if size += len(d.Payload); size >= batchBytes || len(waiting) >= room {
				break
			}
			next, err := nextNow(ctx, o.port)
			if err != nil {
				break
			}
			d = next
		}
		if err := o.conn.write(true, func(*output) {}); err != nil {
			return o.conn.gone(&o.link, err)
		}
		err = o.settle(ctx, waiting)
		if n := settled(order, waiting); n > 0 {
			o.port.Ack(order[n-1])
		}
		if err != nil {
			return err
		}
		o.refused = false
	}
}

// settled returns how many of the messages in order precede the first that still waits for its
// acknowledgement.
func settled(order []uint64, waiting map[uint16]connector.Delivery) int {
	first := uint64(math.MaxUint64)
	for _, d := range waiting {
		first = min(first, d.Seq)
	}
	n, _ := slices.BinarySearch(order, first)
	return n
}

// nextNow returns a message that can be delivered without waiting for long.
func nextNow(ctx context.Context, p connector.Port) (connector.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return p.Next(ctx)
}

// add publishes a message, if that is possible.
func (o *outlet) add(d connector.Delivery, waiting map[uint16]connector.Delivery) error {
	topic := o.Topic
	if t := d.Headers[o.TopicHeader]; o.TopicHeader != "" && t != "" {
		topic = t
	}
	if !validTopic(topic) {
		o.port.Refused(invalid(fmt.Sprintf("the message %s has no valid topic: %.200q", d.ID, topic), "give the header "+o.TopicHeader+" a text without + and #, or the sink a topic"))
		return nil
	}
	var head output
	head.text(topic)
	flags := byte(o.QoS) << 1
	if o.Retain {
		flags |= flagRetain
	}
	var id uint16
	if o.QoS > 0 {
		if o.next++; o.next == 0 {
			o.next = 1
		}
		id = o.next
		head.uint16(id)
	}
	if o.v5() {
		props := o.userProperties(d)
		head.length(len(props))
		head.b = append(head.b, props...)
	}
	payload := o.payload(d)
	if size := 5 + len(head.b) + len(payload); o.conn.maxPacket > 0 && size > o.conn.maxPacket || size > maxLength {
		o.port.Refused(&abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the message %s has %d bytes, and the broker takes %d", d.ID, size, o.conn.maxPacket), Remedy: "raise the limit of the broker, or send it in parts"})
		return nil
	}
	if id != 0 {
		waiting[id] = d
	}
	return o.conn.write(false, func(out *output) { out.packet(typePublish, flags, head.b, payload) })
}

// maxLength is the largest length of a packet.
const maxLength = 1<<28 - 1

// userProperties are the id of the event, and headers.
func (o *outlet) userProperties(d connector.Delivery) []byte {
	var out output
	add := func(name, value string) {
		if len(value) > maxText || !validText(value) {
			return
		}
		out.byte(propUser)
		out.text(name)
		out.text(value)
	}
	add(IDProperty, d.ID)
	for _, name := range o.Properties {
		if value, ok := d.Headers[name]; ok {
			add(name, value)
		}
	}
	return out.b
}

// record is a message as an object.
type record struct {
	Channel string            `json:"channel"`
	Seq     uint64            `json:"seq"`
	ID      string            `json:"id"`
	TS      string            `json:"ts"`
	Sender  string            `json:"sender,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload any               `json:"payload"`
}

func (o *outlet) payload(d connector.Delivery) []byte {
	if o.Format == formPayload {
		return d.Payload
	}
	var payload any = string(d.Payload)
	if !utf8.Valid(d.Payload) {
		payload = map[string]string{"base64": base64.StdEncoding.EncodeToString(d.Payload)}
	}
	data, _ := json.Marshal(record{Channel: d.Channel, Seq: d.Seq, ID: d.ID, TS: d.Time.Format(time.RFC3339Nano), Sender: d.Sender, Headers: d.Headers, Payload: payload}) // it has only texts
	return data
}

// settle waits for the acknowledgements of messages. Those that the broker refuses but may take
// later are left in waiting, and the error is of the first of them.
func (o *outlet) settle(ctx context.Context, waiting map[uint16]connector.Delivery) error {
	late := time.NewTimer(cmp.Or(o.patience, ackTime))
	defer late.Stop()
	released := map[uint16]bool{} // QoS 2: PUBREC has come
	refused := map[uint16]bool{}  // they keep waiting
	var refusal error             // of the first of them
	for len(waiting) > len(refused) {
		var a ack
		select {
		case a = <-o.acks:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return o.conn.gone(&o.link, errors.New("the broker does not acknowledge messages"))
		}
		d, known := waiting[a.id]
		wants := map[bool]byte{false: typePubrec, true: typePubcomp}[released[a.id]]
		if o.QoS == 1 {
			wants = typePuback
		}
		if !known || refused[a.id] || a.kind != wants {
			return o.conn.gone(&o.link, fmt.Errorf("%w: an acknowledgement for nothing that was sent", errMalformed))
		}
		switch {
		case a.code >= 0x80 && !released[a.id]:
			err := o.rejected(d, a)
			if err == nil {
				delete(waiting, a.id)
				break
			}
			refused[a.id] = true
			refusal = cmp.Or(refusal, err)
		case wants == typePubrec:
			released[a.id] = true
			if err := o.conn.write(true, func(out *output) { out.ack(typePubrel, a.id) }); err != nil {
				return o.conn.gone(&o.link, err)
			}
		default:
			delete(waiting, a.id)
		}
		late.Reset(cmp.Or(o.patience, ackTime))
	}
	o.refused = refusal != nil || o.refused
	return refusal
}

// ackTime bounds how long the broker may take for an acknowledgement.
const ackTime = 30 * time.Second

// rejected handles a message that the broker does not take. It is left out if the broker will
// never take it.
func (o *outlet) rejected(d connector.Delivery, a ack) error {
	e := &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s refuses the message %s: %s", o.Broker, d.ID, reasonText(a.code, a.reason)), Remedy: "correct the permissions or limits at the broker; the message is sent again"}
	switch a.code {
	case 0x90, 0x95, 0x99:
		e.Code, e.Remedy = abi.InvalidArgument, "correct the topic or the payload"
		o.port.Refused(e)
		return nil
	}
	return e
}
