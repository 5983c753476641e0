package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/abi"
)

// Limits of a message. A text of 1 MiB needs at most 6 MiB as JSON.
const (
	maxMessage = 8 << 20
	maxHeader  = 4 << 10 // of one line
	maxHeaders = 32
	// maxSkipped is the length above which a message that is too long is not skipped, but
	// ends the connection.
	maxSkipped = 256 << 20
)

// errTooLong says that a message was skipped because of its length.
var errTooLong = errors.New("the message is too long")

// frames reads messages, each after headers with its length.
type frames struct{ in *bufio.Reader }

func newFrames(in io.Reader) *frames { return &frames{bufio.NewReaderSize(in, maxHeader)} }

// next returns the next message. After errTooLong, the one after it can be read; other
// errors are final. At the end of the input it returns io.EOF.
func (f *frames) next() ([]byte, error) {
	length, err := f.headers()
	switch {
	case err != nil:
		return nil, err
	case length > maxSkipped:
		return nil, framing("a message has %d bytes; at most %d are allowed", length, maxMessage)
	case length > maxMessage:
		if _, err := io.CopyN(io.Discard, f.in, length); err != nil {
			return nil, cut(err)
		}
		return nil, errTooLong
	}
	// Grow with what arrives, so that a length alone costs no memory.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, f.in, length); err != nil {
		return nil, cut(err)
	}
	return b.Bytes(), nil
}

// headers reads the headers of a message and returns its length.
func (f *frames) headers() (int64, error) {
	length := int64(-1)
	for n := range maxHeaders {
		line, err := f.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, framing("a header is longer than %d bytes", maxHeader)
		case errors.Is(err, io.EOF) && n == 0 && len(line) == 0:
			return 0, io.EOF
		case err != nil:
			return 0, cut(err)
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			if length < 0 {
				return 0, framing("a message has no Content-Length header")
			}
			return length, nil
		}
		name, value, found := strings.Cut(text, ":")
		if !found {
			return 0, framing("%.40q is not a header", text)
		}
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || length < 0 {
				return 0, framing("%.40q is not the length of a message", value)
			}
		}
	}
	return 0, framing("a message has more than %d headers", maxHeaders)
}

func framing(format string, args ...any) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "lsp", Message: fmt.Sprintf(format, args...),
		Remedy: "start the server with an editor that speaks the Language Server Protocol over standard input and output"}
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &abi.Error{Code: abi.Unavailable, Op: "lsp", Message: "the input ended within a message", Err: err}
}

// message is a request, a notification or a response.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// The codes of errors.
const (
	parseError       = -32700
	invalidRequest   = -32600
	methodNotFound   = -32601
	invalidParams    = -32602
	internalError    = -32603
	notInitialized   = -32002
	requestFailed    = -32803
	requestCancelled = -32800
)

// rpcError is the error of a response.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// maxID bounds the id of a request, which is repeated in its response.
const maxID = 256

// decode reads a message. If it is not one, the error is the response.
func decode(data []byte) (*message, *rpcError) {
	var m message
	if !json.Valid(data) {
		return nil, &rpcError{parseError, "The message is not JSON."}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, &rpcError{invalidRequest, "The message is not a request: " + err.Error() + "."}
	}
	if m.Version != "2.0" {
		return nil, &rpcError{invalidRequest, `The member "jsonrpc" is not "2.0".`}
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	if len(m.ID) > 0 && (len(m.ID) > maxID || !strings.ContainsRune(`"-0123456789`, rune(m.ID[0]))) {
		return nil, &rpcError{invalidRequest, "The id is neither a short text nor a number."}
	}
	return &m, nil
}

// sender writes messages; it can be used by several goroutines.
type sender struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *sender) send(m *message) error {
	m.Version = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.out.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(data)), data...))
	return err
}

// respond answers a request. A result that is nil is null.
func (s *sender) respond(id json.RawMessage, result any, failure *rpcError) error {
	m := &message{ID: id, Error: failure}
	if len(id) == 0 {
		m.ID = json.RawMessage("null")
	}
	if failure == nil {
		data, err := json.Marshal(result)
		if err != nil {
			return err
		}
		m.Result = data
	}
	return s.send(m)
}

// notify sends a notification.
func (s *sender) notify(method string, params any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return s.send(&message{Method: method, Params: data})
}
