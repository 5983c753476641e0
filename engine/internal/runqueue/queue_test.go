package runqueue

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// job is an element of the queue. Its size is not zero, so that each has its
// own address.
type job struct{ passed int }

// TestQueueKeepsEverything proves that every element that is added to any lane is taken exactly
// once, by any worker, and that Next returns nil only if the queue is empty.
func TestQueueKeepsEverything(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		q := New[job]()
		lanes := []*Lane[job]{nil} // the shared one, for push
		for range 1 + r.IntN(4) {
			lanes = append(lanes, q.AddLane())
		}
		inside := map[*job]bool{}
		for range 2000 {
			if r.IntN(3) == 0 {
				put := make([]*job, r.IntN(8))
				for i := range put {
					put[i] = &job{}
					inside[put[i]] = true
				}
				q.Push(lanes[r.IntN(len(lanes))], put...)
				continue
			}
			l := lanes[1+r.IntN(len(lanes)-1)]
			l.Chose()
			j := q.Next(l)
			if (j != nil) != (len(inside) > 0) || (j != nil && !inside[j]) {
				t.Fatalf("seed %d: Next returns %p with %d jobs inside", seed, j, len(inside))
			}
			delete(inside, j)
		}
		q.Close()
		for j := range q.Rest() {
			if !inside[j] {
				t.Fatalf("seed %d: Rest has a job that is not inside", seed)
			}
			delete(inside, j)
		}
		if len(inside) > 0 {
			t.Fatalf("seed %d: %d jobs were lost", seed, len(inside))
		}
	}
}

// TestQueueForgetsNobody proves that a worker that always has jobs of its own also takes the
// shared jobs, and those of a worker that is stuck in a turn.
func TestQueueForgetsNobody(t *testing.T) {
	q := New[job]()
	stuck, busy := q.AddLane(), q.AddLane()
	waiting := map[*job]bool{}
	for _, l := range []*Lane[job]{stuck, nil} {
		for range 100 {
			j := &job{}
			waiting[j] = true
			q.Push(l, j)
		}
	}
	own := &job{}
	q.Push(busy, own, &job{}, &job{})
	choices := 0
	for ; len(waiting) > 0 && choices < 10_000; choices++ {
		busy.Chose()
		j := q.Next(busy)
		if !waiting[j] {
			q.Push(busy, j)
		}
		delete(waiting, j)
	}
	// Each look at other lanes takes half of their jobs, up to the maximum.
	if most := 20 * lookAround; len(waiting) > 0 || choices > most {
		t.Errorf("%d jobs still wait after %d choices; want none after at most %d", len(waiting), choices, most)
	}
}

// TestQueueWakesWorkers proves that no worker stays parked while a lane has
// elements: all elements are taken, although the workers park repeatedly.
func TestQueueWakesWorkers(t *testing.T) {
	const workers, each = 4, 5000
	q := New[job]()
	lanes := make([]*Lane[job], workers)
	for i := range lanes {
		lanes[i] = q.AddLane()
	}
	var pending, done sync.WaitGroup
	for i, l := range lanes {
		done.Go(func() {
			for j := q.Pop(l); j != nil; j = q.Pop(l) {
				l.Chose()
				if j.passed++; j.passed < 4 {
					q.Push(lanes[(i+j.passed)%workers], j) // to another lane
					continue
				}
				pending.Done()
			}
		})
	}
	for i := range each {
		pending.Add(1)
		q.Push(nil, &job{})
		if i%10 == 0 {
			pending.Wait() // all are parked, or about to
		}
	}
	pending.Wait()
	q.Close()
	done.Wait()
}

// TestBorrowedPlaces proves that workers and borrowers together are never more than the
// workers, that an element added while places are lent is taken, and that Pop of a closed
// queue waits for the last borrower.
func TestBorrowedPlaces(t *testing.T) {
	const workers, each = 2, 2000
	q := New[job]()
	var running, highest, lends, pending atomic.Int64
	enter := func() {
		if n := running.Add(1); n > highest.Load() {
			highest.Store(n)
		}
		runtime.Gosched()
	}
	allTaken := func() {
		for pending.Load() > 0 {
			runtime.Gosched()
		}
	}
	var done, borrowers sync.WaitGroup
	lanes := []*Lane[job]{q.AddLane(), q.AddLane()}
	for _, l := range lanes {
		done.Go(func() {
			for q.Pop(l) != nil {
				enter()
				running.Add(-1)
				pending.Add(-1)
			}
		})
	}
	for range 4 {
		borrowers.Go(func() {
			for range each {
				if q.Borrow() {
					lends.Add(1)
					enter()
					if lends.Load()%8 == 0 {
						pending.Add(1)
						q.Push(nil, &job{}) // a worker takes it once a place is back
					}
					running.Add(-1)
					q.Return()
				}
				runtime.Gosched()
			}
		})
	}
	for range each {
		pending.Add(1)
		q.Push(nil, &job{})
		allTaken()
	}
	borrowers.Wait()
	allTaken()
	if highest.Load() > workers || lends.Load() == 0 {
		t.Errorf("%d ran at a time instead of %d workers, and %d places were lent", highest.Load(), workers, lends.Load())
	}
	for !q.Borrow() {
		runtime.Gosched() // until a worker is parked again
	}
	q.Close()
	ended := make(chan struct{})
	go func() { done.Wait(); close(ended) }()
	select {
	case <-ended:
		t.Error("all workers have ended while a place is lent")
	default:
	}
	if q.Borrow() {
		t.Error("a closed queue lends a place")
	}
	q.Return()
	<-ended
}

// TestAParkedWorkerIsWokenForMovedElements parks a worker while another worker moves elements
// between lanes, at a moment when these are in no lane.
func TestAParkedWorkerIsWokenForMovedElements(t *testing.T) {
	q := New[job]()
	a, b := q.AddLane(), q.AddLane()
	first, second := &job{}, &job{}
	q.Push(nil, first, second, &job{})
	got := q.shared.half(make([]*job, 0, mostStolen))
	if len(got) != 2 || got[0] != first || q.shared.pop() == nil {
		t.Fatalf("half of the lane is %d elements", len(got))
	}
	popped := make(chan *job)
	go func() { popped <- q.Pop(b) }()
	for parked(q.places.Load()) == 0 {
		runtime.Gosched()
	}
	q.put(a, got[1:])
	if x := <-popped; x != second {
		t.Errorf("the parked worker got %p, want %p", x, second)
	}
	q.Close()
}

// TestAsManyRunAsThereAreWorkers has elements that run until as many run as there are workers.
// That happens only if no wake-up is lost.
func TestAsManyRunAsThereAreWorkers(t *testing.T) {
	const workers, rounds = 4, 3000
	q := New[sync.WaitGroup]()
	lanes := make([]*Lane[sync.WaitGroup], workers)
	for i := range lanes {
		lanes[i] = q.AddLane()
	}
	var all sync.WaitGroup
	for _, lane := range lanes {
		all.Go(func() {
			for x := q.Pop(lane); x != nil; x = q.Pop(lane) {
				lane.Chose()
				x.Done()
				x.Wait()
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range rounds {
		// The queue does not check for duplicates, so one barrier can be in it several times.
		begun := make([]*sync.WaitGroup, workers)
		var barrier sync.WaitGroup
		barrier.Add(workers)
		for i := range begun {
			begun[i] = &barrier
		}
		for at := 0; at < workers; {
			n := min(1+r.IntN(workers), workers-at)
			q.Push(nil, begun[at:at+n]...)
			at += n
		}
		barrier.Wait()
	}
	q.Close()
	all.Wait()
}
