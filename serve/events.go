package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

const (
	// heartbeat is how often a silent stream sends a comment, so that each side notices
	// when the other has left.
	heartbeat = 15 * time.Second
	// writeTime bounds how long a reader may take to accept a part of an answer.
	writeTime = 30 * time.Second
	// streamBuffer is the number of events that wait for a slow reader by default.
	streamBuffer = 4096
	// maxPart is about how many bytes are sent at a time.
	maxPart = 64 << 10
)

// events streams events until the reader leaves, or the handler ends.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err != nil {
		unauthorized(w, err)
		return
	}
	rights := c.rights
	args, payloads, err := streamArgs(r)
	if err == nil && payloads && rights.Scope < operations.Operate {
		err = refused("payloads need the scope operate", "leave out payload")
	}
	if err != nil {
		fail(w, err)
		return
	}
	ctx, end, err := h.begin(r, c, true)
	if err != nil {
		fail(w, err)
		return
	}
	defer end()
	s := &stream{w: w, control: http.NewResponseController(w), hub: &h.hub, payloads: payloads}
	shared, err := s.share(args, rights)
	if err == nil && !shared {
		s.sub, err = operations.Subscribe(ctx, h.t, rights, args)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s.part.WriteString("retry: 1000\n\n")
	if shared {
		s.runShared(ctx)
	} else {
		s.run(ctx)
	}
	if context.Cause(ctx) == errEnding {
		s.part.WriteString("event: ended\ndata: {}\n\n") // a reader need not try again at once
		s.send()
	}
}

// listFields are the arguments of subscribe that are lists.
var listFields = map[string]bool{"kinds": true, "creatures": true, "graphs": true, "channels": true}

// streamArgs reads the arguments of subscribe from the query. Last-Event-ID, which a browser
// sends when it connects again, takes precedence over after.
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
				return nil, false, &abi.Error{Code: abi.InvalidArgument, Op: "subscribe", Message: "buffer is not a number", Remedy: "set it to a number of events"}
			}
			if n > streamBuffer {
				return nil, false, &abi.Error{Code: abi.LimitExceeded, Op: "subscribe", Message: fmt.Sprintf("a stream holds at most %d events", streamBuffer), Remedy: "use a smaller buffer, and continue after the last event if some were dropped"}
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

// stream writes events from a subscription of its own, or from the hub. It never changes from
// one to the other: their order of events differs, so some events would be lost or repeated.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	hub      *hub
	sub      *engine.Subscription
	payloads bool
	kinds    []journal.EventKind // empty: all
	part     bytes.Buffer
}

// share reports whether the hub has the events that the stream needs: from now on, all or
// those of some kinds, without contents.
func (s *stream) share(args json.RawMessage, rights operations.Rights) (bool, error) {
	var a operations.SubscribeArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return false, nil // the operation says what is wrong
	}
	if a.After != "" || s.payloads || len(rights.Graphs)+len(a.Creatures)+len(a.Graphs)+len(a.Channels) > 0 || a.Buffer != streamBuffer || rights.Scope < operations.Read {
		return false, nil
	}
	var known operations.SubscribeArgs
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if dec.Decode(&known) != nil {
		return false, nil
	}
	var err error
	s.kinds, err = operations.ParseKinds("subscribe", a.Kinds)
	return err == nil, err
}

func (s *stream) wants(k journal.EventKind) bool {
	return len(s.kinds) == 0 || k == journal.EventLagged || slices.Contains(s.kinds, k)
}

// run writes the events of the stream's own subscription until the context ends or the
// reader leaves.
func (s *stream) run(ctx context.Context) {
	defer s.sub.Close()
	for {
		ob, err := s.next(ctx)
		if err != nil {
			return
		}
		if ob != nil {
			s.part.Write(encodeEvent(nil, s.sub, ob, s.payloads))
		}
		if s.part.Len() < maxPart && ob != nil {
			continue
		}
		if !s.send() {
			return
		}
	}
}

// runShared writes the events of the hub from now on.
func (s *stream) runShared(ctx context.Context) {
	place := s.hub.join(ctx)
	defer s.hub.leave()
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(gather)
	defer pause.Stop()
	for {
		var news <-chan struct{}
		place, news = s.hub.take(&s.part, place, s.wants)
		if s.part.Len() > 0 {
			if !s.send() {
				return
			}
			beat.Reset(heartbeat)
		}
		if news == nil {
			continue
		}
		select {
		case <-news:
		case <-beat.C:
			s.part.WriteString(": still here\n\n")
			continue
		case <-ctx.Done():
			return
		}
		pause.Reset(gather)
		select {
		case <-pause.C:
		case <-ctx.Done():
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

// send sends the part. It reports whether the reader is still there.
func (s *stream) send() bool {
	_, err := s.w.Write(s.part.Bytes())
	if s.part.Reset(); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
