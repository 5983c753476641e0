package terrarium

import (
	"strconv"
	"unicode/utf8"
)

// A Turn is one call into a creature: its input and its effects. It is invalid
// after the handler has returned, and only the goroutine that runs the handler
// may use it.
//
// Methods without an error result return the zero value if the host refuses;
// all others return an [*Error].
type Turn struct {
	host    Host
	kind    Kind
	size    int32
	payload []byte
	read    bool   // payload has been read
	headers []byte // scratch for outgoing headers
	spare   []byte // for what is read next
}

// NewTurn makes a turn on h, for tests; in a module the package makes the
// turns.
func NewTurn(h Host, kind Kind, size int32) *Turn { return &Turn{host: h, kind: kind, size: size} }

// begin makes t the turn of another call.
func (t *Turn) begin(kind Kind, size int32) {
	t.kind, t.size = kind, size
	t.payload, t.read = nil, false
}

// Kind says why the creature is called.
func (t *Turn) Kind() Kind { return t.kind }

// Payload returns the bytes of the delivery. They need not be UTF-8. They are
// read at the first call; the handler owns the slice and may change it.
func (t *Turn) Payload() []byte {
	if !t.read {
		t.readPayload()
	}
	return t.payload
}

func (t *Turn) readPayload() {
	t.read = true
	t.payload = t.readAll(SourcePayload, t.size)
}

// Text returns the payload as a text. It is an error if the payload is not UTF-8.
func (t *Turn) Text() (string, error) {
	if !utf8.Valid(t.Payload()) {
		return "", invalid("the payload is not UTF-8")
	}
	return string(t.Payload()), nil
}

// Channel returns the listen alias of the message's channel, or the creature's
// own name for a direct message.
func (t *Turn) Channel() string { return string(t.Source(SourceChannel)) }

// Sender returns the sender's name, or "" for a message from outside.
func (t *Turn) Sender() string { return string(t.Source(SourceSender)) }

// MessageID returns the id of the message, which is unique everywhere.
func (t *Turn) MessageID() string { return string(t.Source(SourceMessageID)) }

// Self returns the creature's own name.
func (t *Turn) Self() string { return string(t.Source(SourceSelf)) }

// Detail returns the details of this kind of delivery, as JSON.
func (t *Turn) Detail() []byte { return t.Source(SourceDetail) }

// detail returns a member of the details.
func (t *Turn) detail(name string) JSON { return JSON(t.Detail()).Get(name) }

// Direct reports whether a message was sent directly to the creature.
func (t *Turn) Direct() bool { return string(t.detail("direct")) == "true" }

// Attempt returns how often the delivery has been attempted, this time included.
func (t *Turn) Attempt() int64 {
	n, _ := t.detail("attempt").Whole()
	return n
}

// TimerName returns the name of the timer, for a delivery of the kind timer.
func (t *Turn) TimerName() string { return t.detail("name").Text() }

