package mqtt

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
)

// script is a broker that does what a test says, for one connection at a time.
type script struct {
	t        *testing.T
	listener net.Listener
	v5       bool
	net.Conn
	in *bufio.Reader
}

func newScript(t *testing.T, version string) *script {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return &script{t: t, listener: listener, v5: version == version5}
}

// serveOnce has the broker take one connection, read its CONNECT, and then do what serve does.
// The function that it returns waits until that is done.
func (s *script) serveOnce(serve func(conn net.Conn)) (wait func()) {
	var served sync.WaitGroup
	served.Go(func() {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := readPacket(bufio.NewReader(conn), maxOther); err == nil {
			serve(conn)
		}
	})
	return served.Wait
}

// source opens a source for the broker.
func (s *script) source(more map[string]any) *source {
	s.t.Helper()
	all := map[string]any{"broker": "mqtt://" + s.listener.Addr().String(), "client_id": "it", "topics": []string{"a"}, "qos": 2}
	if !s.v5 {
		all["version"] = version3
	}
	for name, value := range more {
		all[name] = value
	}
	data, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := (Source{}).Open(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return c.(*source)
}

// expect reads a packet, which must have the given type.
func (s *script) expect(kind byte) packet {
	s.t.Helper()
	p, err := readPacket(s.in, maxOther)
	for err == nil && p.kind == typePingreq && kind != typePingreq {
		p, err = readPacket(s.in, maxOther) // it may come at any time
	}
	if err != nil || p.kind != kind {
		s.t.Fatalf("instead of a packet of type %d: %+v, %v", kind, p, err)
	}
	return p
}

func (s *script) acked(kind byte, id uint16) {
	s.t.Helper()
	p := s.expect(kind)
	if f := (fields{b: p.body}); f.uint16() != id {
		s.t.Fatalf("the id is in % x, want %d", p.body, id)
	}
}

func (s *script) send(add func(o *output)) {
	s.t.Helper()
	var o output
	add(&o)
	if _, err := s.Write(o.b); err != nil {
		s.t.Fatal(err)
	}
}

// publish sends a message of topic a.
func (s *script) publish(qos byte, dup bool, id uint16, payload string) {
	s.t.Helper()
	var body output
	body.text("a")
	body.uint16(id)
	if s.v5 {
		body.length(0)
	}
	flags := qos << 1
	if dup {
		flags |= flagDup
	}
	s.send(func(o *output) { o.packet(typePublish, flags, body.b, []byte(payload)) })
}

// accept takes a connection, and its subscription if there is one.
func (s *script) accept(present bool, subscribes bool) {
	s.t.Helper()
	var err error
	if s.Conn, err = s.listener.Accept(); err != nil {
		s.t.Fatal(err)
	}
	s.in = bufio.NewReader(s.Conn)
	if err := s.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	s.expect(typeConnect)
	body := []byte{0, 0}
	if present {
		body[0] = 1
	}
	if s.v5 {
		body = append(body, 0)
	}
	s.send(func(o *output) { o.packet(typeConnack, 0, body) })
	if !subscribes {
		return
	}
	p := s.expect(typeSubscribe)
	answer := append([]byte(nil), p.body[:2]...)
	if s.v5 {
		answer = append(answer, 0)
	}
	s.send(func(o *output) { o.packet(typeSuback, 0, append(answer, 2)) })
}

// running runs a source until it ends.
func running(t *testing.T, s *source, p connector.Port) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, p) }()
	end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = end() })
	return end
}

func payloads(p *connectortest.Port) string { return strings.Join(p.Seen().Payloads(), " ") }

