package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
)

// Router passes requests to the sources that take them. Its methods may be called from
// any goroutine.
type Router struct {
	serving chan struct{} // closed when something serves it
	once    sync.Once

	mu     sync.RWMutex // guards routes
	routes map[string]*route
}

// NewRouter returns a router without sources.
func NewRouter() *Router { return &Router{serving: make(chan struct{}), routes: map[string]*route{}} }

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

// route is a source that runs.
type route struct {
	*source
	port   connector.Port
	window *connector.Window
	busy   sync.WaitGroup  // requests that are under way
	over   context.Context // ends when the route is removed
	failed chan error      // has room for the failure that ends the attempt
	bodies chan struct{}   // has room for the bodies that are read before their signature is checked
}

// maxUnverified bounds how many bodies of a route may arrive at the same time before
// their signatures are checked.
const maxUnverified = 16

func (r *Router) add(x *route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.routes[x.Path] != nil {
		return &abi.Error{Code: abi.AlreadyExists, Message: "another source takes requests to " + x.Path, Remedy: "give each webhook a path of its own"}
	}
	r.routes[x.Path] = x
	return nil
}

// remove removes a source, and waits for its requests, which end when over does.
func (r *Router) remove(x *route) {
	r.mu.Lock()
	delete(r.routes, x.Path)
	r.mu.Unlock()
	x.busy.Wait()
}

// enter finds the source of a path. The caller must call busy.Done.
func (r *Router) enter(path string) *route {
	r.mu.RLock()
	defer r.mu.RUnlock()
	x := r.routes[path]
	if x != nil {
		x.busy.Add(1)
	}
	return x
}

// ServeHTTP implements [http.Handler].
func (r *Router) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	x := r.enter(q.URL.Path)
	if x == nil {
		fail(w, http.StatusNotFound, &abi.Error{Code: abi.NotFound, Message: "no webhook has this path", Remedy: "check the path, and that the recipe with the source is applied"})
		return
	}
	defer x.busy.Done()
	ctx, cancel := context.WithCancelCause(q.Context())
	defer cancel(nil)
	gone := &abi.Error{Code: abi.Unavailable, Message: "the webhook is ending or changing", Remedy: "send the request again, with the same key"}
	stop := context.AfterFunc(x.over, func() {
		cancel(gone)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // ends a body that is slow
	})
	defer stop()
	x.serve(w, q.WithContext(ctx))
}

// bodyTime bounds the time that a body may take to arrive.
const (
	bodyTime = 30 * time.Second
	// refuseTime bounds how long the server reads the body of a refused request, to keep the
	// connection.
	refuseTime = time.Second
	maxKey     = 256
)

