// Package effects collects those effects of a guest's calls that do not depend on the
// graph: state, timers, output and log lines, the bytes of sends, and the error of the
// last call that failed.
package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/veil"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Own is what one turn collects. It belongs to one worker, which uses it again for its
// next turn.
type Own struct {
	Limits   *abi.Limits // of the creature
	ReadOnly bool        // outside of creature_handle
	veil     *veil.Veil
	saved    *State // before the turn

	// Arena holds the bytes of everything that is sent, so that a
	// turn with a store costs one allocation for all of it.
	Arena     []byte
	sendCount int
	sendBytes int64
	Put       []byte // the output
	HasOutput bool

	Writes      []Write        // by rising key, each once
	StateSize   int64          // size of the creature's state after the writes
	Timers      []Timer        // by rising name, each once
	before      map[string]int // the timers set before the turn; see KnowTimers
	beforeBytes int64
	Logs        []Line
	logBytes    int64

	Fault   Fault
	Scratch []byte
}

var noState State

// Begin prepares for a call. state is the state of the creature, or nil while a creature
// that has never run is being made; size is the size of the state.
func (t *Own) Begin(limits *abi.Limits, v *veil.Veil, state *State, size int64, readOnly bool) {
	if state == nil {
		state = &noState
	}
	t.Limits, t.veil, t.saved, t.StateSize, t.ReadOnly = limits, v, state, size, readOnly
}

// Reset forgets what was collected, keeping the memory unless it is large.
func (t *Own) Reset() {
	if cap(t.Arena) > 1<<20 {
		t.Arena = nil
	}
	if cap(t.Put) > 1<<20 {
		t.Put = nil
	}
	if cap(t.Scratch) > 1<<20 {
		t.Scratch = nil
	}
	// Field by field: this is on the path of every delivery, and most turns
	// use few of them.
	t.Arena, t.Scratch = t.Arena[:0], t.Scratch[:0]
	t.Put, t.HasOutput = t.Put[:0], false
	t.Writes, t.Timers, t.Logs = Emptied(t.Writes), Emptied(t.Timers), Emptied(t.Logs)
	t.before, t.beforeBytes = nil, 0
	t.sendCount, t.sendBytes, t.logBytes = 0, 0, 0
	if t.Fault.Code != abi.OK {
		t.Fault = Fault{}
	}
}

// Error is the fault as an error of an operation.
func (f *Fault) Error(op string) *abi.Error {
	return &abi.Error{Code: f.Code, Op: op, Message: f.Text, Remedy: f.Remedy, IDs: f.IDs}
}

// Span is a piece of a turn's arena.
type Span struct{ from, to int }

// Bytes are a piece of the arena.
func (t *Own) Bytes(s Span) []byte { return t.Arena[s.from:s.to:s.to] }

// Keep copies bytes to the arena.
func (t *Own) Keep(b []byte) Span {
	from := len(t.Arena)
	t.Arena = append(t.Arena, b...)
	return Span{from, len(t.Arena)}
}

// Line is a line that a guest has logged.
type Line struct {
	Level  abi.Level
	Text   string
	Engine bool // the guest has not said it
}

// Event is the event of a log line; about says whose it is.
func (l Line) Event(about journal.Event) journal.Event {
	about.Kind, about.Payload = journal.EventLog, journal.JSON(journal.LogPayload{Level: l.Level.String(), Text: l.Text, Engine: l.Engine})
	return about
}

// Fault is the last failed call, kept in a form that costs nothing until the
// guest asks for its text.
type Fault struct {
	Code   abi.Code
	Text   string
	Remedy string
	IDs    map[string]string // that it is about, as in [abi.Error]
}

// Emptied returns the list without elements, and drops what they refer to.
func Emptied[T any](list []T) []T {
	if len(list) > 0 {
		clear(list)
	}
	return list[:0]
}

// Fail keeps the text of a failed call for the guest, and returns its code.
func (t *Own) Fail(code abi.Code, remedy, format string, args ...any) abi.Code {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	t.Fault = Fault{Code: code, Text: text, Remedy: remedy}
	return code
}

// OverLimit is Fail for a limit.
func (t *Own) OverLimit(name string, max int64) abi.Code {
	return t.Fail(abi.LimitExceeded, "raise the limit or do less per turn", "the limit %s (%d) is reached", name, max)
}

