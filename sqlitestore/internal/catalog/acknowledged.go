package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// AcknowledgedName is the name of the file that records how far each live log was
// acknowledged as durable. This part of the catalogue changes with every commit of a
// store, so it is written in place and not synced: like acknowledged events, it survives
// the process, and a write takes a microsecond. The file is written after the log has the
// events. So with the durability full, the log is never behind the file, even after a
// power failure. With the durability normal, the log can be behind only after the machine
// has stopped.
const AcknowledgedName = "acknowledged"

const (
	ackSize   = 128 // bytes of a slot; each is written at once, and has a checksum
	ackHeader = "terrarium acknowledged 1\n"
	// mostOfAcks is room for a million live sessions.
	mostOfAcks = 128 << 20
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Ack is how far a session was acknowledged under one origin.
type Ack struct {
	Session journal.SessionID
	Origin  journal.Origin
	Seq     uint64
	Chain   uint32 // of that event
	boot    uint32 // identifies the machine's start; 0: not known
}

// encode writes a slot.
func (a *Ack) encode(b []byte) bool {
	clear(b[:ackSize])
	if len(a.Session) > ackSize-37 {
		return false
	}
	binary.LittleEndian.PutUint32(b[4:], a.Chain)
	binary.LittleEndian.PutUint64(b[8:], a.Seq)
	copy(b[16:], a.Origin[:])
	binary.LittleEndian.PutUint32(b[32:], a.boot)
	b[36] = byte(len(a.Session))
	copy(b[37:], a.Session)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:ackSize], crcTable))
	return true
}

// decodeAck reads a slot; ok is false for a slot that is unused or damaged.
func decodeAck(b []byte) (a Ack, ok bool) {
	n := int(b[36])
	if n == 0 || n > ackSize-37 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:ackSize], crcTable) {
		return a, false
	}
	a.Chain, a.Seq, a.boot = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[32:])
	copy(a.Origin[:], b[16:])
	a.Session = journal.SessionID(b[37 : 37+n])
	return a, true
}

// ReadAcks reads the records of a directory's file. A file that is missing, or does not
// begin with the header, has none.
func ReadAcks(dir string) (map[journal.SessionID]Ack, error) {
	acks, _, err := readSlots(dir)
	return acks, err
}

