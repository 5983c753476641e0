package operations

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/tools"
)

// MaxRequest is the longest line that [Serve] takes, in bytes: the
// largest message in base64, with room for the rest of the request.
const MaxRequest = deploy.MaxMessage*4/3 + 1<<20

// client asks for operations, over a connection or in this process: their answers
// and the events of its subscriptions share one output.
type client struct {
	t *terrarium.Terrarium

	mu     sync.Mutex // guards out and err
	out    *json.Encoder
	err    error              // the first failure to write
	broken context.CancelFunc // called with it

	waiting  sync.WaitGroup // requests that answer later, and subscriptions
	underWay atomic.Int64   // those requests
	subs     map[string]subscription
	subMu    sync.Mutex
	lastSub  int
	over     bool // shutdown was asked for
}

// response is the answer to one request.
type response struct {
	ID     json.RawMessage `json:"id,omitempty"`
	OK     bool            `json:"ok"`
	Result any             `json:"result,omitempty"`
	Error  *ErrorRecord    `json:"error,omitempty"`
}

// ErrorRecord is the JSON form of an error.
type ErrorRecord struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Remedy  string            `json:"remedy,omitempty"`
	IDs     map[string]string `json:"ids,omitempty"`
}

func errorRecords(errs []error) []*ErrorRecord {
	var out []*ErrorRecord
	for _, err := range errs {
		out = append(out, NewErrorRecord(err))
	}
	return out
}

// maxErrorText bounds the message, the remedy and each id of an error, in bytes: what
// is wrong may be a name of many megabytes, which nobody wants to have back.
const maxErrorText = 16 << 10

// NewErrorRecord makes the JSON form of an error. Texts of more than 16 KiB are cut.
func NewErrorRecord(err error) *ErrorRecord {
	r := &ErrorRecord{Code: abi.CodeOf(err).String(), Message: err.Error()}
	var e *abi.Error
	if errors.As(err, &e) {
		r.Remedy = e.Remedy
		r.Message = strings.TrimSuffix(r.Message, "; "+e.Remedy) // it has a place of its own
		for what, id := range e.IDs {
			if r.IDs == nil {
				r.IDs = map[string]string{}
			}
			r.IDs[what] = cut(id)
		}
	}
	r.Message, r.Remedy = cut(r.Message), cut(r.Remedy)
	return r
}

// cut shortens a text of an error.
func cut(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	end := maxErrorText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:end], len(text)-end)
}