func (x *route) serve(w http.ResponseWriter, q *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refuseTime)) // not every server can
	if q.Method != x.Method {
		w.Header().Set("Allow", x.Method)
		fail(w, http.StatusMethodNotAllowed, invalid("the method of this webhook is "+x.Method, "use it"))
		return
	}
	// A bearer is checked before the body is read; a signature needs the body.
	if x.Auth == bearer && !x.knowsSecret(q) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		x.unauthorized(w, q)
		return
	}
	if !x.acceptsType(q) {
		fail(w, http.StatusUnsupportedMediaType, invalid("the webhook does not take bodies of this type", "send one of "+strings.Join(x.ContentTypes, ", ")))
		return
	}
	if q.Header.Get("Content-Encoding") != "" {
		fail(w, http.StatusUnsupportedMediaType, invalid("the webhook takes no compressed bodies", "send the body as it is"))
		return
	}
	if x.Auth == signature {
		if _, ok := x.givenSignature(q); !ok {
			x.unauthorized(w, q)
			return
		}
		select {
		case x.bodies <- struct{}{}:
			defer func() { <-x.bodies }()
		default:
			fail(w, http.StatusServiceUnavailable, &abi.Error{Code: abi.Unavailable, Message: "too many bodies are arriving at the same time", Remedy: "send the request again, with the same key"})
			return
		}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	if x.over.Err() != nil { // which may have set a deadline before
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, x.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the body has more than %d bytes", x.MaxBody), Remedy: "send a smaller one"})
		return
	case err != nil && x.over.Err() != nil:
		fail(w, http.StatusServiceUnavailable, context.Cause(q.Context()))
		return
	case err != nil:
		fail(w, http.StatusRequestTimeout, &abi.Error{Code: abi.Deadline, Message: "the body did not arrive", Remedy: "send the whole body within 30 seconds"})
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if x.Auth == signature && !x.signed(q, body) {
		x.unauthorized(w, q)
		return
	}
	x.take(w, q, body)
}

// take sends the message of a request, and answers once it is durable.
func (x *route) take(w http.ResponseWriter, q *http.Request, body []byte) {
	keys := q.Header.Values(x.KeyHeader)
	if len(keys) > 1 || len(keys) == 1 && (len(keys[0]) > maxKey || keys[0] == "") {
		fail(w, http.StatusBadRequest, invalid(fmt.Sprintf("a request has one %s of 1 to %d bytes, or none", x.KeyHeader, maxKey), "correct the header"))
		return
	}
	m := connector.Message{Payload: body}
	for _, name := range x.Headers {
		if v := q.Header.Get(name); v != "" {
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[strings.ToLower(name)] = strings.ToValidUTF8(v, "\uFFFD")
		}
	}
	send := func(producer string, offset uint64) (duplicate bool, err error) {
		m.Producer, m.Offset = producer, offset
		receipt, err := x.port.Send(q.Context(), m)
		if err != nil {
			return false, err
		}
		return receipt.Duplicate(), receipt.Wait(q.Context())
	}
	var repeated bool
	var err error
	if len(keys) == 1 {
		repeated, err = x.window.Once(keys[0], send)
	} else {
		_, err = send("", 0)
	}
	if err != nil {
		switch {
		case connector.Final(err):
			x.port.Refused(err)
		case abi.CodeOf(err) == abi.NotFound: // the channel was removed, which the status reports
			select {
			case x.failed <- err:
			default:
			}
		}
		fail(w, statusOf(err), err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]bool{"accepted": true, "repeated": repeated}) // the sender may have left
}

// statusOf is the status for a message that was not taken: from 500 on, sending it again may
// help.
func statusOf(err error) int {
	switch abi.CodeOf(err) {
	case abi.Denied:
		return http.StatusForbidden
	case abi.TooLarge:
		return http.StatusRequestEntityTooLarge
	case abi.InvalidArgument:
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

func (x *route) unauthorized(w http.ResponseWriter, q *http.Request) {
	x.port.Log().Debug("a webhook refuses a request without the secret", "path", x.Path, "from", q.RemoteAddr)
	remedy := "send the header Authorization: Bearer SECRET"
	if x.Auth == signature {
		remedy = "send the HMAC-SHA-256 of the body in the header " + x.SignatureHeader
	}
	fail(w, http.StatusUnauthorized, &abi.Error{Code: abi.NotPrivileged, Message: "the request does not prove that its sender knows the secret of the webhook", Remedy: remedy})
}

// knowsSecret compares hashes, so that the time does not depend on the secret or its length.
func (x *route) knowsSecret(q *http.Request) bool {
	values := q.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(x.Secret))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// givenSignature is the signature of a request, unless it is missing or malformed.
func (x *route) givenSignature(q *http.Request) ([]byte, bool) {
	values := q.Header.Values(x.SignatureHeader)
	if len(values) != 1 {
		return nil, false
	}
	given, err := hex.DecodeString(strings.TrimPrefix(values[0], "sha256="))
	return given, err == nil && len(given) == sha256.Size
}

// signed reports whether a body has the right signature.
func (x *route) signed(q *http.Request, body []byte) bool {
	given, ok := x.givenSignature(q)
	if !ok {
		return false
	}
	mac := hmac.New(sha256.New, []byte(x.Secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}

func (x *route) acceptsType(q *http.Request) bool {
	if len(x.ContentTypes) == 0 {
		return true
	}
	kind, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	return err == nil && slices.Contains(x.ContentTypes, kind)
}

func invalid(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Message: message, Remedy: remedy}
}

// problem is the body of an error, as RFC 9457 describes it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Remedy string `json:"remedy,omitempty"`
}

// fail answers with an error. The text names no creatures or sessions, because senders
// should not learn about these.
func fail(w http.ResponseWriter, status int, err error) {
	code := abi.CodeOf(err)
	p := problem{Type: "urn:terrarium:error:" + code.String(), Title: http.StatusText(status), Status: status, Detail: "the message was not taken", Code: code.String()}
	var typed *abi.Error
	if errors.As(err, &typed) {
		p.Detail, p.Remedy = typed.Message, typed.Remedy
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // the sender may have left
}