// TestRedelivery sends messages whose acknowledgements are lost or may be lost.
func TestRedelivery(t *testing.T) {
	for _, version := range []string{version5, version3} {
		t.Run(version, func(t *testing.T) {
			s, p := newScript(t, version), connectortest.NewPort()
			end := running(t, s.source(nil), p)
			s.accept(false, true)
			for id, payload := range []string{"x", "y", "z"} {
				s.publish(1, false, uint16(id+1), payload)
				s.acked(typePuback, uint16(id+1))
			}
			s.Close()
			_ = end()

			// Another process. The acknowledgements of y and z did not arrive.
			end = running(t, s.source(nil), p)
			s.accept(true, true)
			s.publish(1, true, 2, "y")
			s.acked(typePuback, 2)
			s.publish(1, true, 3, "z")
			s.acked(typePuback, 3)
			s.publish(1, true, 4, "new") // it was sent, and did not arrive
			s.acked(typePuback, 4)
			s.publish(1, true, 1, "other") // the id was given to another message
			s.acked(typePuback, 1)
			s.publish(1, false, 2, "y") // a new message
			s.acked(typePuback, 2)
			if got := payloads(p); got != "x y z new other y" {
				t.Errorf("the messages are %q", got)
			}
			s.Close()
			_ = end()

			// The broker has lost the session: its ids now stand for other messages.
			end = running(t, s.source(nil), p)
			s.accept(false, true)
			s.publish(1, true, 4, "new")
			s.acked(typePuback, 4)
			s.Close()
			_ = end()
			_ = running(t, s.source(nil), p)
			s.accept(true, true)
			s.publish(1, true, 4, "new")
			s.acked(typePuback, 4)
			s.publish(1, true, 3, "z")
			s.acked(typePuback, 3)
			if got := payloads(p); got != "x y z new other y new z" {
				t.Errorf("the messages are %q", got)
			}
		})
	}
}

// TestReusedIDs uses a broker that gives each message the id of the previous one. An
// equal message may be a new one or the previous one sent again, so it is taken.
func TestReusedIDs(t *testing.T) {
	s, p := newScript(t, version5), connectortest.NewPort()
	end := running(t, s.source(nil), p)
	s.accept(false, true)
	for _, payload := range []string{"on", "off", "on", "off"} {
		s.publish(1, false, 1, payload)
		s.acked(typePuback, 1)
	}
	s.Close()
	_ = end()
	_ = running(t, s.source(nil), p)
	s.accept(true, true)
	s.publish(1, true, 1, "off")
	s.acked(typePuback, 1)
	if got := payloads(p); got != "on off on off off" {
		t.Errorf("the messages are %q", got)
	}
}

// TestSettled uses a broker that answers a PINGREQ after an acknowledgement: from then
// on, an equal message with the same id is a new one.
func TestSettled(t *testing.T) {
	s, p := newScript(t, version5), connectortest.NewPort()
	source := s.source(nil)
	end := running(t, source, p)
	s.accept(false, true)
	s.publish(1, false, 1, "on")
	s.acked(typePuback, 1)
	s.expect(typePingreq)
	s.send(func(o *output) { o.packet(typePingresp, 0) })
	s.publish(1, false, 2, "after it") // which shows that the answer was read
	s.acked(typePuback, 2)
	s.Close()
	_ = end()
	_ = running(t, source, p)
	s.accept(true, true)
	s.publish(1, true, 1, "on")
	s.acked(typePuback, 1)
	s.publish(1, true, 2, "after it")
	s.acked(typePuback, 2)
	if got := payloads(p); got != "on after it on" {
		t.Errorf("the messages are %q", got)
	}
}

// TestExactlyOnce does not release messages of quality 2, so that they come again.
func TestExactlyOnce(t *testing.T) {
	for _, version := range []string{version5, version3} {
		s, p := newScript(t, version), connectortest.NewPort()
		source := s.source(nil)
		end := running(t, source, p)
		s.accept(false, true)
		s.publish(2, false, 7, "on")
		s.acked(typePubrec, 7)
		s.publish(2, true, 7, "on")
		s.acked(typePubrec, 7)
		s.Close()
		_ = end()
		end = running(t, source, p)
		s.accept(true, version == version5) // version 3.1.1 would get retained messages again
		s.publish(2, true, 7, "on")
		s.acked(typePubrec, 7)
		s.send(func(o *output) { o.ack(typePubrel, 7) })
		s.acked(typePubcomp, 7)
		s.publish(2, false, 7, "on")
		s.acked(typePubrec, 7)
		s.Close()
		_ = end()
		_ = running(t, s.source(nil), p) // another process
		s.accept(true, true)
		s.send(func(o *output) { o.ack(typePubrel, 7) })
		s.acked(typePubcomp, 7)
		if got := payloads(p); got != "on on" {
			t.Errorf("the messages are %q", got)
		}
	}
}

