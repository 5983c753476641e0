package journal

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
)

// EventCursor is the position of a reader in the events of a session directory. It is
// opaque, stays valid across cuts and restarts, and works with every subscription and
// every [Replay] of the same directory.
type EventCursor string

// FromStart is the cursor before the first event.
const FromStart EventCursor = "start"

// Mark is a place in the log of one session: the place after an event. A mark stays valid
// if a crash removes that event and others before it, because the events that are written
// after the crash have another origin and a time after Since. There is one exception: the
// crash removes everything that was logged since the session was opened, and the clock is
// then set back to a time before the removed events.
type Mark struct {
	Event EventID // zero: the mark is after every event up to Since
	// Since is a time: no event that the session wrote under earlier origins is later,
	// and every event that it writes under later origins is.
	Since int64
}

// IsZero reports whether the mark is before every event.
func (m Mark) IsZero() bool { return m == Mark{} }

// Covers reports whether an event of the session is before the mark.
func (m Mark) Covers(ev *Event) bool {
	if ev.ID.Origin == m.Event.Origin {
		return ev.ID.Seq <= m.Event.Seq
	}
	return ev.Time <= m.Since
}

// Next returns the mark after ev, which must be the first event after m.
func (m Mark) Next(ev *Event) Mark {
	if ev.ID.Origin != m.Event.Origin {
		m.Since = ev.Time - 1
	}
	return Mark{ev.ID, m.Since}
}

// Position is what a cursor encodes. A session with a mark has been read up to the mark.
// Every other session that is not younger than through has been read completely, and
// younger ones not at all. So ended sessions need no mark, and the length of a cursor
// grows only with the number of live sessions.
type Position struct {
	Through SessionID // "": before the first
	Marks   map[SessionID]Mark
}

// errCursor is the error for a damaged cursor. Its callers add the operation.
var errCursor = errors.New("it is damaged")

// cursorVersion is the first byte of a cursor. The last bytes are a checksum.
const cursorVersion = 1

// Cursor encodes the position.
func (p *Position) Cursor() EventCursor {
	b := appendText([]byte{cursorVersion}, string(p.Through))
	for _, session := range slices.Sorted(maps.Keys(p.Marks)) {
		m := p.Marks[session]
		b = appendText(b, string(session))
		b = binary.AppendVarint(b, m.Since)
		b = append(b, m.Event.Origin[:]...)
		b = binary.AppendUvarint(b, m.Event.Seq)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return EventCursor(base64.RawURLEncoding.EncodeToString(b))
}

// Covering returns a function that reports whether an event of the session directory is
// before a cursor. A [Replay] from the cursor skips these events. The error has the code
// not_found for a cursor of another directory.
func Covering(ctx context.Context, from Chronicle, cursor EventCursor) (func(SessionID, *Event) bool, error) {
	r, err := NewReplay(ctx, from, cursor, nil)
	if err != nil {
		return nil, err
	}
	at, later := r.at, map[SessionID]bool{}
	for _, log := range r.waiting {
		later[log.info.Session] = true
	}
	known, err := from.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	old := map[SessionID]bool{}
	for _, info := range known {
		old[info.Session] = !later[info.Session]
	}
	return func(session SessionID, ev *Event) bool {
		if mark, ok := at.Marks[session]; ok {
			return mark.Covers(ev)
		}
		return old[session]
	}, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseCursor reads what [Position.Cursor] writes.
func ParseCursor(c EventCursor) (Position, error) {
	p := Position{Marks: map[SessionID]Mark{}}
	if c == FromStart {
		return p, nil
	}
	err := p.parse(string(c))
	if err != nil {
		return p, &abi.Error{
			Code: abi.InvalidArgument, Op: "subscribe", Message: "this is not a cursor of events",
			Remedy: "use the cursor of an event, or begin with " + string(FromStart), Err: errCursor,
		}
	}
	return p, nil
}

func (p *Position) parse(text string) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return errCursor
	}
	end := len(b) - 4
	if end < 1 || b[0] != cursorVersion || binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return errCursor
	}
	in := bytes.NewReader(b[1:end])
	through, err := readText(in)
	p.Through = SessionID(through)
	for err == nil && in.Len() > 0 {
		err = p.parseMark(in)
	}
	return err
}

func (p *Position) parseMark(in *bytes.Reader) error {
	session, err := readText(in)
	var m Mark
	if err == nil {
		m.Since, err = binary.ReadVarint(in)
	}
	if err == nil {
		err = binary.Read(in, binary.BigEndian, m.Event.Origin[:])
	}
	if err == nil {
		m.Event.Seq, err = binary.ReadUvarint(in)
	}
	p.Marks[SessionID(session)] = m
	return err
}

func readText(in *bytes.Reader) (string, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil || n > uint64(in.Len()) {
		return "", errCursor
	}
	b := make([]byte, n)
	_, err = in.Read(b)
	if n == 0 {
		err = nil
	}
	return string(b), err
}
