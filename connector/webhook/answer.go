package webhook

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/seed47132306/terrarium/abi"
)

// again is the remedy of senders when a message was not taken.
const again = "send the request again, with the same key"

// changing describes a webhook that a recipe has changed or removed.
const changing = "the webhook is ending or changing"

func unavailable(message string) error {
	return &abi.Error{Code: abi.Unavailable, Message: message, Remedy: again}
}

func invalid(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Message: message, Remedy: remedy}
}

// statusOf is the status for a message that was refused for good.
func statusOf(err error) int {
	switch abi.CodeOf(err) {
	case abi.Denied:
		return http.StatusForbidden
	case abi.TooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
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

// retryAfter is how many seconds senders should wait. Most changes take less.
const retryAfter = "1"

// fail answers with an error. The text names no creatures or sessions, because senders
// should not learn about these.
func fail(w http.ResponseWriter, q *http.Request, status int, err error) {
	code := abi.CodeOf(err)
	p := problem{Type: "urn:terrarium:error:" + code.String(), Title: http.StatusText(status), Status: status, Detail: "the message was not taken", Code: code.String()}
	var typed *abi.Error
	if errors.As(err, &typed) {
		p.Detail, p.Remedy = typed.Message, typed.Remedy
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	answer(w, q, status, "application/problem+json", p)
}

// answer answers with a value as JSON.
func answer(w http.ResponseWriter, q *http.Request, status int, kind string, value any) {
	w.Header().Set("Content-Type", kind)
	if q.Context().Err() != nil {
		lastOfConnection(w, q)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the sender may have left
}

// lastOfConnection makes an answer the last one of its connection. With HTTP/2, the fate of
// a request does not concern the others of its connection.
func lastOfConnection(w http.ResponseWriter, q *http.Request) {
	if q.ProtoMajor < 2 {
		w.Header().Set("Connection", "close")
	}
}
