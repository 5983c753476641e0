package serve

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector/webhook"
	"github.com/seed47132306/terrarium/docs/reference"
	"github.com/seed47132306/terrarium/internal/selflimit"
	"github.com/seed47132306/terrarium/operations"
)

// Options configures a [Handler].
type Options struct {
	// Tokens are the tokens that callers may show.
	Tokens []Token
	// Hosts are the host names, without ports, under which requests may come in addition to
	// localhost and the loopback addresses.
	Hosts []string
	// Certificates are the rights of connections with a verified client certificate. With
	// the zero value, these need a token too.
	Certificates operations.Rights
	// Address is that of the page, such as http://localhost:7480. Links with which a browser
	// logs in begin with it; if it is empty, there are none.
	Address string
	// Secure says that requests come over TLS.
	Secure bool
	// Ready reports whether the recipes are applied. Nil means that they are. Until then,
	// webhooks take no requests.
	Ready func() bool
	// Log gets messages about the server. Nil discards them.
	Log *slog.Logger
}

// Handler serves a terrarium. It may be called from any goroutine.
type Handler struct {
	t       *terrarium.Terrarium
	o       Options
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	logins  logins
	hub     hub
	tokens  atomic.Pointer[[]Token]
	turns   durations
	callers callers
	conns   *conns        // of all listeners
	ending  chan struct{} // closed by End
	end     sync.Once
}

// NewHandler returns a handler. The caller closes the terrarium after [Handler.End], when
// no request is running.
func NewHandler(t *terrarium.Terrarium, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{
		t: t, o: o, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(), logins: newLogins(),
		ending: make(chan struct{}),
	}
	h.hub.t, h.callers.of = t, map[digest][]*underWay{}
	h.callers.bounds = boundsFor(connsFor(selflimit.OpenFiles()))
	h.conns = newConns(h.callers.conns)
	h.tokens.Store(&o.Tokens)
	h.turns.t, h.turns.now = t, h.logins.now
	h.routes()
	return h
}

// End ends the streams of events, which would otherwise continue until their readers
// leave.
func (h *Handler) End() {
	h.end.Do(func() { close(h.ending) })
	h.turns.stop()
}

// routes fills the mux. Every route says which scope it needs; zero means none.
func (h *Handler) routes() {
	h.mux.HandleFunc(operationRoute, h.operation)
	h.mux.HandleFunc("GET /api/v1/events", h.events)
	h.mux.HandleFunc("GET /api/v1/openapi.json", describe)
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("GET /login", h.login)
	h.mux.HandleFunc("POST /api/v1/login-code", h.loginCode)
	h.mux.HandleFunc("POST /logout", h.logout)
	h.mux.HandleFunc("GET /healthz", healthy)
	h.mux.HandleFunc("GET /readyz", h.ready)
	h.mux.HandleFunc(pageRoute, h.pageFile)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	timed := newTimedWriter(w)
	w = timed
	defer h.recovered(timed, r)
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !trusted(r) {
		if err := h.checkHost(r); err != nil {
			failWith(w, http.StatusMisdirectedRequest, err)
			return
		}
		if err := h.checkOrigin(r); err != nil {
			fail(w, err)
			return
		}
	}
	if strings.HasPrefix(r.URL.Path, webhook.Prefix) { // every method, which a mux could not tell from GET /
		if trusted(r) {
			failWith(w, http.StatusNotFound, &abi.Error{Code: abi.NotFound, Message: "the socket of a session directory has no webhooks", Remedy: "send the request to the address of terrarium serve"})
			return
		}
		if !h.isReady() { // a recipe that is not applied yet may declare the path
			webhook.NotReady(w, r)
			return
		}
		h.t.Connectors().Webhooks().ServeHTTP(w, r)
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		h.unknown(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// recovered answers a request whose handler has panicked, and logs it. An answer that has
// begun is cut off, so that it does not look complete.
func (h *Handler) recovered(w *timedWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	h.o.Log.Error("a request has failed because of a defect", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.begun {
		_ = w.control.SetWriteDeadline(time.Unix(1, 0))
		return
	}
	fail(w, &abi.Error{Code: abi.Internal, Message: "the request has failed because of a defect of the server", Remedy: "report it, with the entry of the server's log"})
}

// Routes of many addresses.
const (
	operationRoute = "POST /api/v1/{operation}"
	pageRoute      = "GET /"
)

// otherMethod returns the method with which the address of a request has a route; "" if it has
// none.
func (h *Handler) otherMethod(r *http.Request) string {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, route := h.mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL})
		known := route != "" && route != pageRoute
		if route == operationRoute {
			name := strings.TrimPrefix(r.URL.Path, "/api/v1/")
			known = slices.ContainsFunc(operations.Table(), func(o operations.Operation) bool { return o.Name == name })
		}
		if known && method != r.Method {
			return method
		}
	}
	return ""
}

// unknown answers a request without a route.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	if method := h.otherMethod(r); method != "" {
		w.Header().Set("Allow", method)
		failWith(w, http.StatusMethodNotAllowed, &abi.Error{
			Code: abi.InvalidArgument, Message: "the address " + r.URL.Path + " does not answer the method " + r.Method, Remedy: "use " + method,
		})
		return
	}
	failWith(w, http.StatusNotFound, &abi.Error{
		Code: abi.NotFound, Message: "there is nothing to " + r.Method + " at this address",
		Remedy: "see GET /api/v1/openapi.json; operations are called with POST /api/v1/OPERATION",
	})
}

