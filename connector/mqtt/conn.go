package mqtt

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// Bounds of a connection.
const (
	dialTime  = 10 * time.Second // until the broker has answered to CONNECT
	writeTime = 30 * time.Second // for one write
	endTime   = time.Second      // for saying good-bye
	bufferLen = 32 << 10
)

// conn is a connection to a broker. One goroutine reads; any may write.
type conn struct {
	net   *timedConn
	tcp   net.Conn // below TLS
	in    *bufio.Reader
	v5    bool
	alive time.Duration // 0: no limit

	// What the broker has said.
	present    bool // it has kept the session
	receiveMax int
	maxPacket  int // 0: any
	maxQoS     byte
	noRetain   bool

	mu  sync.Mutex // guards the rest
	out *bufio.Writer
	buf output

	ended atomic.Bool // by this side
}

// timedConn bounds each read and write.
type timedConn struct {
	net.Conn
	read  atomic.Int64 // the time for each read; 0: any
	write atomic.Int64 // the time for each write
}

// Read implements [net.Conn].
func (c *timedConn) Read(b []byte) (int, error) {
	var until time.Time
	if d := time.Duration(c.read.Load()); d > 0 {
		until = time.Now().Add(d)
	}
	if err := c.SetReadDeadline(until); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements [net.Conn].
func (c *timedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(time.Duration(c.write.Load()))); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// session says what the broker is to keep.
type session struct {
	keep       time.Duration // how long it keeps the session; 0: not at all
	receiveMax uint16
}

// connect connects to a broker. The caller calls close.
func (l *link) connect(ctx context.Context, s session) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, l.unreachable(err)
	}
	tcp := raw
	if l.secure {
		config, err := l.tls()
		if err != nil {
			raw.Close()
			return nil, err
		}
		secured := tls.Client(raw, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &abi.Error{Code: abi.Unavailable, Message: "TLS with " + l.Broker + " fails", Err: err, Remedy: "check the port, and ca, cert, key and server_name"}
		}
		raw = secured
	}
	timed := &timedConn{Conn: raw}
	timed.read.Store(int64(dialTime))
	timed.write.Store(int64(writeTime))
	c := &conn{net: timed, tcp: tcp, in: bufio.NewReaderSize(timed, bufferLen), out: bufio.NewWriterSize(timed, bufferLen), v5: l.v5(), alive: l.KeepAlive}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	if err := c.greet(ctx, l, s); err != nil {
		raw.Close()
		return nil, err
	}
	timed.read.Store(int64(c.alive + c.alive/2))
	return c, nil
}

func (l *link) unreachable(err error) error {
	return &abi.Error{Code: abi.Unavailable, Message: "cannot reach " + l.Broker, Err: err, Remedy: "start the broker, or correct its address; messages are not lost meanwhile"}
}

// greet sends CONNECT and reads the answer.
func (c *conn) greet(ctx context.Context, l *link, s session) error {
	if err := c.write(true, func(o *output) { o.connect(l, s) }); err != nil {
		return l.unreachable(err)
	}
	p, err := readPacket(c.in, maxOther)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("nothing has come for %v", dialTime)
	}
	if err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: l.Broker + " does not answer CONNECT", Err: err, Remedy: `check that it is an MQTT broker, and whether it needs TLS or version = "3.1.1"`}
	}
	f := fields{b: p.body}
	flags, code := f.byte(), f.byte()
	props := properties{maxQoS: 2, keepAlive: -1}
	if l.v5() && !f.bad && len(f.b) > 0 {
		props = f.properties()
	}
	if p.kind != typeConnack || f.bad || flags > 1 {
		return &abi.Error{Code: abi.Unavailable, Message: l.Broker + " answers with a malformed packet", Remedy: "check that it is an MQTT broker"}
	}
	if code != 0 {
		return l.refused(code, props.reason)
	}
	c.present = flags == 1
	c.receiveMax, c.maxPacket, c.maxQoS, c.noRetain = maxText, int(props.maxPacket), props.maxQoS, props.noRetain
	if props.receiveMax > 0 {
		c.receiveMax = int(props.receiveMax)
	}
	if props.keepAlive >= 0 {
		c.alive = time.Duration(props.keepAlive) * time.Second
	}
	return nil
}

// connect appends a CONNECT.
func (o *output) connect(l *link, s session) {
	var body output
	body.text("MQTT")
	level, flags := byte(4), byte(0)
	if l.v5() {
		level = 5
	}
	// In version 5 a session that exists is continued, and kept for the time in a property.
	if s.keep == 0 {
		flags |= 1 << 1
	}
	if l.Username != "" {
		flags |= 1 << 7
	}
	if l.Password != "" {
		flags |= 1 << 6
	}
	body.byte(level)
	body.byte(flags)
	body.uint16(uint16(l.KeepAlive / time.Second))
	if l.v5() {
		var props output
		if s.keep > 0 {
			props.byte(propSessionExpiry)
			props.uint32(uint32(min(int64(s.keep/time.Second), 1<<32-1)))
		}
		if s.receiveMax > 0 {
			props.byte(propReceiveMax)
			props.uint16(s.receiveMax)
		}
		body.length(len(props.b))
		body.b = append(body.b, props.b...)
	}
	body.text(l.ClientID)
	if l.Username != "" {
		body.text(l.Username)
	}
	if l.Password != "" {
		body.text(l.Password)
	}
	o.packet(typeConnect, 0, body.b)
}

