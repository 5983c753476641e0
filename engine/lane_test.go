package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestRunQueueKeepsEverything proves that whatever is put in any lane comes out of
// the queue exactly once, whichever workers ask, and that next answers nothing only
// when there is nothing.
func TestRunQueueKeepsEverything(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		q := newRunQueue()
		lanes := []*lane{nil} // the shared one, for push
		for range 1 + r.IntN(4) {
			lanes = append(lanes, q.addLane())
		}
		inside := map[*creature]bool{}
		for range 2000 {
			if r.IntN(3) == 0 {
				cs := make([]*creature, r.IntN(8))
				for i := range cs {
					cs[i] = &creature{}
					inside[cs[i]] = true
				}
				q.push(lanes[r.IntN(len(lanes))], cs...)
				continue
			}
			l := lanes[1+r.IntN(len(lanes)-1)]
			l.chosen.Add(1)
			c := q.next(l)
			if (c != nil) != (len(inside) > 0) || (c != nil && !inside[c]) {
				t.Fatalf("seed %d: next answers %p with %d creatures inside", seed, c, len(inside))
			}
			delete(inside, c)
		}
		q.close()
		for c := range q.rest() {
			if !inside[c] {
				t.Fatalf("seed %d: rest has a creature that is not inside", seed)
			}
			delete(inside, c)
		}
		if len(inside) > 0 {
			t.Fatalf("seed %d: %d creatures were lost", seed, len(inside))
		}
	}
}

// TestRunQueueForgetsNobody proves that a worker that never runs out of creatures of
// its own comes to those of a worker that is stuck in a turn, and to the shared ones.
func TestRunQueueForgetsNobody(t *testing.T) {
	q := newRunQueue()
	stuck, busy := q.addLane(), q.addLane()
	waiting := map[*creature]bool{}
	for _, l := range []*lane{stuck, nil} {
		for range 100 {
			c := &creature{}
			waiting[c] = true
			q.push(l, c)
		}
	}
	own := &creature{}
	q.push(busy, own, &creature{}, &creature{})
	choices := 0
	for ; len(waiting) > 0 && choices < 10_000; choices++ {
		busy.chosen.Add(1)
		c := q.next(busy)
		if !waiting[c] {
			q.push(busy, c)
		}
		delete(waiting, c)
	}
	// In each look around it gets a half, or all it can carry.
	if most := 20 * lookAround; len(waiting) > 0 || choices > most {
		t.Errorf("%d creatures still wait after %d choices; at most %d choices are due", len(waiting), choices, most)
	}
}

// TestRunQueueWakesWorkers proves that no worker stays parked while there is
// something in a lane: all that is put in comes out, although the workers park again
// and again.
func TestRunQueueWakesWorkers(t *testing.T) {
	const workers, each = 4, 5000
	q := newRunQueue()
	lanes := make([]*lane, workers)
	for i := range lanes {
		lanes[i] = q.addLane()
	}
	var pending, done sync.WaitGroup
	for i, l := range lanes {
		done.Go(func() {
			for c := q.pop(l); c != nil; c = q.pop(l) {
				l.chosen.Add(1)
				if c.attempt++; c.attempt < 4 {
					q.push(lanes[(i+c.attempt)%workers], c) // on to another lane
					continue
				}
				pending.Done()
			}
		})
	}
	for i := range each {
		pending.Add(1)
		q.push(nil, &creature{})
		if i%10 == 0 {
			pending.Wait() // all are parked, or about to
		}
	}
	pending.Wait()
	q.close()
	done.Wait()
}
