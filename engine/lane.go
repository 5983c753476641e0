package engine

import (
	"sync"
	"sync/atomic"
)

// lane is a part of the run queue. Anybody may put in and take out, but it is mostly
// one worker that does.
type lane struct {
	chosen  atomic.Uint64    // how often its worker has chosen a creature
	waiting atomic.Int64     // ring.n, for who looks from outside
	seen    map[*lane]uint64 // what its worker has seen of the others' chosen

	mu   sync.Mutex
	ring creatureRing

	_ [64]byte // so that two lanes never share a cache line
}

func (l *lane) push(cs []*creature) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range cs {
		l.ring.push(c)
	}
	l.waiting.Store(int64(l.ring.n))
}

// pop takes the first creature, if there is one.
func (l *lane) pop() *creature {
	if l.waiting.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.ring.pop()
	l.waiting.Store(int64(l.ring.n))
	return c
}

// mostStolen is how many creatures change lanes at a time.
const mostStolen = 32

// steal moves the first half of what another lane has into this one, but for the
// first creature, which it returns.
func (l *lane) steal(from *lane) *creature {
	if from.waiting.Load() == 0 {
		return nil
	}
	var buffer [mostStolen]*creature
	got := from.half(buffer[:0])
	if len(got) == 0 {
		return nil
	}
	if len(got) > 1 {
		l.push(got[1:])
	}
	return got[0]
}

// half takes out the first half, as far as it fits in the buffer.
func (l *lane) half(buffer []*creature) []*creature {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range min((l.ring.n+1)/2, cap(buffer)) {
		buffer = append(buffer, l.ring.pop())
	}
	l.waiting.Store(int64(l.ring.n))
	return buffer
}

// creatureRing is a queue that uses its memory again.
type creatureRing struct {
	ring []*creature // a power of two long, or nil
	head int
	n    int
}

func (r *creatureRing) push(c *creature) {
	if r.n == len(r.ring) {
		ring := make([]*creature, max(64, 2*r.n))
		for i := range r.n {
			ring[i] = r.ring[(r.head+i)&(r.n-1)]
		}
		r.ring, r.head = ring, 0
	}
	r.ring[(r.head+r.n)&(len(r.ring)-1)] = c
	r.n++
}

// pop takes the first one, if there is one.
func (r *creatureRing) pop() *creature {
	if r.n == 0 {
		return nil
	}
	c := r.ring[r.head]
	r.ring[r.head] = nil
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.n--
	return c
}