// Serve reads requests from in, one JSON object on a line, and writes answers
// and the events of subscriptions to out, until in ends, shutdown is asked for
// or ctx ends. Requests are carried out in order, so that one can rely on those before
// it without waiting for their answers. Those that wait, and those with the field async,
// answer when they are done and hold up no other. Whatever is wrong with a line is an
// error answer, and the next line is served.
//
// It returns when everything that was asked for has been answered. Closing the
// terrarium is left to the caller. A read from in is not interrupted when ctx
// ends: close in. An answer that cannot be written ends it too.
func Serve(ctx context.Context, t *terrarium.Terrarium, in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &client{t: t, out: enc, broken: cancel, subs: map[string]subscription{}}
	r := bufio.NewReaderSize(in, 64<<10)
	var err error
	for !s.over && ctx.Err() == nil && err == nil {
		var line []byte
		line, err = readLine(r)
		switch {
		case err == errLongLine:
			s.answer(nil, nil, &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the line is longer than %d bytes", MaxRequest), Remedy: "send less at a time"})
			err = nil
		case len(bytes.TrimSpace(line)) > 0 && (err == nil || errors.Is(err, io.EOF)):
			s.serve(ctx, line)
		}
	}
	s.endSubscriptions()
	s.waiting.Wait()
	if serr := s.failure(); serr != nil {
		return serr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

// failure is the first failure to write.
func (s *client) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

var errLongLine = errors.New("the line is too long")

// readLine reads a line of any length up to MaxRequest. A longer one is
// skipped.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
			if len(line) > MaxRequest {
				line, tooLong = nil, true
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if tooLong && (err == nil || errors.Is(err, io.EOF)) { // the end comes again with the next line
			err = errLongLine
		}
		return line, err
	}
}

// maxUnderWay is how many requests of a connection may be under way: those that wait,
// and asynchronous ones.
const maxUnderWay = 1000

// serve starts one request, and answers it unless it waits or is asynchronous.
func (s *client) serve(ctx context.Context, line []byte) {
	r, err := parseRequest(line)
	var op Operation
	if err == nil {
		op, err = findOperation(r.op)
	}
	var decoded any
	if err == nil {
		decoded, err = op.decode(r.args)
	}
	apart := op.waits || r.async
	switch {
	case err != nil:
	case r.async && op.inOrder:
		err = invalid(op.Name, "the operation cannot be asynchronous: it is about the connection itself", "leave async out")
	case apart && s.underWay.Load() >= maxUnderWay:
		err = &abi.Error{Code: abi.LimitExceeded, Op: op.Name, Message: fmt.Sprintf("%d requests of this connection are under way", maxUnderWay), Remedy: "wait for an answer, and send the request again"}
	}
	if err != nil {
		s.answer(r.id, nil, err)
		return
	}
	run := func(ctx context.Context) (any, error) { return op.run(ctx, s, decoded) }
	if !r.async {
		result, err := run(ctx)
		later, waits := result.(later)
		if err != nil || !waits {
			s.answer(r.id, result, err)
			return
		}
		run = later
	}
	s.underWay.Add(1)
	s.waiting.Go(func() {
		defer s.underWay.Add(-1)
		result, err := run(ctx)
		if later, waits := result.(later); err == nil && waits {
			result, err = later(ctx)
		}
		s.answer(r.id, result, err)
	})
}

// parsedRequest is what a line asks for.
type parsedRequest struct {
	id    json.RawMessage
	op    string
	args  json.RawMessage
	async bool // later requests need not wait for this one
}

// parseRequest takes a request apart. The id is returned even if something
// else is wrong, so that the error can be matched.
func parseRequest(line []byte) (r parsedRequest, err error) {
	var fields requestFields
	err = json.Unmarshal(line, &fields)
	r.id = fields["id"]
	switch {
	case errors.As(err, new(*abi.Error)):
		return r, err
	case err != nil || fields == nil:
		return r, notARequest(err)
	case !utf8.Valid(line):
		return r, invalid("", "the line is not UTF-8", `give bytes as {"base64": "…"}`)
	}
	if async, given := fields["async"]; given {
		if err := json.Unmarshal(async, &r.async); err != nil {
			return r, invalid("", `the field "async" is not true or false`, "leave it out, or say true to have later requests carried out meanwhile")
		}
	}
	if err := tools.CheckJSON(line); err != nil { // taking it apart drops what stands twice
		return r, err
	}
	delete(fields, "id")
	delete(fields, "async")
	rest, err := json.Marshal(fields)
	if err != nil {
		return r, err
	}
	r.op, r.args, err = splitRequest(rest)
	return r, err
}

// requestFields are the fields of a JSON object; nil for any other value.
type requestFields map[string]json.RawMessage

// maxFields is how many fields a request has at most: no operation takes as many.
const maxFields = 100

// UnmarshalJSON refuses an object that has a field twice, of which a reader elsewhere
// may take the other one, and one that has more fields than an operation can.
func (m *requestFields) UnmarshalJSON(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return err
	}
	*m = requestFields{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		field := name.(string) // json has checked that it is one
		if _, twice := (*m)[field]; twice {
			return invalid("", fmt.Sprintf("the field %q is given twice", field), "give it once")
		}
		if len(*m) == maxFields {
			return invalid("", fmt.Sprintf("the request has more than %d fields", maxFields), "docs/reference/operations.md lists the fields of each operation")
		}
		(*m)[field] = value
	}
	return nil
}

// notARequest says that a line is no JSON object, and why it is not even JSON if
// that is so.
func notARequest(err error) error {
	e := invalid("", "the line is not a JSON object", `write one request on a line, for example {"id": 1, "op": "status"}`)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		e.Err = fmt.Errorf("%w, at byte %d", err, syntax.Offset)
	}
	return e
}

// splitRequest separates the name of the operation from its arguments.
func splitRequest(raw json.RawMessage) (op string, args json.RawMessage, err error) {
	var fields requestFields
	err = json.Unmarshal(raw, &fields)
	if errors.As(err, new(*abi.Error)) {
		return "", nil, err
	} else if err != nil || fields == nil {
		return "", nil, invalid("", "an operation is a JSON object", `for example {"op": "status"}`)
	}
	name, ok := fields["op"]
	if !ok {
		return "", nil, invalid("", `the field "op" is missing`, `name an operation, for example {"op": "status"}`)
	}
	if err := json.Unmarshal(name, &op); err != nil {
		return "", nil, invalid("", `the field "op" is not a string`, `name an operation, for example {"op": "status"}`)
	}
	delete(fields, "op")
	args, err = json.Marshal(fields)
	return op, args, err
}

// atStep says which operation of a batch an error is about.
func atStep(err error, i int) error {
	var e *abi.Error
	if !errors.As(err, &e) {
		return err
	}
	c := e.With("step", fmt.Sprint(i))
	c.Message = fmt.Sprintf("operation %d of the batch: %s", i, c.Message)
	return c
}

// answer writes the answer to a request.
func (s *client) answer(id json.RawMessage, result any, err error) {
	r := response{ID: id, OK: err == nil}
	if err != nil {
		r.Error = NewErrorRecord(err)
	} else {
		r.Result = result
	}
	s.write(r)
}

func (s *client) write(v any) {
	if s.out == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.out.Encode(v); err != nil && s.err == nil {
		s.err = fmt.Errorf("writing answers: %w", err)
		s.broken()
	}
}
