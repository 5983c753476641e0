package storefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// The rows of the log carry checksums, to find damage that SQLite cannot see: a flipped
// bit in a text leaves a valid text. CRC-32C costs next to nothing on processors that
// have an instruction for it. It does not protect against an attacker, who can recompute
// it.
//
// The low half of an event's sum is a checksum of its content, by which each event can be
// checked alone. The high half chains it to the previous event of its origin, so that an
// exchanged row is found, and so that one number marks how far a log has come.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fixedSize is the size of the part of an event's content that has the same size in all
// events.
const fixedSize = 16 + 2*24 + 9*8

// scratch are buffers for the content of a sum, which would otherwise be allocated on the
// heap each time.
var scratch = sync.Pool{New: func() any { return &Summer{} }}

// Summer computes checksums of events. It is used by one goroutine at a time.
type Summer struct {
	room []byte
	link [8]byte
}

// EventDigest returns the checksum of an event's content. It covers ids in the form that
// is the same in every file, so that the digest is the same as well.
func EventDigest(e *journal.Event) uint32 {
	s := scratch.Get().(*Summer)
	defer scratch.Put(s)
	return s.Digest(e)
}

// Digest is [EventDigest].
func (s *Summer) Digest(e *journal.Event) uint32 {
	if cap(s.room) < fixedSize {
		s.room = make([]byte, 512)
	}
	b := s.room[:fixedSize]
	copy(b, e.ID.Origin[:])
	putID(b[16:40], &e.Turn)
	putID(b[40:64], &e.Cause)
	for i, n := range [...]uint64{e.ID.Seq, uint64(e.Time), uint64(e.Kind), uint64(e.Attempt), e.Seq,
		uint64(len(e.Graph)), uint64(len(e.Creature)), uint64(len(e.Channel)), uint64(len(e.Headers))} {
		binary.LittleEndian.PutUint64(b[64+8*i:], n)
	}
	b = append(append(append(b, e.Graph...), e.Creature...), e.Channel...)
	s.room = b
	sum := crc32.Update(0, castagnoli, b)
	if len(e.Headers) > 0 {
		sum = crc32.Update(sum, castagnoli, e.Headers)
	}
	return crc32.Update(sum, castagnoli, e.Payload)
}

func putID(to []byte, id *journal.EventID) {
	copy(to, id.Origin[:])
	binary.LittleEndian.PutUint64(to[16:], id.Seq)
}

// ChainSeed stands for the event before the first one of an origin.
func ChainSeed(o journal.Origin) uint32 { return crc32.Checksum(o[:], castagnoli) }

// ChainOn returns the high half of the sum of an event, from that of the previous one. It
// is never zero: zero marks events that are in no chain.
func ChainOn(before, digest uint32) uint32 {
	s := scratch.Get().(*Summer)
	defer scratch.Put(s)
	return s.Chain(before, digest)
}

// Chain is [ChainOn].
func (s *Summer) Chain(before, digest uint32) uint32 {
	binary.LittleEndian.PutUint64(s.link[:], uint64(digest)<<32|uint64(before))
	return max(crc32.Update(0, castagnoli, s.link[:]), 1)
}

// JoinSum returns an event's sum as it is stored.
func JoinSum(chain, digest uint32) int64 { return int64(uint64(chain)<<32 | uint64(digest)) }

// ChainOf returns the half of a sum that links an event to the previous one.
func ChainOf(sum int64) uint32 { return uint32(uint64(sum) >> 32) }

// DigestOf returns the half of a sum that covers the event alone.
func DigestOf(sum int64) uint32 { return uint32(sum) }

// ChangeDigest returns the checksum of a row of the table change. Of event and first, only
// the numbers within the origin count.
func ChangeDigest(origin journal.Origin, event, part, first, base int64, rows string) int64 {
	b := append(make([]byte, 0, 48+len(rows)), origin[:]...)
	for _, n := range [...]int64{event & SeqMask, part, first & SeqMask, base} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return int64(crc32.Checksum(append(b, rows...), castagnoli))
}

// Altered is the error for an event that is not what was logged.
func Altered(path string, id journal.EventID) error {
	return &abi.Error{
		Code:    abi.Storage,
		Op:      "read",
		Message: fmt.Sprintf("the event %s in %s is damaged: its checksum does not match", id, path),
		Remedy:  "terrarium session verify lists all damage; restore the file from a backup. It has been left as it is",
		IDs:     map[string]string{"event": id.String(), "path": path},
	}
}

// sumFunctions are the functions that migrations call.
var sumFunctions = map[string]sqlite.Function{"event_sum": eventSumOf, "change_sum": changeSumOf}

// eventSumOf returns the sum of an event that was logged without one, from its columns.
func eventSumOf(columns ...any) (int64, error) {
	var id, ts, kind int64
	if err := sqlite.TakeRow(columns, nil, &id, &ts, &kind, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil); err != nil {
		return 0, err
	}
	origin, graph, creature, turnOrigin, turn, attempt := columns[0], columns[4], columns[5], columns[6], columns[7], columns[8]
	channel, seq, headers, payload, causeOrigin, cause := columns[9], columns[10], columns[11], columns[12], columns[13], columns[14]
	ref := func(origin, seq any) journal.EventID {
		return journal.EventID{Origin: originOf(origin), Seq: uint64(sqlite.NumberIn(seq))}
	}
	e := journal.Event{
		ID: ref(origin, id), Time: ts, Kind: journal.EventKind(kind), Graph: journal.GraphID(sqlite.TextIn(graph)), Creature: journal.CreatureID(sqlite.TextIn(creature)),
		Turn: ref(turnOrigin, turn), Channel: journal.ChannelID(sqlite.TextIn(channel)), Seq: uint64(sqlite.NumberIn(seq)),
		Attempt: int(sqlite.NumberIn(attempt)), Headers: sqlite.BytesIn(headers), Payload: sqlite.BytesIn(payload), Cause: ref(causeOrigin, cause),
	}
	return JoinSum(0, EventDigest(&e)), nil
}

// changeSumOf returns the sum of a row of the table change, from its columns.
func changeSumOf(columns ...any) (int64, error) {
	var event, part, first, base int64
	var rows string
	if err := sqlite.TakeRow(columns, nil, &event, &part, &first, &base, &rows); err != nil {
		return 0, err
	}
	return ChangeDigest(originOf(columns[0]), event, part, first, base, rows), nil
}

// originOf returns the origin in a column; for any other value, it returns the zero
// origin, whose sum no event has.
func originOf(v any) (o journal.Origin) {
	b, _ := v.([]byte)
	copy(o[:], b)
	return o
}
