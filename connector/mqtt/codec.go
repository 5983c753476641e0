package mqtt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Types of packets.
const (
	typeConnect    = 1
	typeConnack    = 2
	typePublish    = 3
	typePuback     = 4
	typePubrec     = 5
	typePubrel     = 6
	typePubcomp    = 7
	typeSubscribe  = 8
	typeSuback     = 9
	typePingreq    = 12
	typePingresp   = 13
	typeDisconnect = 14
)

// Parts of the first byte of a PUBLISH, and the flags that PUBREL and SUBSCRIBE must have.
const (
	flagDup    = 8
	flagRetain = 1
	flagsFixed = 2
)

// packet is a packet that was read.
type packet struct {
	kind  byte
	flags byte
	body  []byte // the beginning, if the packet is too large
	size  int    // of the whole body
}

func (p *packet) qos() byte { return p.flags >> 1 & 3 }

// maxOther bounds packets other than messages. overhead bounds what a message has besides its
// payload: a topic and the properties.
const (
	maxOther = 64 << 10
	overhead = 128 << 10
	// headSize is how much is kept of a message that is too large: its topic and its id.
	headSize = 2 + 1<<16 + 2
)

var errMalformed = errors.New("the broker has sent a malformed packet")

// readPacket reads a packet. Of a message whose body has more than limit bytes it keeps the
// beginning, and leaves out the rest.
func readPacket(r *bufio.Reader, limit int) (p packet, err error) {
	first, err := r.ReadByte()
	if err != nil {
		return p, err
	}
	p.kind, p.flags = first>>4, first&0xf
	if p.size, err = readLength(r); err != nil {
		return p, err
	}
	keep := p.size
	switch {
	case p.kind == typePublish && p.size > limit:
		keep = min(p.size, headSize)
	case p.kind != typePublish && p.size > maxOther:
		return p, fmt.Errorf("%w: type %d with %d bytes", errMalformed, p.kind, p.size)
	}
	p.body = make([]byte, keep)
	if _, err := io.ReadFull(r, p.body); err != nil {
		return p, noEnd(err)
	}
	if rest := p.size - keep; rest > 0 {
		if _, err := r.Discard(rest); err != nil {
			return p, noEnd(err)
		}
	}
	return p, nil
}

// noEnd turns the end of the input within a packet into an error of its own.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLength reads a length of up to four bytes.
func readLength(r io.ByteReader) (int, error) {
	n := 0
	for shift := 0; shift < 28; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, noEnd(err)
		}
		n |= int(b&0x7f) << shift
		if b < 0x80 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: a length of more than four bytes", errMalformed)
}

// fields reads the fields of a body. After a missing field, bad is set, and all further
// fields are zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.b) {
		f.b, f.bad = nil, true
		return nil
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (f *fields) uint32() uint32 {
	if b := f.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// ReadByte implements [io.ByteReader].
func (f *fields) ReadByte() (byte, error) {
	if len(f.b) == 0 {
		return 0, io.EOF
	}
	return f.byte(), nil
}

func (f *fields) length() int {
	n, err := readLength(f)
	if err != nil {
		f.b, f.bad = nil, true
		return 0
	}
	return n
}

func (f *fields) bytes() []byte { return f.take(int(f.uint16())) }

// text reads a text, which must be UTF-8 without the character 0.
func (f *fields) text() string {
	b := f.bytes()
	if !validText(string(b)) {
		f.b, f.bad = nil, true
		return ""
	}
	return string(b)
}

func validText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return true
}

// Identifiers of the properties that are used.
const (
	propContentType   = 0x03
	propSessionExpiry = 0x11
	propAliveServer   = 0x13
	propReason        = 0x1f
	propReceiveMax    = 0x21
	propMaxQoS        = 0x24
	propRetain        = 0x25
	propUser          = 0x26
	propMaxPacket     = 0x27
)

// properties are the ones of a packet of version 5 that are used.
type properties struct {
	contentType string
	reason      string
	user        [][2]string
	receiveMax  uint16 // 0: not given
	maxPacket   uint32 // 0: not given
	maxQoS      byte
	noRetain    bool
	keepAlive   int // seconds; -1: not given
}

