package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/operations"
)

const (
	// heartbeat is how often a silent stream sends a comment, so that each side notices
	// when the other has left.
	heartbeat = 15 * time.Second
	// writeTime bounds how long a reader may take to accept a part of a stream.
	writeTime = 30 * time.Second
	// streamBuffer is the number of events that wait for a slow reader by default.
	streamBuffer = 4096
	// maxPart is about how many bytes are sent at a time.
	maxPart = 64 << 10
)

// events streams events until the reader leaves, or the handler ends.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	rights, err := h.caller(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	args, payloads, err := streamArgs(r)
	if err == nil && payloads && rights.Scope < operations.Operate {
		err = refused("payloads need the scope operate", "leave out payload")
	}
	if err != nil {
		fail(w, err)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		fail(w, &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("%d streams of events are open", maxStreams), Remedy: "close one"})
		return
	}
	ctx, cancel := h.during(r.Context())
	defer cancel()
	sub, err := operations.Subscribe(ctx, h.t, rights, args)
	if err != nil {
		fail(w, err)
		return
	}
	defer sub.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s := &stream{w: w, control: http.NewResponseController(w), sub: sub, payloads: payloads}
	s.run(ctx)
}

// listFields are the arguments of subscribe that are lists.
var listFields = map[string]bool{"kinds": true, "creatures": true, "graphs": true, "channels": true}

// streamArgs reads the arguments of subscribe from the query. Last-Event-ID, which a
// browser sends when it connects again, counts more than after.
func streamArgs(r *http.Request) (args json.RawMessage, payloads bool, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, false, &abi.Error{Code: abi.InvalidArgument, Op: "subscribe", Message: "the query is malformed", Remedy: "encode its values", Err: err}
	}
	fields := map[string]any{"buffer": streamBuffer}
	for name, values := range query {
		last := values[len(values)-1]
		switch {
		case name == "payload":
			payloads = last == "1"
		case listFields[name]:
			fields[name] = values
		case name == "buffer":
			n, err := strconv.Atoi(last)
			if err != nil {
				return nil, false, &abi.Error{Code: abi.InvalidArgument, Op: "subscribe", Message: "buffer is not a number", Remedy: "use a number of events"}
			}
			fields[name] = n
		default:
			fields[name] = last
		}
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		fields["after"] = last
	}
	args, err = json.Marshal(fields)
	return args, payloads, err
}

// stream writes the events of a subscription.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	sub      *engine.Subscription
	payloads bool
	part     bytes.Buffer
}

// run writes until the context ends or the reader leaves.
func (s *stream) run(ctx context.Context) {
	s.part.WriteString("retry: 1000\n\n")
	for {
		ob, err := s.next(ctx)
		if err != nil {
			return
		}
		if ob != nil {
			s.add(ob)
		}
		if s.part.Len() < maxPart && ob != nil {
			continue
		}
		if !s.send() {
			return
		}
	}
}

// next returns the next event, or nil if it is time to send the part.
func (s *stream) next(ctx context.Context) (*engine.Observed, error) {
	wait := heartbeat
	if s.part.Len() > 0 {
		wait = 0
	}
	quick, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ob, err := s.sub.Next(quick)
	switch {
	case err == nil:
		return &ob, nil
	case ctx.Err() != nil || quick.Err() == nil:
		return nil, err
	}
	if s.part.Len() == 0 {
		s.part.WriteString(": still here\n\n")
	}
	return nil, nil
}

// add adds an event to the next part.
func (s *stream) add(ob *engine.Observed) {
	r := operations.NewObservedRecord(s.sub, ob)
	if !s.payloads {
		r = r.WithoutContent()
	}
	if r.Cursor != "" {
		fmt.Fprintf(&s.part, "id: %s\n", r.Cursor)
	}
	fmt.Fprintf(&s.part, "event: %s\ndata: ", r.Kind)
	enc := json.NewEncoder(&s.part)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil { // cannot be: the types are of this module
		s.part.WriteString("{}\n")
	}
	s.part.WriteByte('\n')
}

// send sends the part. It reports whether the reader is still there.
func (s *stream) send() bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := s.w.Write(s.part.Bytes())
	if s.part.Reset(); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
