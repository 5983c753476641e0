package policy

// pool keeps runtimes for later. It may be used from any goroutine.
type pool struct {
	scripts int // how many a runtime has to know
	idle    chan *isolate
}

// maxIdle bounds how many runtimes are kept for later; each is a few hundred
// kilobytes. More calls at once make runtimes that are thrown away.
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

// release takes a runtime back that nobody uses any more, and that is not
// spoilt.
func (p *pool) release(i *isolate) {
	select {
	case p.idle <- i:
	default:
	}
}
