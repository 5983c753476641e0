package policy

import (
	"errors"
	"sync"
	"time"
)

// idleTime is how long a process without work is kept for the next judgement.
const idleTime = time.Minute

// Processes owns the processes in which policies run; see [Set.In]. A process that has had
// no work for a minute ends. The zero value is ready, and the methods may be called from
// any goroutine.
type Processes struct {
	mu     sync.Mutex
	users  map[*children]struct{} // sets that may have processes
	closed bool
	kept   time.Duration // idleTime if it is 0
}

// Close ends all processes as soon as they are not in use. Judgements that begin later
// fail.
func (p *Processes) Close() {
	p.mu.Lock()
	p.closed = true
	users := make([]*children, 0, len(p.users))
	for c := range p.users {
		users = append(users, c)
	}
	p.mu.Unlock()
	for _, c := range users {
		c.close()
	}
}

// add records that c may have processes from now on.
func (p *Processes) add(c *children) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the engine that runs its processes has been closed")
	}
	if p.users == nil {
		p.users = map[*children]struct{}{}
	}
	p.users[c] = struct{}{}
	return nil
}

// forget records that c has no processes.
func (p *Processes) forget(c *children) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.users, c)
}

func (p *Processes) keptFor() time.Duration {
	if p.kept > 0 {
		return p.kept
	}
	return idleTime
}