// slowPort has receipts that wait until a test lets them go.
type slowPort struct {
	*connectortest.Port
	mu       sync.Mutex
	open     int // receipts that wait
	most     int
	released chan struct{}
}

type slowReceipt struct{ p *slowPort }

func (slowReceipt) Duplicate() bool { return false }

func (r slowReceipt) Wait(ctx context.Context) error {
	select {
	case <-r.p.released:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.open--
	return nil
}

func (p *slowPort) Send(ctx context.Context, m connector.Message) (connector.Receipt, error) {
	p.mu.Lock()
	p.open++
	p.most = max(p.most, p.open)
	p.mu.Unlock()
	_, err := p.Port.Send(ctx, m)
	return slowReceipt{p}, err
}

// TestPushesBack combines a broker that ignores the receive maximum with a slow session:
// the source stops reading.
func TestPushesBack(t *testing.T) {
	s := newScript(t, version5)
	p := &slowPort{Port: connectortest.NewPort(), released: make(chan struct{})}
	const inFlight, n = 10, 200
	running(t, s.source(map[string]any{"max_in_flight": inFlight}), p)
	s.accept(false, true)
	for id := range uint16(n) {
		s.publish(1, false, id+1, "x")
	}
	// The goroutine that waits holds one message, and the goroutine that reads another.
	if _, err := p.Wait(t.Context(), func(v connectortest.View) bool { return len(v.Sent) == inFlight+2 }); err != nil {
		t.Fatal(err)
	}
	close(p.released)
	for id := range uint16(n) {
		s.acked(typePuback, id+1)
	}
	if p.most > inFlight+2 {
		t.Errorf("%d messages waited at a time", p.most)
	}
}

// TestHostile uses brokers that answer anything: the source ends with an error that says
// what to do, and nothing else happens.
func TestHostile(t *testing.T) {
	connack := "\x20\x03\x00\x00\x00"
	cases := map[string]string{
		"nothing":                         "",
		"HTTP":                            "HTTP/1.1 400 Bad Request\r\n\r\n",
		"zeros":                           strings.Repeat("\x00", 1000),
		"ones":                            strings.Repeat("\xff", 1000),
		"a huge CONNACK":                  "\x20\xff\xff\xff\x7f",
		"a length without an end":         "\x20\xff\xff\xff\xff\xff\xff",
		"an empty CONNACK":                "\x20\x00",
		"a short CONNACK":                 "\x20\x01\x00",
		"odd flags in CONNACK":            "\x20\x03\xfe\x00\x00",
		"properties past the end":         "\x20\x03\x00\x00\x7f",
		"an unknown property":             "\x20\x05\x00\x00\x02\x7e\x01",
		"a refusal with a long reason":    "\x20\x0a\x00\x87\x07\x1f\x00\x04nope",
		"no CONNACK but a message":        "\x30\x03\x00\x01a",
		"a message without a topic":       connack + "\x30\x02\x00\x00",
		"a message without an id":         connack + "\x32\x05\x00\x01a\x00\x00",
		"quality of service 3":            connack + "\x36\x06\x00\x01a\x00\x01\x00",
		"DUP with quality 0":              connack + "\x38\x04\x00\x01a\x00",
		"a topic past the end":            connack + "\x30\x04\xff\xffab",
		"a topic that is no text":         connack + "\x30\x04\x00\x01\xff\x00",
		"a topic with a wildcard":         connack + "\x30\x04\x00\x01#\x00",
		"message properties past the end": connack + "\x30\x04\x00\x01a\x7f",
		"half a message":                  connack + "\x30\x7f\x00\x01a\x00",
		"an endless message":              connack + "\x30\xff\xff\xff\x7f\x00\x01a\x00" + strings.Repeat("x", 100000),
		"a huge SUBACK":                   connack + "\x90\xff\xff\xff\x7f",
		"a SUBACK of another":             connack + "\x90\x04\x00\x09\x00\x01",
		"a SUBACK for more topics":        connack + "\x90\x05\xff\xff\x00\x01\x01",
		"a refused subscription":          connack + "\x90\x04\xff\xff\x00\x87",
		"a PUBREL without an id":          connack + "\x62\x00",
		"a PUBREL with odd flags":         connack + "\x60\x02\x00\x01",
		"a PUBACK for nothing":            connack + "\x40\x02\x00\x01",
		"a CONNECT":                       connack + "\x10\x00",
		"AUTH":                            connack + "\xf0\x00",
		"DISCONNECT":                      connack + "\xe0\x02\x8e\x00",
		"a short DISCONNECT":              connack + "\xe0\x00",
		"a broken DISCONNECT":             connack + "\xe0\x03\x8e\x7f\x00",
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{version5, version3} {
				for _, direction := range []connector.Direction{connector.Source, connector.Sink} {
					s, p := newScript(t, version), connectortest.NewPort()
					wait := s.serveOnce(func(conn net.Conn) {
						_, _ = conn.Write([]byte(answer)) // it may be closed meanwhile
						_ = conn.(*net.TCPConn).CloseWrite()
						_, _ = conn.Read(make([]byte, 1<<16))
					})
					var c connector.Connector = s.source(nil)
					if direction == connector.Sink {
						l := s.source(nil).link
						c = &sink{link: l, Topic: "a", QoS: 1, Format: formPayload}
						p.Deliver("one")
					}
					err := c.Run(t.Context(), p)
					wait()
					var typed interface{ Error() string }
					if err == nil || !errors.As(err, &typed) || len(err.Error()) > 1000 {
						t.Errorf("%s, %s: %v", version, direction, err)
					}
				}
			}
		})
	}
}

