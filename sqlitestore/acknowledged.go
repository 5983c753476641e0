package sqlitestore

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

// ackName is the file that says how far each live log was acknowledged as durable. It is
// a part of the catalogue that changes with every commit of a store, so it is written in
// place and not synced: it survives the process, as what is acknowledged does, for a
// microsecond. It is written when the log has what it says. So the log of a store of the
// durability full is never behind it, whatever becomes of the power; that of one of the
// durability normal is only after the machine has stopped.
const ackName = "acknowledged"

const (
	ackSize   = 128 // bytes of a slot; each is written at once, and has a checksum
	ackHeader = "terrarium acknowledged 1\n"
	// mostOfAcks is room for a million live sessions.
	mostOfAcks = 128 << 20
)

// ack is how far a session was acknowledged under one origin.
type ack struct {
	session journal.SessionID
	origin  journal.Origin
	seq     uint64
	chain   uint32 // of that event
	boot    uint32 // tells when the machine was started; 0: not known
}

// encode writes a slot.
func (a *ack) encode(b []byte) bool {
	clear(b[:ackSize])
	if len(a.session) > ackSize-37 {
		return false
	}
	binary.LittleEndian.PutUint32(b[4:], a.chain)
	binary.LittleEndian.PutUint64(b[8:], a.seq)
	copy(b[16:], a.origin[:])
	binary.LittleEndian.PutUint32(b[32:], a.boot)
	b[36] = byte(len(a.session))
	copy(b[37:], a.session)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:ackSize], castagnoli))
	return true
}

// decodeAck reads a slot; ok is false for one that nobody uses, or that is damaged.
func decodeAck(b []byte) (a ack, ok bool) {
	n := int(b[36])
	if n == 0 || n > ackSize-37 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:ackSize], castagnoli) {
		return a, false
	}
	a.chain, a.seq, a.boot = binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[32:])
	copy(a.origin[:], b[16:])
	a.session = journal.SessionID(b[37 : 37+n])
	return a, true
}

// readAcks reads what a directory's file says, with the slot of each session. A file that
// is missing, or begins otherwise, says nothing.
func readAcks(dir string) (map[journal.SessionID]ack, map[journal.SessionID]int64, error) {
	f, err := files.Open(filepath.Join(dir, ackName))
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
	acks, slots := map[journal.SessionID]ack{}, map[journal.SessionID]int64{}
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
			acks[a.session], slots[a.session] = a, at
		}
	}
}

// keepAcks frees the slots of all sessions but those that are live, in a directory that
// this process owns, and lists the ones that no catalogue has.
func keepAcks(dir string, live, known map[journal.SessionID]bool) (lost []journal.SessionID, err error) {
	before, _, err := readAcks(dir)
	if err != nil || before == nil {
		return nil, err
	}
	k, err := openAcks(dir, func(s journal.SessionID) bool { return live[s] })
	if err != nil {
		return nil, err
	}
	for _, at := range k.free {
		_, werr := k.f.WriteAt(make([]byte, ackSize), at*ackSize)
		err = errors.Join(err, werr)
	}
	for session, a := range before {
		if !known[session] && a.seq > 0 {
			lost = append(lost, session)
		}
	}
	slices.Sort(lost)
	return lost, errors.Join(err, k.close())
}

// acknowledgements is the file of a directory that this process owns. Its methods may be
// called by any goroutine.
type acknowledgements struct {
	f    *os.File
	boot uint32

	mu     sync.Mutex
	before map[journal.SessionID]ack // what processes before said of sessions that were not opened since
	slots  map[journal.SessionID]int64
	free   []int64
	next   int64
}

// openAcks opens the file, and begins it anew if it is none. Slots of sessions
// that are not live are free.
func openAcks(dir string, live func(journal.SessionID) bool) (*acknowledgements, error) {
	path := filepath.Join(dir, ackName)
	before, slots, err := readAcks(dir)
	if err != nil {
		return nil, err
	}
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	k := &acknowledgements{f: f, boot: bootNumber(), before: before, slots: slots, next: 1}
	if before == nil {
		k.before, k.slots = map[journal.SessionID]ack{}, map[journal.SessionID]int64{}
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

func (k *acknowledgements) close() error {
	if k == nil {
		return nil
	}
	return k.f.Close()
}

// slot is where a store says how far it was acknowledged.
type slot struct {
	f    *os.File
	at   int64
	said ack
	b    [ackSize]byte
}

// take gives a session a slot.
func (k *acknowledgements) take(session journal.SessionID, origin journal.Origin) *slot {
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
	return &slot{f: k.f, at: at * ackSize, said: ack{session: session, origin: origin, boot: k.boot}}
}

// say writes how far the log has come. That it cannot be written concerns nobody but who
// looks for what is lost: what was said before holds all the same.
func (s *slot) say(seq uint64, chain uint32) {
	if s.said.seq == seq {
		return
	}
	s.said.seq, s.said.chain = seq, chain
	if s.said.encode(s.b[:]) {
		_, _ = s.f.WriteAt(s.b[:], s.at)
	}
}

// release frees the slot of a session that has ended.
func (k *acknowledgements) release(session journal.SessionID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.before, session)
	if at, has := k.slots[session]; has {
		delete(k.slots, session)
		k.free = append(k.free, at)
		_, _ = k.f.WriteAt(make([]byte, ackSize), at*ackSize) // or what it says is of a session that is not live
	}
}

// said answers what processes before said of a session, until it is settled.
func (k *acknowledgements) said(session journal.SessionID) (ack, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, found := k.before[session]
	return a, found
}

// settle notes that what was said of a session is in the catalogue, and says what is
// there of it, so that a loss is not told again by a later process although none of this
// one was acknowledged.
func (k *acknowledgements) settle(session journal.SessionID, there ack) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.before, session)
	b := make([]byte, ackSize)
	if there.seq > 0 {
		there.session, there.boot = session, k.boot
		there.encode(b)
	}
	_, _ = k.f.WriteAt(b, k.slots[session]*ackSize) // or the loss is told once more
}

// excused reports whether what an acknowledgement says may be lost although nothing is
// damaged: the machine may have stopped since, and the durability promises no more.
func (a *ack) excused(durability journal.Durability) bool {
	return durability != journal.Full && (a.boot == 0 || a.boot != bootNumber())
}

// bootNumber tells starts of the machine apart; 0 where that is not known.
var bootNumber = sync.OnceValue(func() uint32 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	return max(crc32.Checksum(bytes.TrimSpace(id), castagnoli), 1)
})