// checkHost refuses unknown host names. A page of another site can make its name resolve
// to a loopback address, and is then of the same origin as this server; only the name
// shows it.
func (h *Handler) checkHost(r *http.Request) error {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || slices.Contains(h.o.Hosts, name) {
		return nil
	}
	if ip := net.ParseIP(name); ip != nil && (ip.IsLoopback() || ip.Equal(localIP(r))) {
		return nil
	}
	return refused("the server does not answer to this host name", "use the address that it printed, or allow the name with --host NAME")
}

// localIP is the address at which a request arrived.
func localIP(r *http.Request) net.IP {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return nil
	}
	return addr.IP
}

// checkOrigin refuses requests that a browser sends on behalf of a page of another site.
func (h *Handler) checkOrigin(r *http.Request) error {
	if err := h.origins.Check(r); err != nil {
		return refused("the request comes from a page of another origin", "use the page of this server")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil // a link on another page
	}
	return refused("the request comes from a page of another origin", "use the page of this server")
}

// bodyTime bounds the time that a request may take to arrive.
const bodyTime = 30 * time.Second

// operation runs an operation of the table.
func (h *Handler) operation(w http.ResponseWriter, r *http.Request) {
	c, err := h.admitted(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	if kind := r.Header.Get("Content-Type"); !jsonType(kind) {
		failWith(w, http.StatusUnsupportedMediaType, &abi.Error{Code: abi.InvalidArgument, Message: "the body is not of the type application/json", Remedy: "send the arguments as a JSON object, with Content-Type: application/json"})
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, operations.MaxRequest))
	if err != nil {
		fail(w, unread(err))
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	keep(r) // not before: bodies that arrive slowly must not keep others out
	ctx, end, err := h.begin(r, c, false)
	if err != nil {
		fail(w, err)
		return
	}
	defer end()
	result, err := operations.DoAs(ctx, h.t, c.rights, r.PathValue("operation"), body)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, result)
}

func jsonType(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// unread describes why a body could not be read.
func unread(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &abi.Error{Code: abi.TooLarge, Message: "the body is too large", Remedy: "send a smaller payload"}
	}
	return &abi.Error{Code: abi.Deadline, Message: "the body did not arrive", Remedy: "send the whole body within 30 seconds"}
}

// describe answers with the description of the interface, which is not secret.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, reference.OpenAPI)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

func (h *Handler) isReady() bool { return h.o.Ready == nil || h.o.Ready() }

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if !h.isReady() {
		fail(w, &abi.Error{Code: abi.Unavailable, Message: "the recipes are not applied yet", Remedy: "try again"})
		return
	}
	healthy(w, r)
}
