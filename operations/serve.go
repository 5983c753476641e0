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
	"github.com/seed47132306/terrarium/internal/plainly"
)

// MaxRequest is the longest line that [Serve] takes, in bytes: the
// largest message in base64, with room for the rest of the request.
const MaxRequest = deploy.MaxMessage*4/3 + 1<<20

// client sends requests, over a connection or in this process. Their answers and the
// events of its subscriptions share one output.
type client struct {
	t      *terrarium.Terrarium
	rights Rights // without a scope: the process itself, which may do everything

	mu     sync.Mutex // guards out and err
	out    *json.Encoder
	err    error              // the first failure to write
	broken context.CancelFunc // called with it

	waiting  sync.WaitGroup // requests that answer later, and subscriptions
	underWay atomic.Int64   // number of these requests
	subs     map[string]subscription
	subMu    sync.Mutex
	lastSub  int
	over     bool // shutdown was requested
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
	Code    string            `json:"code"`             // one of the [error codes](errors.md)
	Message string            `json:"message"`          // what happened
	Remedy  string            `json:"remedy,omitempty"` // what to do about it
	IDs     map[string]string `json:"ids,omitempty"`    // ids concerned, by what they name
}

func errorRecords(errs []error) []*ErrorRecord {
	var out []*ErrorRecord
	for _, err := range errs {
		out = append(out, NewErrorRecord(err))
	}
	return out
}

// maxErrorText bounds the message, the remedy and each id of an error, in bytes. A wrong
// name may have many megabytes, and the caller does not need it back.
const maxErrorText = 16 << 10

// NewErrorRecord returns the JSON form of an error. Texts of more than 16 KiB are cut.
func NewErrorRecord(err error) *ErrorRecord {
	r := &ErrorRecord{Code: abi.CodeOf(err).String(), Message: plainly.Text(err)}
	var e *abi.Error
	if errors.As(err, &e) {
		r.Remedy = e.Remedy
		r.Message = strings.TrimSuffix(r.Message, "; "+e.Remedy) // the remedy has its own field
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

// cut shortens a text in an error.
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

// Serve reads requests from in, one JSON object per line, and writes answers and the
// events of subscriptions to out, until in ends, shutdown is requested or ctx ends.
// Requests run in order, so a request can rely on earlier ones without waiting for their
// answers. Requests that wait, and requests with the field async, answer when they are
// done and do not delay others. A faulty line gets an error as its answer, and the next
// line is served.
//
// Serve returns when all requests have been answered, or when an answer cannot be
// written. The caller closes the terrarium. The end of ctx does not interrupt a read
// from in: close in as well.
func Serve(ctx context.Context, t *terrarium.Terrarium, in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &client{t: t, rights: Rights{Via: "exec"}, out: enc, broken: cancel, subs: map[string]subscription{}}
	r := bufio.NewReaderSize(in, 64<<10)
	var err error
	for !s.over && ctx.Err() == nil && err == nil {
		var line []byte
		line, err = readLine(r)
		switch {
		case err == errLongLine:
			s.answer(nil, nil, &abi.Error{Code: abi.TooLarge, Message: fmt.Sprintf("the line is longer than %d bytes", MaxRequest), Remedy: "split the request, or send a smaller payload"})
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

// failure returns the first error of writing.
func (s *client) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

var errLongLine = errors.New("the line is too long")

// readLine reads a line of at most MaxRequest bytes. It skips a longer line.
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

// maxUnderWay is the largest number of waiting and asynchronous requests of a
// connection.
const maxUnderWay = 1000

// serve starts a request, and answers it unless it waits or is asynchronous.
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
		err = invalid(op.Name, "the operation cannot be asynchronous, because it concerns the connection itself", "leave out async")
	case apart && s.underWay.Load() >= maxUnderWay:
		err = &abi.Error{Code: abi.LimitExceeded, Op: op.Name, Message: fmt.Sprintf("%d requests of this connection are under way", maxUnderWay), Remedy: "wait for an answer, then send the request again"}
	}
	if err != nil {
		s.answer(r.id, nil, err)
		return
	}
	ctx = s.attribute(ctx, &op)
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

// parsedRequest is a parsed request line.
type parsedRequest struct {
	id    json.RawMessage
	op    string
	args  json.RawMessage
	async bool // later requests do not wait for this one
}

// parseRequest parses a request. It returns the id even with an error, so that the
// client can match the answer.
func parseRequest(line []byte) (r parsedRequest, err error) {
	var fields requestFields
	err = json.Unmarshal(line, &fields)
	r.id = fields["id"]
	switch {
	case errors.As(err, new(*abi.Error)):
		return r, err
	case err != nil || fields == nil:
		return r, notARequest(line, err)
	case !utf8.Valid(line):
		return r, invalid("", "the line is not UTF-8", `give bytes as {"base64": "…"}`)
	}
	if async, given := fields["async"]; given {
		if err := json.Unmarshal(async, &r.async); err != nil {
			return r, invalid("", `the field "async" is not true or false`, "leave it out, or use true to let later requests run at the same time")
		}
	}
	if err := tools.CheckJSON(line); err != nil { // unmarshalling would drop duplicate fields
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

// requestFields holds the fields of a JSON object. It is nil for any other value.
type requestFields map[string]json.RawMessage

// maxFields is the largest number of fields in a request. No operation has as many.
const maxFields = 100

// UnmarshalJSON rejects an object with a duplicate field, as other JSON readers may use
// the other value, and an object with more fields than any operation has.
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
		field := name.(string) // package json has checked the type
		if _, twice := (*m)[field]; twice {
			return invalid("", fmt.Sprintf("the field %q is given twice", field), "leave out one of them")
		}
		if len(*m) == maxFields {
			return invalid("", fmt.Sprintf("the request has more than %d fields", maxFields), "docs/reference/operations.md lists the fields of each operation")
		}
		(*m)[field] = value
	}
	return nil
}

// notARequest returns the error for a line that is not a JSON object. If it is not even
// JSON, the error says why.
func notARequest(line []byte, err error) error {
	e := invalid("", "the line is not a JSON object", `write one request per line, for example {"id": 1, "op": "status"}`)
	if errors.As(err, new(*json.SyntaxError)) {
		e.Err = plainly.JSON(line, err)
	}
	return e
}

// splitRequest separates the operation's name from its arguments.
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

// atStep adds the number of the failed operation of a batch to an error.
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