// readSlots is ReadAcks with the slot of each session.
func readSlots(dir string) (map[journal.SessionID]Ack, map[journal.SessionID]int64, error) {
	f, err := files.Open(filepath.Join(dir, AcknowledgedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // which was only read
	if info, err := f.Stat(); err != nil || info.Size() > mostOfAcks {
		return nil, nil, errors.Join(err, fmt.Errorf("%s is too large to have been written by terrarium", f.Name()))
	}
	acks, slots := map[journal.SessionID]Ack{}, map[journal.SessionID]int64{}
	b := make([]byte, ackSize)
	for at := int64(0); ; at++ {
		if _, err := f.ReadAt(b, at*ackSize); errors.Is(err, io.EOF) {
			return acks, slots, nil
		} else if err != nil {
			return nil, nil, err
		}
		if at == 0 && !bytes.HasPrefix(b, []byte(ackHeader)) {
			return nil, nil, nil
		}
		if a, ok := decodeAck(b); ok && at > 0 {
			acks[a.Session], slots[a.Session] = a, at
		}
	}
}

// KeepAcks frees the slots of all sessions that are not live, in a directory that this
// process owns, and lists the sessions that have records but are not known.
func KeepAcks(dir string, live, known map[journal.SessionID]bool) (lost []journal.SessionID, err error) {
	before, err := ReadAcks(dir)
	if err != nil || before == nil {
		return nil, err
	}
	k, err := OpenAcks(dir, func(s journal.SessionID) bool { return live[s] })
	if err != nil {
		return nil, err
	}
	for _, at := range k.free {
		_, werr := k.f.WriteAt(make([]byte, ackSize), at*ackSize)
		err = errors.Join(err, werr)
	}
	for session, a := range before {
		if !known[session] && a.Seq > 0 {
			lost = append(lost, session)
		}
	}
	slices.Sort(lost)
	return lost, errors.Join(err, k.Close())
}

// Acknowledgements is the file of a directory that this process owns. Its methods may be
// called by any goroutine.
type Acknowledgements struct {
	f    *os.File
	boot uint32

	mu     sync.Mutex
	before map[journal.SessionID]Ack // from earlier processes, of sessions that were not opened since
	slots  map[journal.SessionID]int64
	free   []int64
	next   int64
}

// OpenAcks opens the file, and starts it over if it is not such a file. Slots of sessions
// that are not live are free.
func OpenAcks(dir string, live func(journal.SessionID) bool) (*Acknowledgements, error) {
	path := filepath.Join(dir, AcknowledgedName)
	before, slots, err := readSlots(dir)
	if err != nil {
		return nil, err
	}
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	k := &Acknowledgements{f: f, boot: bootNumber(), before: before, slots: slots, next: 1}
	if before == nil {
		k.before, k.slots = map[journal.SessionID]Ack{}, map[journal.SessionID]int64{}
		head := make([]byte, ackSize)
		copy(head, ackHeader)
		_, err = f.WriteAt(head, 0)
		if err = errors.Join(f.Truncate(0), err); err == nil {
			_, err = f.WriteAt(head, 0)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	used := map[int64]bool{}
	for session, at := range k.slots {
		if k.next = max(k.next, at+1); live(session) {
			used[at] = true
		} else {
			delete(k.slots, session)
			delete(k.before, session)
		}
	}
	for at := int64(1); at < k.next; at++ {
		if !used[at] {
			k.free = append(k.free, at)
		}
	}
	return k, nil
}

// Close closes the file.
func (k *Acknowledgements) Close() error {
	if k == nil {
		return nil
	}
	return k.f.Close()
}

// Slot is where a store records how far it was acknowledged.
type Slot struct {
	f    *os.File
	at   int64
	said Ack
	b    [ackSize]byte
}

// Take gives a session a slot.
func (k *Acknowledgements) Take(session journal.SessionID, origin journal.Origin) *Slot {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, has := k.slots[session]
	if !has {
		if n := len(k.free); n > 0 {
			at, k.free = k.free[n-1], k.free[:n-1]
		} else {
			at = k.next
			k.next++
		}
		k.slots[session] = at
	}
	return &Slot{f: k.f, at: at * ackSize, said: Ack{Session: session, Origin: origin, boot: k.boot}}
}

// Say records how far the log has come. If that fails, the earlier record still holds,
// and the check for losses only knows less.
func (s *Slot) Say(seq uint64, chain uint32) {
	if s.said.Seq == seq {
		return
	}
	s.said.Seq, s.said.Chain = seq, chain
	if s.said.encode(s.b[:]) {
		_, _ = s.f.WriteAt(s.b[:], s.at)
	}
}

// Release frees the slot of a session that has ended.
func (k *Acknowledgements) Release(session journal.SessionID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.before, session)
	if at, has := k.slots[session]; has {
		delete(k.slots, session)
		k.free = append(k.free, at)
		_, _ = k.f.WriteAt(make([]byte, ackSize), at*ackSize) // otherwise the slot only has a session that is not live
	}
}

// Said returns the records of earlier processes about a session, until they are settled.
func (k *Acknowledgements) Said(session journal.SessionID) (Ack, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, found := k.before[session]
	return a, found
}

// Settle notes that the records about a session are in the catalogue. It records what is
// present, so that a later process does not report a loss again even if this one
// acknowledges nothing.
func (k *Acknowledgements) Settle(session journal.SessionID, there Ack) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.before, session)
	b := make([]byte, ackSize)
	if there.Seq > 0 {
		there.Session, there.boot = session, k.boot
		there.encode(b)
	}
	_, _ = k.f.WriteAt(b, k.slots[session]*ackSize) // otherwise the loss is reported once more
}

// Excused reports whether acknowledged events may be missing without damage: the machine
// may have stopped since, and the durability promises no more.
func (a *Ack) Excused(durability journal.Durability) bool {
	return durability != journal.Full && (a.boot == 0 || a.boot != bootNumber())
}

// bootNumber distinguishes starts of the machine; 0 where it is not known.
var bootNumber = sync.OnceValue(func() uint32 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	return max(crc32.Checksum(bytes.TrimSpace(id), crcTable), 1)
})