// refused is the error for a CONNACK.
func (l *link) refused(code byte, reason string) error {
	e := &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s refuses the connection: %s", l.Broker, reasonText(code, reason)), Remedy: "see the log of the broker"}
	switch code {
	case 1, 0x84:
		e.Remedy = `use version = "3.1.1", or the other way round`
	case 2, 0x85:
		e.Remedy = "use another client_id"
	case 4, 5, 0x86, 0x87, 0x8c:
		e.Remedy = "correct username and password, or the permissions of the client at the broker"
	}
	return e
}

// reasons are the codes that brokers give most often.
var reasons = map[byte]string{
	1: "it does not support this version", 2: "it does not accept the client id", 3: "it is unavailable", 4: "wrong name or password", 5: "not authorized",
	0x80: "unspecified", 0x81: "malformed packet", 0x82: "protocol error", 0x83: "implementation error", 0x84: "it does not support this version", 0x85: "it does not accept the client id",
	0x86: "wrong name or password", 0x87: "not authorized", 0x88: "it is unavailable", 0x89: "it is busy", 0x8a: "the client is banned",
	0x8b: "it shuts down", 0x8d: "keep alive has run out", 0x8e: "another client has the same client_id", 0x8f: "it does not accept the topic filter", 0x90: "it does not accept the topic",
	0x93: "too many messages at a time", 0x95: "the packet is too large", 0x97: "a quota is used up", 0x99: "it does not accept the payload", 0x9a: "it does not retain messages",
	0x9b: "it does not support the quality of service", 0x9e: "it does not support shared subscriptions", 0xa2: "it does not support wildcards",
}

// reasonText describes a reason code. What a broker writes is bounded.
func reasonText(code byte, reason string) string {
	text := fmt.Sprintf("code 0x%02x", code)
	if known := reasons[code]; known != "" {
		text = known + " (" + text + ")"
	}
	if reason != "" {
		text += fmt.Sprintf(", %.200q", reason)
	}
	return text
}

// write appends packets to the output, and sends the output if flush is set.
func (c *conn) write(flush bool, add func(o *output)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf.b = c.buf.b[:0]
	add(&c.buf)
	if _, err := c.out.Write(c.buf.b); err != nil {
		return err
	}
	if cap(c.buf.b) > bufferLen {
		c.buf.b = nil
	}
	if !flush {
		return nil
	}
	return c.out.Flush()
}

// close says good-bye, if nothing else is being written, and closes the connection.
func (c *conn) close() {
	if c.ended.Swap(true) {
		return
	}
	if c.mu.TryLock() {
		c.net.write.Store(int64(endTime))
		_, _ = c.out.Write([]byte{typeDisconnect << 4, 0})
		_ = c.out.Flush() // the connection may be lost
		c.mu.Unlock()
	}
	_ = c.tcp.Close() // nothing more is written
}

// gone is the error for a connection that cannot be read.
func (c *conn) gone(l *link, err error) error {
	if errors.Is(err, errMalformed) {
		return &abi.Error{Code: abi.Unavailable, Message: "the connection to " + l.Broker + " is closed", Err: err, Remedy: "check that it is an MQTT broker, and its log"}
	}
	return &abi.Error{Code: abi.Unavailable, Message: "the connection to " + l.Broker + " is lost", Err: err, Remedy: "check the broker and the network; messages are not lost meanwhile"}
}

// disconnected is the error for a DISCONNECT of the broker.
func (c *conn) disconnected(l *link, p *packet) error {
	f := fields{b: p.body}
	code, reason := byte(0), ""
	if len(f.b) > 0 {
		code = f.byte()
	}
	if len(f.b) > 0 {
		reason = f.properties().reason
	}
	remedy := "see the log of the broker"
	if code == 0x8e {
		remedy = "give each source and sink a client_id of its own"
	}
	return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("%s ends the connection: %s", l.Broker, reasonText(code, reason)), Remedy: remedy}
}

// pingEvery is how often pings looks whether a PINGREQ is due.
const pingEvery = 500 * time.Millisecond

// pings sends a PINGREQ when due returns true. due gets whether nothing was sent for as long as the
// broker needs. It returns when ctx ends or the connection fails.
func (c *conn) pings(ctx context.Context, due func(idle bool) bool) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if due(c.alive > 0 && now.Sub(last) >= max(c.alive/2, pingEvery)) {
				last = now
				if err := c.write(true, func(o *output) { o.packet(typePingreq, 0) }); err != nil {
					return err
				}
			}
		}
	}
}
