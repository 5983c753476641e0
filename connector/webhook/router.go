package webhook

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
)

// Router passes requests to the sources that take them. Its methods may be called from
// any goroutine.
type Router struct {
	serving  chan struct{} // closed when something serves it
	once     sync.Once
	patience time.Duration // lastWait, except in tests

	mu       sync.RWMutex // guards the rest
	routes   map[string]*route
	declared map[string][]string // paths of the sources of each deployment
}

// lastWait bounds how long the end of a webhook waits until messages that were taken are
// durable, so that their requests get the right answer. It is shorter than the time after
// which a source counts as abandoned.
const lastWait = time.Second

// NewRouter returns a router without sources.
func NewRouter() *Router {
	return &Router{serving: make(chan struct{}), patience: lastWait, routes: map[string]*route{}, declared: map[string][]string{}}
}

// Serving notes that requests can arrive from now on, and returns the router as a
// handler.
func (r *Router) Serving() http.Handler {
	r.once.Do(func() { close(r.serving) })
	return r
}

// Served reports whether requests can come.
func (r *Router) Served() bool {
	select {
	case <-r.serving:
		return true
	default:
		return false
	}
}

// Declare notes which connectors a deployment has, in place of those that it had before.
// While no source takes the requests to a declared path, because it starts, changes or has
// failed, the answer says that they can be sent again. Connectors of other kinds do not
// matter.
func (r *Router) Declare(deployment string, list []connector.Connector) {
	var paths []string
	for _, c := range list {
		if s, ok := c.(*source); ok {
			paths = append(paths, s.Path)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.declared, deployment)
	if len(paths) > 0 {
		r.declared[deployment] = paths
	}
}

// route is a source that runs.
type route struct {
	*source
	port   connector.Port
	window *connector.Window
	busy   sync.WaitGroup  // requests that are under way
	over   context.Context // ends when the route is removed
	late   context.Context // ends when messages that were taken no longer wait to be durable
	end    context.CancelFunc
	giveUp context.CancelFunc
	failed chan error    // has room for the failure that ends the attempt
	bodies chan struct{} // has room for the bodies that are read before their signature is checked
}

// maxUnverified bounds how many bodies of a route may arrive at the same time before
// their signatures are checked.
const maxUnverified = 16

func newRoute(ctx context.Context, s *source, p connector.Port) (*route, error) {
	window, err := connector.NewWindow(p)
	if err != nil {
		return nil, err
	}
	x := &route{source: s, port: p, window: window, bodies: make(chan struct{}, maxUnverified), failed: make(chan error, 1)}
	x.over, x.end = context.WithCancel(ctx)
	x.late, x.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	return x, nil
}

func (r *Router) add(x *route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.routes[x.Path] != nil {
		return &abi.Error{Code: abi.AlreadyExists, Message: "another source takes requests to " + x.Path, Remedy: "give each webhook a path of its own"}
	}
	r.routes[x.Path] = x
	return nil
}

// remove removes a source, and waits for its requests, which then end.
func (r *Router) remove(x *route) {
	r.mu.Lock()
	delete(r.routes, x.Path)
	r.mu.Unlock()
	x.end()
	limit := time.AfterFunc(r.patience, x.giveUp)
	x.busy.Wait()
	limit.Stop()
	x.giveUp()
}

// enter finds the source of a path, and reports whether a recipe declares the path. The
// caller must call busy.Done if there is a source.
func (r *Router) enter(path string) (x *route, declared bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if x = r.routes[path]; x != nil {
		x.busy.Add(1)
		return x, true
	}
	for _, paths := range r.declared {
		if slices.Contains(paths, path) {
			return nil, true
		}
	}
	return nil, false
}

// ServeHTTP implements [http.Handler].
func (r *Router) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	boundRefused(w, q)
	x, declared := r.enter(q.URL.Path)
	switch {
	case x != nil:
		defer x.busy.Done()
		x.serve(w, q)
	case declared:
		fail(w, q, http.StatusServiceUnavailable, unavailable("the webhook takes no requests now"))
	default:
		fail(w, q, http.StatusNotFound, &abi.Error{Code: abi.NotFound, Message: "no webhook has this path", Remedy: "check the path, and that the recipe with the source is applied"})
	}
}

// NotReady answers a request while it is not known yet which paths the recipes declare.
func NotReady(w http.ResponseWriter, q *http.Request) {
	boundRefused(w, q)
	fail(w, q, http.StatusServiceUnavailable, unavailable("the webhooks are starting"))
}