// Effect checks what every collecting call has in common.
func (t *Own) Effect() abi.Code {
	if t.ReadOnly {
		return t.Fail(abi.Denied, "do it in creature_handle", "effects are only collected while a delivery is handled")
	}
	return abi.OK
}

// LastError implements [abi.Turn]: what was wrong, what to do, and at the end in
// parentheses the ids that it is about.
func (t *Own) LastError() string {
	text := t.Fault.Text
	if t.Fault.Remedy != "" {
		text += "; " + t.Fault.Remedy
	}
	if len(t.Fault.IDs) == 0 {
		return text
	}
	var ids []string
	for _, what := range slices.Sorted(maps.Keys(t.Fault.IDs)) {
		ids = append(ids, what+"="+errtext.PlainID(t.Fault.IDs[what]))
	}
	return text + " (" + strings.Join(ids, ", ") + ")"
}

// Text is a string as bytes that hold until the next call.
func (t *Own) Text(s string) []byte {
	t.Scratch = append(t.Scratch[:0], s...)
	return t.Scratch
}

// Sendable checks a message, wherever it goes.
func (t *Own) Sendable(payload, headers []byte) abi.Code {
	size := int64(len(payload) + len(headers))
	switch {
	case size > t.Limits.Message:
		return t.Fail(abi.TooLarge, "send smaller messages, or raise the limit", "the message has %d bytes; the limit message is %d", size, t.Limits.Message)
	case !journal.ValidHeaders(headers):
		return t.Fail(abi.InvalidArgument, "write name NUL value NUL for each header", "the headers are malformed")
	case journal.HasReservedHeader(headers):
		return t.Fail(abi.InvalidArgument, "use another name", "names of headers that begin with %s are reserved for the host", journal.ReservedPrefix)
	}
	return abi.OK
}

// Room checks and counts n sends of the same bytes.
func (t *Own) Room(n int, payload, headers []byte) abi.Code {
	if code := t.Sendable(payload, headers); code != abi.OK {
		return code
	}
	limits := t.Limits
	size := int64(len(payload) + len(headers))
	switch {
	case t.sendCount+n > limits.Sends:
		return t.OverLimit("sends", int64(limits.Sends))
	case t.sendBytes+int64(n)*size > limits.SendBytes:
		return t.OverLimit("send_bytes", limits.SendBytes)
	}
	t.sendCount += n
	t.sendBytes += int64(n) * size
	return abi.OK
}

// Output implements [abi.Turn].
func (t *Own) Output(payload []byte) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	if int64(len(t.Put))+int64(len(payload)) > t.Limits.Output {
		return t.OverLimit("output", t.Limits.Output)
	}
	t.Put, t.HasOutput = append(t.Put, payload...), true
	return abi.OK
}

// Log implements [abi.Turn].
func (t *Own) Log(level abi.Level, text []byte) abi.Code {
	limits := t.Limits
	switch {
	case level < abi.LevelDebug || level > abi.LevelError:
		return t.Fail(abi.InvalidArgument, "use 0 (debug) to 3 (error)", "%d is not a log level", level)
	case len(t.Logs) >= limits.LogLines:
		return t.OverLimit("log_lines", int64(limits.LogLines))
	}
	room := limits.LogBytes - t.logBytes
	cut := int64(len(text)) > room
	if cut && room < int64(len(ellipsis)) {
		return t.OverLimit("log_bytes", limits.LogBytes)
	}
	// Secrets are hidden before the line is cut. A part of a secret at the end of the
	// examined text would not be found, so as many bytes as the longest secret has are cut
	// off there.
	longest := t.veil.Longest()
	examined := text[:min(int64(len(text)), room+int64(longest))]
	line := t.veil.Text(strings.ToValidUTF8(string(examined), "\uFFFD"))
	if cut {
		line = shortened(line, min(int(room), len(line)-longest))
	}
	t.logBytes += min(int64(len(text)), room)
	t.Logs = append(t.Logs, Line{Level: level, Text: line})
	return abi.OK
}

// ellipsis ends a log line that was cut.
const ellipsis = "…"

// shortened cuts a text to at most size bytes, with the ellipsis and without a part of a
// character. A shortened line is more useful than none.
func shortened(text string, size int) string {
	end := max(size-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
