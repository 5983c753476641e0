package serve

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// bounds are how much may be under way at the same time.
type bounds struct {
	conns int // of all listeners
	// underWay bounds the requests of all callers, streams included. It is below conns, so
	// that there are connections for new callers.
	underWay int
	streams  int // of events; each has a goroutine and a buffer
	requests int // of one caller
}

// boundsFor returns the bounds for a number of connections.
func boundsFor(conns int) bounds {
	return bounds{conns: conns, underWay: conns * 9 / 10, streams: conns * 11 / 20, requests: conns / 2}
}

// callers knows the requests that are under way. When there are too many, it ends a request of
// the caller with the most, to make room for a caller with fewer. So other callers, however
// many, cannot keep a caller out.
type callers struct {
	bounds
	mu   sync.Mutex // guards the fields below
	of   map[digest][]*underWay
	gone map[digest]bool // tokens that were removed
	all  int
	open int // streams
}

// underWay is a request, or a stream, that is under way.
type underWay struct {
	stream bool
	cancel context.CancelCauseFunc
}

// admit notes that a request is under way until leave is called. The request may be cancelled
// to make room for one of another caller.
func (c *callers) admit(source digest, stream bool, cancel context.CancelCauseFunc) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone[source] {
		return nil, errRevoked
	}
	if len(c.of[source]) >= c.requests {
		return nil, &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("%d requests of this caller are under way", c.requests), Remedy: "wait for an answer, or close a stream"}
	}
	if stream && c.open >= c.streams && !c.makeRoom(source, isStream) {
		return nil, &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("%d streams of events are open", c.streams), Remedy: "close one of them"}
	}
	if c.all >= c.underWay && !c.makeRoom(source, func(*underWay) bool { return true }) {
		return nil, &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("%d requests are under way", c.underWay), Remedy: "wait for an answer, or close a stream"}
	}
	u := &underWay{stream, cancel}
	c.of[source] = append(c.of[source], u)
	c.count(u, 1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remove(source, u)
	}, nil
}

func isStream(u *underWay) bool { return u.stream }

func (c *callers) count(u *underWay, n int) {
	c.all += n
	if u.stream {
		c.open += n
	}
}

// remove forgets a request, unless it has already been forgotten.
func (c *callers) remove(source digest, u *underWay) {
	list := c.of[source]
	i := slices.Index(list, u)
	if i < 0 {
		return
	}
	c.count(u, -1)
	if c.of[source] = slices.Delete(list, i, i+1); len(c.of[source]) == 0 {
		delete(c.of, source)
	}
}

// makeRoom cancels a request of a kind: the newest of the caller that has the most of that
// kind. It returns false, and cancels nothing, unless that caller has more than source will
// have.
func (c *callers) makeRoom(source digest, kind func(*underWay) bool) bool {
	number := func(list []*underWay) (n int) {
		for _, u := range list {
			if kind(u) {
				n++
			}
		}
		return n
	}
	var greedy digest
	most := 0
	for of, list := range c.of {
		if n := number(list); n > most {
			greedy, most = of, n
		}
	}
	if most <= number(c.of[source])+1 {
		return false
	}
	for _, u := range slices.Backward(c.of[greedy]) { // the newest has the least to lose
		if kind(u) {
			c.remove(greedy, u)
			u.cancel(errCrowded)
			return true
		}
	}
	return false
}

// end cancels the requests of tokens that have changed. A token that was removed cannot begin
// further requests, even one that was found valid before.
func (c *callers) end(changed, removed map[digest]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = removed
	for source := range changed {
		for _, u := range c.of[source] {
			u.cancel(errRevoked)
		}
	}
}

// openStreams is the number of open streams.
func (c *callers) openStreams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

var (
	errLoggedOut = refused("the browser is no longer logged in", "open a new link")
	errRevoked   = refused("the token is no longer known", "use a token of the server's token file")
	errEnding    = &abi.Error{Code: abi.Stopped, Message: "the server is ending", Remedy: "try again when it runs again"}
	errCrowded   = &abi.Error{Code: abi.LimitExceeded, Message: "the server is full, and a request of a caller with fewer requests took the place of this one", Remedy: "close streams, and try again"}
)

// begin notes that a request of a caller is under way until end is called. The context also
// ends when the handler does, when the caller's cookie or token is no longer valid, or when
// the server has to make room for another caller.
func (h *Handler) begin(r *http.Request, c caller, stream bool) (ctx context.Context, end func(), err error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	leave := func() {}
	if !trusted(r) {
		if leave, err = h.callers.admit(c.source, stream, cancel); err != nil {
			cancel(err)
			return nil, nil, err
		}
	}
	var expiry <-chan time.Time
	stop := func() {}
	if !c.expires.IsZero() {
		timer := time.NewTimer(c.expires.Sub(h.logins.now()))
		expiry, stop = timer.C, func() { timer.Stop() }
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-h.ending:
			cancel(errEnding)
		case <-c.gone:
			cancel(errLoggedOut)
		case <-expiry:
			cancel(errLoggedOut)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
		stop()
		leave()
	}, nil
}
