package connector

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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
	slots [WindowSize]uint64 // the hash in each, or 0
	next  uint64             // messages so far
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
	done chan struct{} // closed when its fate is known
	fate fate

	producer string
	offset   uint64
}

type fate uint8

const (
	left    fate = iota // refused: it may come again
	taken               // in the session
	unknown             // sent, but perhaps lost: sending it again decides
)

// NewWindow returns the window of a port, as the session has kept it.
func NewWindow(p Port) (*Window, error) {
	w := &Window{name: p.Name() + ":key:", known: map[uint64]*entry{}}
	producers, err := p.Producers()
	if err != nil {
		return nil, err
	}
	for name, offset := range producers {
		text, ok := strings.CutPrefix(name, w.name)
		slot, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil || slot >= WindowSize {
			continue
		}
		hash := offset & hashMask
		w.slots[slot] = hash
		w.known[hash] = settled
		w.next = max(w.next, (offset>>hashBits-1)*WindowSize+slot+1)
	}
	return w, nil
}

var settled = func() *entry {
	e := &entry{done: make(chan struct{}), fate: taken}
	close(e.done)
	return e
}()

func hashOf(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])&hashMask | 1 // 0 is no hash
}

// Once calls send, unless a message with the key was taken before. While another caller
// sends a message with the key, Once waits. send gets the producer and the offset that
// its message must have. If send returns an error with the code unknown_outcome, the next
// message with the key gets the same producer and offset. After any other error, the key
// counts as not taken.
func (w *Window) Once(key string, send func(producer string, offset uint64) error) (repeated bool, err error) {
	hash := hashOf(key)
	var e *entry
	for e == nil {
		former := w.claim(hash, &e)
		if former == nil {
			break
		}
		if <-former.done; former.fate == taken {
			return true, nil
		}
	}
	err = send(e.producer, e.offset)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		e.fate = taken
	case abi.CodeOf(err) == abi.UnknownOutcome:
		e.fate = unknown
	case w.known[hash] == e:
		delete(w.known, hash)
	}
	close(e.done)
	return false, err
}

// claim makes an entry for a hash. If another caller has one that may be taken, it returns
// that one.
func (w *Window) claim(hash uint64, mine **entry) (other *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.known[hash]; e != nil {
		if e.fate != unknown {
			return e
		}
		*mine = &entry{done: make(chan struct{}), producer: e.producer, offset: e.offset}
		w.known[hash] = *mine
		return nil
	}
	slot := w.next % WindowSize
	e := &entry{done: make(chan struct{}), producer: fmt.Sprint(w.name, slot), offset: (w.next/WindowSize+1)<<hashBits | hash}
	w.next++
	if former := w.slots[slot]; former != 0 {
		delete(w.known, former)
	}
	w.slots[slot], w.known[hash], *mine = hash, e, e
	return nil
}
