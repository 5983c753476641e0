package policy

// pool keeps idle runtimes. It may be used from any goroutine.
type pool struct {
	scripts int // how many scripts a runtime has
	idle    chan *isolate
}

// maxIdle bounds how many idle runtimes are kept; each takes a few hundred kilobytes.
// More concurrent calls make runtimes that are discarded.
const maxIdle = 16

func newPool(scripts int) *pool {
	return &pool{scripts: scripts, idle: make(chan *isolate, maxIdle)}
}

func (p *pool) acquire() (*isolate, error) {
	select {
	case i := <-p.idle:
		return i, nil
	default:
		return newIsolate(p.scripts)
	}
}

// release takes back a runtime that is no longer used and not spoilt.
func (p *pool) release(i *isolate) {
	select {
	case p.idle <- i:
	default:
	}
}
