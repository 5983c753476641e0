package serve

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
)

// Problem is the JSON form of an error, as RFC 9457 describes it. It has the fields of
// [operations.ErrorRecord] too.
type Problem struct {
	Type   string            `json:"type"`             // `urn:terrarium:error:` and the code
	Title  string            `json:"title"`            // meaning of the code
	Status int               `json:"status"`           // status of the response
	Detail string            `json:"detail"`           // what happened
	Code   string            `json:"code"`             // one of the [error codes](errors.md)
	Remedy string            `json:"remedy,omitempty"` // what to do about it
	IDs    map[string]string `json:"ids,omitempty"`    // ids concerned, by what they name
}

// statuses maps codes to the statuses of responses.
var statuses = map[abi.Code]int{
	abi.InvalidArgument: http.StatusBadRequest,
	abi.NotFound:        http.StatusNotFound,
	abi.AlreadyExists:   http.StatusConflict,
	abi.Ambiguous:       http.StatusConflict,
	abi.NotConnected:    http.StatusConflict,
	abi.NotPrivileged:   http.StatusForbidden,
	abi.Denied:          http.StatusForbidden,
	abi.LimitExceeded:   http.StatusTooManyRequests,
	abi.Conflict:        http.StatusConflict,
	abi.Stopped:         http.StatusConflict,
	abi.Trapped:         http.StatusUnprocessableEntity,
	abi.OutOfFuel:       http.StatusUnprocessableEntity,
	abi.Deadline:        http.StatusGatewayTimeout,
	abi.TooLarge:        http.StatusRequestEntityTooLarge,
	abi.Unsupported:     http.StatusNotImplemented,
	abi.Storage:         http.StatusInternalServerError,
	abi.Unavailable:     http.StatusServiceUnavailable,
	abi.Internal:        http.StatusInternalServerError,
	abi.UnknownOutcome:  http.StatusInternalServerError,
	abi.Failed:          http.StatusUnprocessableEntity,
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) { failWith(w, statuses[abi.CodeOf(err)], err) }

// failWith answers with an error and a status.
func failWith(w http.ResponseWriter, status int, err error) {
	code := abi.CodeOf(err)
	info, _ := code.Info()
	r := operations.NewErrorRecord(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	writeJSON(w, Problem{
		Type: "urn:terrarium:error:" + r.Code, Title: title(info), Status: status,
		Detail: r.Message, Code: r.Code, Remedy: r.Remedy, IDs: r.IDs,
	})
}

// title is the meaning of a code for callers over HTTP, which pass no memory.
func title(info abi.CodeInfo) string {
	if info.Code == abi.InvalidArgument {
		return "an argument is malformed or out of range"
	}
	return info.Doc
}

// answer answers with a result.
func answer(w http.ResponseWriter, result any) {
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, result)
}

// writeJSON writes a value. If that fails, the reader has left.
func writeJSON(w http.ResponseWriter, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

func refused(message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.NotPrivileged, Message: message, Remedy: remedy}
}

// timedWriter bounds the time that a reader may take to accept each part of an answer. The
// server itself has no such bound, since streams of events have no end.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool // the answer
}

func newTimedWriter(w http.ResponseWriter) *timedWriter {
	t := &timedWriter{w, http.NewResponseController(w), false}
	t.renew() // the connection may have the deadline of an earlier answer
	return t
}

// Unwrap is for [http.ResponseController].
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) renew() { _ = w.control.SetWriteDeadline(time.Now().Add(writeTime)) } // not every server can

func (w *timedWriter) WriteHeader(status int) {
	w.renew()
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *timedWriter) Write(p []byte) (n int, err error) {
	w.begun = true
	for {
		w.renew()
		part := p[n:min(n+maxPart, len(p))]
		m, err := w.ResponseWriter.Write(part)
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}
