package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
)

const maxKey = 256

func (x *route) serve(w http.ResponseWriter, q *http.Request) {
	if q.Method != x.Method {
		w.Header().Set("Allow", x.Method)
		fail(w, q, http.StatusMethodNotAllowed, invalid("the method of this webhook is "+x.Method, "use it"))
		return
	}
	// A bearer is checked before the body is read; a signature needs the body.
	if x.Auth == bearer && !x.knowsSecret(q) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		x.unauthorized(w, q)
		return
	}
	if !x.acceptsType(q) {
		fail(w, q, http.StatusUnsupportedMediaType, invalid("the webhook does not take bodies of this type", "send one of "+strings.Join(x.ContentTypes, ", ")))
		return
	}
	if q.Header.Get("Content-Encoding") != "" {
		fail(w, q, http.StatusUnsupportedMediaType, invalid("the webhook takes no compressed bodies", "send the body as it is"))
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
			fail(w, q, http.StatusServiceUnavailable, unavailable("too many bodies are arriving at the same time"))
			return
		}
	}
	body, err := readBody(x.over, w, q, x.MaxBody)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, q, http.StatusRequestEntityTooLarge, &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the body has more than %d bytes", x.MaxBody), Remedy: "send a smaller one"})
		return
	case errors.Is(err, errCut):
		fail(w, q, http.StatusServiceUnavailable, unavailable(changing))
		return
	case late(err):
		fail(w, q, http.StatusRequestTimeout, &abi.Error{Code: abi.Deadline, Message: "the body did not arrive", Remedy: fmt.Sprintf("send the whole body within %.0f seconds", bodyTime.Seconds())})
		return
	case err != nil:
		fail(w, q, http.StatusBadRequest, invalid("the body is malformed", "send the body as HTTP requires"))
		return
	}
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
		fail(w, q, http.StatusBadRequest, invalid(fmt.Sprintf("a request has one %s of 1 to %d bytes, or none", x.KeyHeader, maxKey), "correct the header"))
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
	repeated, err := x.send(q, m, keys)
	if err != nil {
		x.refuse(w, q, err)
		return
	}
	answer(w, q, http.StatusAccepted, "application/json", map[string]bool{"accepted": true, "repeated": repeated})
}

// send sends a message, and waits until it is durable. keys has its key, if there is one.
func (x *route) send(q *http.Request, m connector.Message, keys []string) (repeated bool, err error) {
	ctx, cancel := context.WithCancelCause(q.Context())
	defer cancel(nil)
	defer context.AfterFunc(x.over, func() { cancel(unavailable(changing)) })()
	once := func(producer string, offset uint64) (duplicate bool, err error) {
		m.Producer, m.Offset = producer, offset
		receipt, err := x.port.Send(ctx, m)
		if err != nil {
			return false, err
		}
		return receipt.Duplicate(), x.durable(q.Context(), receipt)
	}
	if len(keys) == 0 {
		_, err = once("", 0)
		return false, err
	}
	return x.window.Once(keys[0], once)
}

// durable waits until a message is durable, even if the webhook ends meanwhile, because the
// message is taken. If that takes too long, the outcome is unknown.
func (x *route) durable(ctx context.Context, receipt connector.Receipt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.late, cancel)()
	err := receipt.Wait(ctx)
	if err != nil && abi.CodeOf(err) != abi.UnknownOutcome {
		return &abi.Error{Code: abi.UnknownOutcome, Message: "the message was accepted, but may be lost", Err: err}
	}
	return err
}

// refuse answers a request whose message was not taken, or perhaps not.
func (x *route) refuse(w http.ResponseWriter, q *http.Request, err error) {
	x.port.Log().Debug("a webhook does not take a message", "path", x.Path, "error", err)
	switch {
	case connector.Final(err):
		x.port.Refused(err)
		fail(w, q, statusOf(err), err)
		return
	case abi.CodeOf(err) == abi.UnknownOutcome:
		fail(w, q, http.StatusServiceUnavailable, &abi.Error{Code: abi.UnknownOutcome, Message: "it is not known whether the message was taken", Remedy: again})
		return
	case abi.CodeOf(err) == abi.NotFound: // the channel was removed, which the status reports
		select {
		case x.failed <- err:
		default:
		}
	}
	message := "the message was not taken"
	if x.over.Err() != nil {
		message = changing
	}
	fail(w, q, http.StatusServiceUnavailable, unavailable(message))
}
