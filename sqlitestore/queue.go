package sqlitestore

import (
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// queue holds the records that were appended to a store and are not yet written. It also
// signals the writing goroutine to park or to stop. Its methods may be called by any
// goroutine.
type queue struct {
	maxBytes int64
	wake     chan struct{} // has room for one: there are records
	filled   chan struct{} // has room for one: there are as many records as expected
	stopping chan struct{} // closed when the store is to be closed

	mu       sync.Mutex
	records  []*journal.Record // appended and not yet taken by the writer
	bytes    int64             // of all records that are not yet written
	appended uint64            // records, since the store was opened
	expected int               // the number of records that the writer lingers for
	room     chan struct{}     // if not nil, closed when bytes falls below maxBytes
	parking  chan error        // if not nil, closed by the writer when it is parked; receives the reason if it cannot be
	resumed  chan struct{}     // closed to let a parked writer continue
	tired    bool              // the writer is to close its connection, unless it is needed
	mode     stopMode
}

type stopMode uint8

const (
	running stopMode = iota
	draining
	closed
)

func newQueue(maxBytes int64) *queue {
	return &queue{maxBytes: maxBytes, wake: make(chan struct{}, 1), filled: make(chan struct{}, 1), stopping: make(chan struct{})}
}

// add queues a record, and reports whether it has: once the store is to be closed, nothing
// is queued.
func (q *queue) add(r *journal.Record) bool {
	size := recordSize(r)
	q.mu.Lock()
	if q.mode != running {
		q.mu.Unlock()
		return false
	}
	q.records = append(q.records, r)
	q.bytes += size
	q.appended++
	first, full := len(q.records) == 1, len(q.records) == q.expected
	q.mu.Unlock()
	if first {
		nudge(q.wake)
	}
	if full {
		nudge(q.filled)
	}
	return true
}

// nudge wakes the reader of a channel with room for one, now or later.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// full returns nil if there is room for records. Otherwise it returns a channel that is
// closed when there is room.
func (q *queue) full() (room chan struct{}, isRunning bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes < q.maxBytes {
		return nil, true
	}
	if q.room == nil {
		q.room = make(chan struct{})
	}
	return q.room, q.mode == running
}

// state returns how many records were appended, and whether more can be.
func (q *queue) state() (appended uint64, mode stopMode) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.appended, q.mode
}

// ifRunning calls f unless the store is to be closed. Closing cannot begin during the
// call.
func (q *queue) ifRunning(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mode == running {
		f()
	}
}

// wrote makes room after records have been written.
func (q *queue) wrote(size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= size
	if q.room != nil && q.bytes < q.maxBytes {
		close(q.room)
		q.room = nil
	}
}

// park requests that the writer be parked. The channel that it returns is closed once the
// writer is, or receives the reason why it cannot be; resume must follow. The channel is
// nil if the store is to be closed.
func (q *queue) park() <-chan error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mode != running {
		return nil
	}
	q.parking, q.resumed = make(chan error, 1), make(chan struct{})
	nudge(q.wake)
	return q.parking
}

// tire requests that the writer close its connection, unless it is needed.
func (q *queue) tire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tired = true
	nudge(q.wake)
}

// refusePark answers a pending park: a cut must not wait for as long as the disk fails.
func (q *queue) refusePark(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.parking != nil {
		q.parking <- err
		q.parking = nil
	}
}

// resume lets a parked writer continue.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parking = nil
	if q.resumed != nil {
		close(q.resumed)
		q.resumed = nil
	}
}

// drain makes the writer stop once the queue is empty. It is called once.
func (q *queue) drain() {
	q.mu.Lock()
	q.mode = max(q.mode, draining)
	q.mu.Unlock()
	q.resume()
	close(q.stopping)
}

// close drops what is still queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mode, q.records = closed, nil
}