// Tag returns the tag of the request, for a delivery of the kind result.
func (t *Turn) Tag() int64 {
	n, err := strconv.ParseInt(t.detail("tag").Text(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ResultCode returns "ok" or the name of an error, for a delivery of the kind result.
// The payload of an error is its text.
func (t *Turn) ResultCode() string { return t.detail("code").Text() }

// Awareness returns the awareness document: what the creature can know about itself and
// its surroundings.
func (t *Turn) Awareness() JSON { return t.Source(SourceAwarenessJSON) }

// AwarenessMarkdown returns the same document as Markdown.
func (t *Turn) AwarenessMarkdown() string { return string(t.Source(SourceAwarenessMarkdown)) }

// AwarenessRevision returns the document's revision, which rises whenever the
// document changes, or 0 if there is none. It costs less than reading the
// document.
func (t *Turn) AwarenessRevision() uint64 {
	n, err := strconv.ParseUint(string(t.Source(SourceAwarenessRevision)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Headers returns the headers of the message, in their order.
func (t *Turn) Headers() []Header { return decodeHeaders(t.Source(SourceHeaders)) }

// Header returns the value of a header of the message; ok is false if there is none. If
// a name appears twice, its last value counts.
func (t *Turn) Header(name string) (value string, ok bool) {
	for _, h := range t.Headers() {
		if h.Name == name {
			value, ok = h.Value, true
		}
	}
	return value, ok
}

// Source returns the complete content of a source, or nil if the host does not
// have it.
func (t *Turn) Source(s Source) []byte { return t.readAll(s, t.host.Size(s)) }

func (t *Turn) readAll(s Source, size int32) []byte {
	if size <= 0 {
		return nil
	}
	p := t.bytes(int(size))
	n := t.host.Read(s, 0, p)
	return p[:max(n, 0)]
}

const (
	// spareBytes are allocated together for what is read in several turns.
	spareBytes = 4 << 10
	// small is the most that is cut from them, so that a slice that the creature keeps
	// holds little else.
	small = 512
)

// bytes returns n bytes that the caller owns.
func (t *Turn) bytes(n int) []byte {
	if n > small {
		return make([]byte, n)
	}
	if n > len(t.spare) {
		t.spare = make([]byte, spareBytes)
	}
	p := t.spare[:n:n]
	t.spare = t.spare[n:]
	return p
}

// result returns the result of the last call, size bytes.
func (t *Turn) result(size int32) []byte { return t.readAll(SourceResult, size) }

// check converts a negative status into an error. It is small enough to be inlined.
func (t *Turn) check(op string, status int32) error {
	if status >= 0 {
		return nil
	}
	return t.refused(op, status)
}

func (t *Turn) refused(op string, status int32) error {
	return &Error{Code: Code(-status), Op: op, Text: string(t.Source(SourceError))}
}

// Config returns one attribute of the configuration: a string as it is,
// anything else as JSON. ok is false if it is missing.
func (t *Turn) Config(key string) (value string, ok bool) {
	n := t.host.Config(key, nil)
	if n < 0 {
		return "", false
	}
	return string(t.result(n)), true
}

// ConfigJSON returns the whole configuration, a JSON object.
func (t *Turn) ConfigJSON() []byte { return t.Source(SourceConfig) }

// Send sends a message on the channel that the creature knows as alias.
func (t *Turn) Send(alias string, payload []byte, headers ...Header) error {
	handle := t.host.Channel(alias)
	if handle < 0 {
		return t.check("channel", handle)
	}
	_, err := t.send(handle, payload, headers)
	return err
}

// SendAll sends a message on every channel that the creature may send on. It
// returns how many there are.
func (t *Turn) SendAll(payload []byte, headers ...Header) (int, error) {
	return t.send(allChannels, payload, headers)
}

func (t *Turn) send(handle int32, payload []byte, headers []Header) (int, error) {
	var encoded []byte
	if len(headers) > 0 {
		t.headers = appendHeaders(t.headers[:0], headers)
		encoded = t.headers
	}
	n := t.host.Send(handle, payload, encoded)
	return int(max(n, 0)), t.check("send", n)
}

// SendTo sends a direct message to one creature of the sender's graph, by id
// or name.
func (t *Turn) SendTo(creature string, payload []byte) error {
	return t.check("send_to", t.host.SendTo(creature, payload))
}

// Request sends a direct message and requests a reply, which arrives as a
// delivery of the kind result with the same tag. The deadline is in milliseconds.
func (t *Turn) Request(creature string, payload []byte, deadlineMS, tag int64) error {
	return t.check("request", t.host.Request(creature, payload, deadlineMS, tag))
}

// Reply answers the request that is being handled.
func (t *Turn) Reply(payload []byte) error { return t.check("reply", t.host.Reply(payload)) }

// Output appends to the output of the turn.
func (t *Turn) Output(payload []byte) error { return t.check("output", t.host.Output(payload)) }

// SetTimer sets or replaces the timer of that name. Delay and period are in
// milliseconds; a period of 0 means once. The payload is that of the delivery of the
// kind timer.
func (t *Turn) SetTimer(name string, delayMS, periodMS int64, payload []byte) error {
	return t.check("timer_set", t.host.TimerSet(name, delayMS, periodMS, payload))
}

// CancelTimer cancels a timer and reports whether it was set.
func (t *Turn) CancelTimer(name string) (bool, error) {
	n := t.host.TimerCancel(name)
	return n > 0, t.check("timer_cancel", n)
}

// Tool calls a group tool with JSON arguments and returns its JSON result.
func (t *Turn) Tool(name string, args []byte) (JSON, error) {
	n := t.host.Tool(name, args)
	if err := t.check("tool", n); err != nil {
		return nil, err
	}
	return t.result(n), nil
}

// HTTP sends an HTTP request after the turn has taken effect. request is JSON
// with method, url and headers. The response arrives as a delivery of the kind
// result with the same tag.
func (t *Turn) HTTP(request, body []byte, tag int64) error {
	return t.check("http", t.host.HTTP(request, body, tag))
}

// HasFeature reports whether the host has an optional part of the contract.
func (t *Turn) HasFeature(f Feature) bool { return t.host.Feature(f) > 0 }

// Log writes a log line. Lines beyond the limits of the turn are dropped.
func (t *Turn) Log(level Level, text string) { t.host.Log(level, text) }

// Now returns the delivery's time, unless the creature was granted the real clock, in
// nanoseconds since 1970: time.Unix(0, t.Now()) is a [time.Time]. This package does
// without package time, which adds a quarter of a megabyte to a module.
func (t *Turn) Now() int64 { return t.host.Now() }

// Random fills p with bytes that are the same when the turn is run again, unless
// the creature was granted real randomness.
func (t *Turn) Random(p []byte) { t.host.Random(p) }

// FuelLeft returns the fuel left in the turn, or -1 if fuel is not counted.
func (t *Turn) FuelLeft() int64 { return t.host.FuelLeft() }