// TestNoAnswers has a broker that answers CONNECT and nothing else: a source is not left waiting
// for its subscription, nor a sink for its acknowledgements.
func TestNoAnswers(t *testing.T) {
	for _, version := range []string{version5, version3} {
		for _, direction := range []connector.Direction{connector.Source, connector.Sink} {
			s, p := newScript(t, version), connectortest.NewPort()
			wait := s.serveOnce(func(conn net.Conn) {
				connack := map[string]string{version5: "\x20\x03\x00\x00\x00", version3: "\x20\x02\x00\x00"}[version]
				_, _ = conn.Write([]byte(connack))
				_, _ = io.Copy(io.Discard, conn)
			})
			source := s.source(nil)
			source.patience = 10 * time.Millisecond
			var c connector.Connector = source
			if direction == connector.Sink {
				c = &sink{link: source.link, Topic: "a", QoS: 1, Format: formPayload}
				p.Deliver("one")
			}
			err := c.Run(t.Context(), p)
			wait()
			if err == nil || !strings.Contains(err.Error(), "the broker does not a") {
				t.Errorf("%s, %s: %v", version, direction, err)
			}
		}
	}
}

// TestWrongAcks uses a broker that acknowledges what a sink did not send, or sent with
// another quality of service.
func TestWrongAcks(t *testing.T) {
	for name, answer := range map[string]string{
		"another id": "\x40\x02\x00\x09", "another type": "\x70\x02\x00\x01", "too late": "\x50\x02\x00\x01", "broken": "\x40\x04\x00\x01\x00\x7f",
	} {
		s, p := newScript(t, version5), connectortest.NewPort()
		p.Deliver("one")
		ended := make(chan error, 1)
		go func() {
			ended <- (&sink{link: s.source(nil).link, Topic: "a", QoS: 1, Format: formPayload}).Run(t.Context(), p)
		}()
		s.accept(false, false)
		s.expect(typePublish)
		if _, err := fmt.Fprint(s, answer); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
		if v := p.Seen(); v.Acked != 0 {
			t.Errorf("%s: the cursor is at %d", name, v.Acked)
		}
	}
}
