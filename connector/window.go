package connector

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/abi"
)

// A Window remembers the keys of the last messages of a source, in the producers of its
// channel, so that a message with the same key is taken once, even after a kill. It is for
// keys without an order, such as random ones. A window uses a bounded part of the session:
// a producer for each of [WindowSize] slots, which are used in turn.
//
// Its methods may be called from any goroutine.
type Window struct {
	name string

	mu    sync.Mutex // guards the rest
	known map[uint64]*entry
	slots []*entry // the last user of each, or nil; a user that was refused has left its slot
	next  uint64   // messages so far
}

// WindowSize is the number of keys that a [Window] remembers.
const WindowSize = 1 << 14

// An offset consists of the number of times that its slot was used, and of the hash of
// the key. The probability that a new key has the same hash as a remembered one is 2⁻²⁹.
const (
	hashBits = 43
	hashMask = 1<<hashBits - 1
)

// entry is a key that is taken, or is being taken.
type entry struct {
	done  chan struct{} // closed when its fate is known
	fate  fate
	again bool // an earlier message with its offset has an unknown outcome

	slot, offset uint64
}

func (e *entry) hash() uint64 { return e.offset & hashMask }

type fate uint8

const (
	left    fate = iota // refused: it may come again
	taken               // in the session
	unknown             // sent, but perhaps lost: sending it again decides
)

// NewWindow returns the window of a port, as the session has kept it.
func NewWindow(p Port) (*Window, error) { return newWindow(p, WindowSize) }

func newWindow(p Port, size int) (*Window, error) {
	w := &Window{name: p.Name() + ":key:", known: map[uint64]*entry{}, slots: make([]*entry, size)}
	producers, err := p.Producers()
	if err != nil {
		return nil, err
	}
	for name, offset := range producers {
		text, ok := strings.CutPrefix(name, w.name)
		slot, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil || slot >= uint64(size) {
			continue
		}
		e := &entry{done: closed, fate: taken, slot: slot, offset: offset}
		w.slots[slot] = e
		w.next = max(w.next, w.place(e)+1)
	}
	for slot, e := range w.slots {
		switch {
		case e == nil:
		// The session keeps the former key of a slot if the next one was refused. That key was
		// forgotten, and may have been taken again since, in another slot.
		case w.place(e)+uint64(size) < w.next:
			w.slots[slot] = nil
		default:
			w.known[e.hash()] = e
		}
	}
	return w, nil
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// place is the number of messages before the one of an entry.
func (w *Window) place(e *entry) uint64 {
	return (e.offset>>hashBits-1)*uint64(len(w.slots)) + e.slot
}

func hashOf(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])&hashMask | 1 // 0 is no hash
}

// Once calls send, unless a message with the key was taken before. While another caller
// sends a message with the key, Once waits. send gets the producer and the offset that
// its message must have, and reports whether the session knew the offset. If send returns an
// error with the code unknown_outcome, the next message with the key gets the same producer
// and offset. After any other error, the key counts as not taken, unless an earlier outcome
// is unknown.
//
// repeated reports whether a message with the key was taken before.
func (w *Window) Once(key string, send func(producer string, offset uint64) (duplicate bool, err error)) (repeated bool, err error) {
	hash := hashOf(key)
	e, former := w.claim(hash)
	for e == nil {
		if <-former.done; former.fate == taken {
			return true, nil
		}
		e, former = w.claim(hash)
	}
	repeated, err = send(w.name+strconv.FormatUint(e.slot, 10), e.offset)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		e.fate = taken
	// A refusal now does not say that the earlier message was not taken.
	case e.again || abi.CodeOf(err) == abi.UnknownOutcome:
		e.fate = unknown
	default:
		w.forget(e)
	}
	close(e.done)
	return repeated && err == nil, err
}

// claim makes an entry for a hash. If another caller has one that may be taken, it returns
// that one.
func (w *Window) claim(hash uint64) (mine, other *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.known[hash]; e != nil {
		if e.fate != unknown {
			return nil, e
		}
		mine = &entry{done: make(chan struct{}), again: true, slot: e.slot, offset: e.offset}
	} else {
		size := uint64(len(w.slots))
		mine = &entry{done: make(chan struct{}), slot: w.next % size, offset: (w.next/size+1)<<hashBits | hash}
		w.next++
	}
	if former := w.slots[mine.slot]; former != nil {
		w.forget(former)
	}
	w.slots[mine.slot], w.known[hash] = mine, mine
	return mine, nil
}

// forget forgets an entry, but no other one of the same key, which may be in another slot.
func (w *Window) forget(e *entry) {
	if w.known[e.hash()] == e {
		delete(w.known, e.hash())
	}
	if w.slots[e.slot] == e {
		w.slots[e.slot] = nil
	}
}