// properties reads the properties of a packet.
func (f *fields) properties() properties {
	out := properties{maxQoS: 2, keepAlive: -1}
	inner := fields{b: f.take(f.length())}
	for len(inner.b) > 0 {
		inner.property(&out)
	}
	f.bad = f.bad || inner.bad
	return out
}

func (f *fields) property(out *properties) {
	switch id := f.byte(); id {
	case propContentType:
		out.contentType = f.text()
	case propReason:
		out.reason = f.text()
	case propUser:
		name := f.text()
		out.user = append(out.user, [2]string{name, f.text()})
	case propReceiveMax:
		out.receiveMax = f.uint16()
	case propMaxPacket:
		out.maxPacket = f.uint32()
	case propMaxQoS:
		out.maxQoS = f.byte()
	case propRetain:
		out.noRetain = f.byte() == 0
	case propAliveServer:
		out.keepAlive = int(f.uint16())
	case 0x01, 0x17, 0x19, 0x28, 0x29, 0x2a:
		f.take(1)
	case 0x22, 0x23:
		f.take(2)
	case 0x02, propSessionExpiry, 0x18:
		f.take(4)
	case 0x0b:
		f.length()
	case 0x08, 0x12, 0x15, 0x1a, 0x1c, 0x09, 0x16:
		f.bytes()
	default:
		f.b, f.bad = nil, true
	}
}

// message is a PUBLISH.
type message struct {
	topic   string
	id      uint16
	qos     byte
	dup     bool
	retain  bool
	props   properties
	payload []byte
}

// readMessage reads a PUBLISH. Of one that is too large, only the topic and the id count.
func readMessage(p *packet, v5 bool) (m message, err error) {
	f := fields{b: p.body}
	m = message{qos: p.qos(), dup: p.flags&flagDup != 0, retain: p.flags&flagRetain != 0, topic: f.text()}
	if m.qos > 0 {
		m.id = f.uint16()
	}
	switch {
	case f.bad:
		return m, fmt.Errorf("%w: a message without its fields", errMalformed)
	case m.qos > 2 || m.qos > 0 && m.id == 0 || m.qos == 0 && m.dup:
		return m, fmt.Errorf("%w: a message without a valid quality of service or id", errMalformed)
	case !validTopic(m.topic):
		return m, fmt.Errorf("%w: a message with the topic %q", errMalformed, m.topic)
	case len(p.body) < p.size:
		return m, nil
	}
	if v5 {
		m.props = f.properties()
	}
	if f.bad {
		return m, fmt.Errorf("%w: properties", errMalformed)
	}
	m.payload = f.b
	return m, nil
}

// output makes a packet.
type output struct{ b []byte }

func (o *output) byte(b byte)     { o.b = append(o.b, b) }
func (o *output) uint16(n uint16) { o.b = binary.BigEndian.AppendUint16(o.b, n) }
func (o *output) uint32(n uint32) { o.b = binary.BigEndian.AppendUint32(o.b, n) }
func (o *output) text(s string)   { o.uint16(uint16(len(s))); o.b = append(o.b, s...) }

func (o *output) length(n int) {
	for ; n >= 0x80; n >>= 7 {
		o.byte(byte(n) | 0x80)
	}
	o.byte(byte(n))
}

// packet appends a packet with a body.
func (o *output) packet(kind, flags byte, body ...[]byte) {
	n := 0
	for _, part := range body {
		n += len(part)
	}
	o.byte(kind<<4 | flags)
	o.length(n)
	for _, part := range body {
		o.b = append(o.b, part...)
	}
}

// ack appends a PUBACK, PUBREC, PUBREL or PUBCOMP for success.
func (o *output) ack(kind byte, id uint16) {
	flags := byte(0)
	if kind == typePubrel {
		flags = flagsFixed
	}
	o.packet(kind, flags, []byte{byte(id >> 8), byte(id)})
}
