package mqtt

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/connector"
)

// A broker sends a message again after a lost connection if it has not seen its
// acknowledgement: with the flag DUP and with its former packet id. recent remembers the
// last messages that were taken, with their ids and a hash of each, in the producers of
// the channel. So it also knows them after a kill.
//
// An offset has the number of times that its slot was used, the packet id, and the hash.
const (
	slots     = 1 << 11
	hashBits  = 18
	idBits    = 16
	roundBits = 63 - idBits - hashBits
)

// mark says where a message that was taken is remembered.
type mark struct {
	n    uint64 // its number among the messages that were taken
	id   uint16
	hash uint32
}

// recent is used by one goroutine at a time.
type recent struct {
	prefix string
	names  [slots]string // of the producers
	next   uint64        // the number of the next message
	ring   [slots]mark
	filled [slots]bool
	last   map[uint16]mark // the last message with an id
	ids    map[uint16]int  // how often the ring has each id
	hashes map[uint32]int  // how often the ring has each hash
	pairs  map[uint64]int  // how often the ring has each id with each hash
	reused int             // ids that the ring has more than once
}

// newRecent returns what the channel of a port has kept.
func newRecent(p connector.Port) (*recent, error) {
	producers, err := p.Producers()
	if err != nil {
		return nil, err
	}
	r := &recent{prefix: p.Name() + ":packet:"}
	r.clear()
	var marks []mark
	for name, offset := range producers {
		text, ok := strings.CutPrefix(name, r.prefix)
		slot, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil || slot >= slots || offset>>(idBits+hashBits) == 0 {
			continue
		}
		m := mark{
			n:  (offset>>(idBits+hashBits)-1)*slots + slot,
			id: uint16(offset >> hashBits), hash: uint32(offset & (1<<hashBits - 1)),
		}
		marks = append(marks, m)
		r.next = max(r.next, m.n+1)
	}
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.n, b.n) })
	for _, m := range marks {
		if m.n+slots >= r.next {
			r.add(m)
		}
	}
	return r, nil
}

func (r *recent) clear() {
	r.filled = [slots]bool{}
	r.last, r.ids, r.hashes, r.pairs, r.reused = map[uint16]mark{}, map[uint16]int{}, map[uint32]int{}, map[uint64]int{}, 0
}

// forget drops all messages: the broker has begun a new session, in which the ids belong
// to other messages. The numbers of later messages are so much higher that a later
// process ignores the dropped messages too.
func (r *recent) forget() {
	if r.next == 0 {
		return
	}
	r.next += slots
	r.clear()
}

// place returns the producer and the offset of a message.
func (r *recent) place(m mark) (producer string, offset uint64) {
	name := &r.names[m.n%slots]
	if *name == "" {
		*name = fmt.Sprint(r.prefix, m.n%slots)
	}
	return *name, (m.n/slots+1)<<(idBits+hashBits) | uint64(m.id)<<hashBits | uint64(m.hash)
}

// mark is the place for the next message.
func (r *recent) mark(id uint16, hash uint32) mark { return mark{r.next, id, hash} }

// add remembers a message that was taken.
func (r *recent) add(m mark) {
	slot := m.n % slots
	if r.filled[slot] {
		former := r.ring[slot]
		if r.last[former.id].n == former.n {
			delete(r.last, former.id)
		}
		r.count(former, -1)
	}
	r.ring[slot], r.filled[slot], r.last[m.id], r.next = m, true, m, m.n+1
	r.count(m, 1)
}

func (r *recent) count(m mark, by int) {
	if before := r.ids[m.id]; before == 1 && by > 0 || before == 2 && by < 0 {
		r.reused += by
	}
	tally(r.ids, m.id, by)
	tally(r.hashes, m.hash, by)
	tally(r.pairs, m.pair(), by)
}

func (m mark) pair() uint64 { return uint64(m.id)<<32 | uint64(m.hash) }

func tally[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}

// often is the number of remembered messages with the same hash from which on their
// content counts as recurring. Two messages may have the same hash by chance.
const often = 3

// repeated finds the message that a message with the flag DUP repeats. The broker may
// have got the acknowledgement of the earlier message, and have given its id to another
// message, whose first copy did not arrive. Then the ids are the same, but the contents
// seldom are. A recurring content is therefore recognized only if the broker has not used
// any id again lately.
func (r *recent) repeated(id uint16, hash uint32) (mark, bool) {
	m, ok := r.last[id]
	if !ok || m.hash != hash {
		return mark{}, false
	}
	return m, r.reused == 0 || r.pairs[m.pair()] == 1 && r.hashes[hash] < often
}

// contentHash is the hash of what makes two messages the same.
func contentHash(m *message) uint32 {
	h := sha256.New()
	part := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	part(m.topic)
	part(m.props.contentType)
	for _, u := range m.props.user {
		part(u[0])
		part(u[1])
	}
	h.Write([]byte{m.qos})
	h.Write(m.payload)
	var sum [sha256.Size]byte
	return binary.BigEndian.Uint32(h.Sum(sum[:0])) & (1<<hashBits - 1)
}
