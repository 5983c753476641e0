package sqlitestore

import "sync"

const (
	// checkpointBytes is roughly how much is written to the write-ahead log of a store before
	// it is emptied into the file, in the background.
	checkpointBytes = 8 << 20

	// catalogueCommitBytes is roughly what a commit of the catalogue writes to its log.
	catalogueCommitBytes = 40 << 10

	// storeCommitBytes is roughly what a commit of a store writes to its log besides its
	// records: a log has whole pages, and a commit of one turn changes eight of them.
	storeCommitBytes = 32 << 10
)

// checkpoints empties write-ahead logs, one after another. A checkpoint within a commit
// would delay every caller that waits for that commit.
type checkpoints struct {
	wear  *wear
	mu    sync.Mutex
	bytes map[string]int64 // appended since the last checkpoint
	due   []string
	busy  string     // the store that is being worked on
	idle  *sync.Cond // busy has become empty; uses mu
	wake  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

func startCheckpoints(w *wear) *checkpoints {
	c := &checkpoints{
		wear: w, bytes: map[string]int64{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	c.idle = sync.NewCond(&c.mu)
	go c.run()
	return c
}

// wrote records that a store has grown.
func (c *checkpoints) wrote(path string, size int64) {
	c.mu.Lock()
	c.bytes[path] += size
	due := c.bytes[path] >= checkpointBytes
	c.mu.Unlock()
	if due {
		c.ask(path)
	}
}

// ask requests that the log of a store be emptied, whatever its size.
func (c *checkpoints) ask(path string) {
	c.mu.Lock()
	_, open := c.bytes[path]
	if open {
		c.bytes[path] = 0
		c.due = append(c.due, path)
	}
	c.mu.Unlock()
	if open {
		nudge(c.wake)
	}
}

// forget removes a store that is being closed from the list, and waits until its file is
// no longer in use.
func (c *checkpoints) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.bytes, path)
	for c.busy == path {
		c.idle.Wait()
	}
}

// next ends the work on one store and chooses another.
func (c *checkpoints) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = ""
	c.idle.Broadcast()
	for len(c.due) > 0 {
		path := c.due[0]
		c.due = c.due[1:]
		if _, open := c.bytes[path]; open {
			c.busy = path
			return path, true
		}
	}
	return "", false
}

func (c *checkpoints) run() {
	defer close(c.done)
	for {
		if path, ok := c.next(); ok {
			c.wear.checkpoint(path)
			continue
		}
		select {
		case <-c.wake:
		case <-c.stop:
			return
		}
	}
}

func (c *checkpoints) close() {
	close(c.stop)
	<-c.done
}
