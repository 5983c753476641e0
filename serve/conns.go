package serve

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// maxConns bounds the connections, each of which has some tens of kilobytes.
const maxConns = 2000

// connsFor returns the bound on connections of a process that may have a number of files open,
// or any number if that is -1. Half of the files are left to the stores.
func connsFor(files int64) int {
	if files < 0 {
		return maxConns
	}
	return int(min(maxConns, max(files/2, fewestConns)))
}

// fewestConns suffices for a page and some callers.
const fewestConns = 20

// conns bounds the number of connections. If there are too many, it closes the one that has
// had no request with valid credentials for the longest time. So neither idle connections
// nor requests that arrive slowly keep others out.
type conns struct {
	most int

	mu      sync.Mutex // guards the fields below
	waiting *list.List // of net.Conn, the one that has waited longest first
	places  map[net.Conn]*list.Element
	all     map[net.Conn]bool
}

func newConns(most int) *conns {
	return &conns{most: most, waiting: list.New(), places: map[net.Conn]*list.Element{}, all: map[net.Conn]bool{}}
}

// note is the hook ConnState of a server.
func (c *conns) note(conn net.Conn, state http.ConnState) {
	if surplus := c.update(conn, state); surplus != nil {
		_ = surplus.Close() // its server notices
	}
}

// update notes the state of a connection. It returns one to close, if there are too many.
func (c *conns) update(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateActive {
		return nil
	}
	c.forget(conn)
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.all, conn)
		return nil
	}
	c.places[conn] = c.waiting.PushBack(conn)
	c.all[conn] = true
	if len(c.all) <= c.most {
		return nil
	}
	surplus = c.waiting.Front().Value.(net.Conn)
	c.forget(surplus)
	delete(c.all, surplus)
	return surplus
}

// forget removes a connection from those that wait.
func (c *conns) forget(conn net.Conn) {
	if place := c.places[conn]; place != nil {
		c.waiting.Remove(place)
		delete(c.places, conn)
	}
}

// place is where a request finds its connection.
type place struct {
	c    *conns
	conn net.Conn
}

type placeKey struct{}

// context is the hook ConnContext of a server.
func (c *conns) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, place{c, conn})
}

// keep notes that the connection of a request has a caller with valid credentials, so that
// it is not closed for others until the request is answered.
func keep(r *http.Request) {
	p, ok := r.Context().Value(placeKey{}).(place)
	if !ok {
		return
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.forget(p.conn)
}
