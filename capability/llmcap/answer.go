package llmcap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// answer is what a creature gets.
type answer struct {
	Model        string  `json:"model"`
	Message      message `json:"message"`
	FinishReason string  `json:"finish_reason"`
	Usage        usage   `json:"usage"`
	// Cost is in the currency of the prices; absent without a price.
	Cost json.Number `json:"cost,omitempty"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	// Estimated means that the server has reported no numbers of tokens, or impossible ones.
	Estimated bool `json:"estimated,omitempty"`
}

// Bounds of an answer besides its size.
const (
	mostCalls   = 128 // of functions
	mostChoices = 128 // in an event, although one is requested
	mostName    = 64  // bytes of the name of a function, as in requests
	mostReason  = 64  // bytes of the reason for the end
)

// Why an answer cannot be used.
var (
	errNotJSON = errors.New("the answer does not have the form that the API prescribes")
	errBroke   = errors.New("the answer broke off")
	errCalls   = fmt.Errorf("the answer calls more than %d functions", mostCalls)
	errChoices = fmt.Errorf("the answer has more than %d choices", mostChoices)
	errName    = fmt.Errorf("the answer calls a function whose name has more than %d bytes", mostName)
)

// errServer is an error that a server reports instead of an answer.
type errServer string

func (e errServer) Error() string { return "the server reports " + quote(string(e)) }

// assembly assembles an answer from its parts.
type assembly struct {
	answer
	most     int64 // bytes of the texts
	bytes    int64 // of the texts, including those that are left out
	content  strings.Builder
	spoken   bool // there is content, which may be empty
	calls    []*callParts
	finished bool
}

type callParts struct {
	index     int // the same for all parts of a call; the calls are sorted by it
	id, name  string
	arguments strings.Builder
}

// assemble reads a response: events of a stream, or one JSON object. If the texts of the
// answer together exceed the limit most, in bytes, long is true, and they are incomplete.
func assemble(ctx context.Context, body []byte, stream bool, most int64) (out answer, long bool, err error) {
	a := &assembly{most: most}
	if stream {
		err = events(ctx, body, a.add)
	} else {
		err = a.add(body)
	}
	if err == nil && !a.finished {
		err = errBroke
	}
	if err != nil {
		return answer{}, false, err
	}
	m := &a.Message
	m.Role = "assistant"
	if a.spoken || len(a.calls) == 0 {
		text := a.content.String()
		m.Content = &text
	}
	for i, c := range a.calls {
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d", i+1)
		}
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.id, Type: "function", Function: function{Name: c.name, Arguments: c.arguments.String()}})
	}
	return a.answer, a.bytes > most, nil
}

// errDone ends a stream.
var errDone = errors.New("done")

// events reads the events of a stream and calls f with the data of each. Lines may end in
// each of the ways that the standard allows. A last event counts even if no empty line
// follows, because some servers leave that out. A cancelled ctx ends the reading.
func events(ctx context.Context, body []byte, f func(data []byte) error) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	var data []byte
	has := false
	flush := func() error {
		if !has {
			return nil
		}
		d := data
		data, has = nil, false
		if string(bytes.TrimSpace(d)) == "[DONE]" {
			return errDone
		}
		return f(d)
	}
	for lines := 0; len(body) > 0; lines++ {
		if err := ctx.Err(); lines%64 == 0 && err != nil {
			return err
		}
		line := body
		if i := bytes.IndexAny(body, "\r\n"); i >= 0 {
			line = body[:i]
			if body[i] == '\r' && i+1 < len(body) && body[i+1] == '\n' {
				i++
			}
			body = body[i+1:]
		} else {
			body = nil
		}
		if len(line) == 0 {
			if err := flush(); err != nil {
				return ended(err)
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if has {
			data = append(append(data, '\n'), value...)
		} else {
			data, has = value[:len(value):len(value)], true // a copy only if there are more lines
		}
	}
	return ended(flush())
}

func ended(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// add adds a part of an answer, or a complete answer. In a complete answer, a choice has
// a message; in a part, it has a delta.
func (a *assembly) add(data []byte) error {
	data = bytes.Trim(data, " \t\r\n")
	top := []member{{name: "choices"}, {name: "usage"}, {name: "error"}}
	if !json.Valid(data) || !lookUp(data, top) {
		return errNotJSON
	}
	choices, counts, reported := top[0].value, top[1].value, top[2].value
	if reported != nil {
		return errServer(errorText(data))
	}
	if counts != nil {
		numbers := []member{{name: "prompt_tokens"}, {name: "completion_tokens"}}
		if !lookUp(counts, numbers) {
			return errNotJSON
		}
		a.Usage = usage{Prompt: count(numbers[0].value), Completion: count(numbers[1].value)}
	}
	if choices == nil {
		return nil
	}
	n := 0
	return each(choices, func(choice []byte) error {
		if n++; n > mostChoices {
			return errChoices
		}
		return a.choose(choice)
	})
}

func (a *assembly) choose(choice []byte) error {
	m := []member{{name: "index"}, {name: "message"}, {name: "delta"}, {name: "finish_reason"}}
	if !lookUp(choice, m) {
		return errNotJSON
	}
	index, message, delta := m[0].value, m[1].value, m[2].value
	if at, err := position(index); err != nil || at != 0 {
		return err // another choice: one was requested
	}
	if message != nil {
		delta = message
	}
	if delta != nil {
		if err := a.extend(delta, message != nil); err != nil {
			return err
		}
	}
	reason, err := short(m[3].value, errNotJSON)
	if err == nil && reason != "" {
		a.FinishReason, a.finished = reason, true
	}
	return err
}

// extend adds to the message. If delta is a complete message, each of its function calls
// is a new one.
func (a *assembly) extend(delta []byte, complete bool) error {
	m := []member{{name: "content"}, {name: "refusal"}, {name: "tool_calls"}}
	if !lookUp(delta, m) {
		return errNotJSON
	}
	for i := range m[:2] {
		text, err := a.text(m[i].value)
		if err != nil {
			return err
		}
		if m[i].value != nil && (text != "" || i == 0) {
			a.content.WriteString(text)
			a.spoken = true
		}
	}
	if m[2].value == nil {
		return nil
	}
	n := 0
	return each(m[2].value, func(call []byte) error {
		if n++; n > mostCalls {
			return errCalls
		}
		return a.call(call, complete)
	})
}

// call adds a call of a function, or a part of one.
func (a *assembly) call(raw []byte, complete bool) error {
	m := []member{{name: "index"}, {name: "id"}, {name: "function"}}
	if !lookUp(raw, m) {
		return errNotJSON
	}
	id, err := short(m[1].value, errNotJSON)
	if err != nil {
		return err
	}
	f := []member{{name: "name"}, {name: "arguments"}}
	if m[2].value != nil && !lookUp(m[2].value, f) {
		return errNotJSON
	}
	name, err := short(f[0].value, errName)
	if err != nil {
		return err
	}
	call, err := a.callAt(m[0].value, id, name, complete)
	if err != nil {
		return err
	}
	if call.id == "" {
		call.id = id
	}
	if name != call.name { // some servers repeat it, some send it in parts
		if len(call.name)+len(name) > mostName {
			return errName
		}
		call.name += name
	}
	arguments, err := a.text(f[1].value)
	call.arguments.WriteString(arguments)
	return err
}

// callAt returns the call that a part belongs to. The index in the part identifies the call,
// except if a call at that index has another id and the part begins with a name: some
// servers give parallel calls the same index, others give every part of a call a new id.
func (a *assembly) callAt(index []byte, id, name string, complete bool) (*callParts, error) {
	at := -1
	if n := len(a.calls); n > 0 {
		at = a.calls[n-1].index
	}
	switch {
	case complete:
		at++
	case index != nil:
		var err error
		if at, err = position(index); err != nil {
			return nil, err
		}
	case at < 0 || id != "" && id != a.calls[len(a.calls)-1].id:
		at++ // from a server that sends no indices, a new id begins another call
	}
	i, _ := slices.BinarySearchFunc(a.calls, at+1, func(c *callParts, at int) int { return cmp.Compare(c.index, at) })
	for j := i - 1; id != "" && j >= 0 && a.calls[j].index == at; j-- {
		if a.calls[j].id == id {
			return a.calls[j], nil
		}
	}
	if i > 0 && a.calls[i-1].index == at {
		if call := a.calls[i-1]; id == "" || call.id == "" || name == "" {
			return call, nil
		}
	}
	if at < 0 || at >= mostCalls || len(a.calls) >= mostCalls {
		return nil, errCalls
	}
	a.calls = slices.Insert(a.calls, i, &callParts{index: at})
	return a.calls[i], nil
}

// mostShort is how many bytes an id, a name or a reason may have in JSON. These do not
// count against the size of the answer, because servers repeat them in every part.
const mostShort = 4096

// short reads a text that is never long; tooLong is the error for one that is.
func short(raw []byte, tooLong error) (text string, err error) {
	switch {
	case raw == nil:
		return "", nil
	case len(raw) > mostShort:
		return "", tooLong
	case json.Unmarshal(raw, &text) != nil:
		return "", errNotJSON
	}
	return text, nil
}

// text reads a text. If the text makes the answer too long, its bytes are counted, and
// the text is left out.
func (a *assembly) text(raw []byte) (string, error) {
	if raw == nil {
		return "", nil
	}
	if raw[0] != '"' {
		return "", errNotJSON
	}
	if least := int64(len(raw)-2) / 6; a.bytes+least > a.most { // six: \u0061
		a.bytes += least
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", errNotJSON
	}
	if a.bytes += int64(len(text)); a.bytes > a.most {
		return "", nil
	}
	return text, nil
}

// position reads an index, which is 0 if it is absent.
func position(raw []byte) (n int, err error) {
	if raw != nil && json.Unmarshal(raw, &n) != nil {
		return 0, errNotJSON
	}
	return n, nil
}

// count reads a number of tokens that a server has reported; it returns -1 if the number
// is impossible.
func count(raw []byte) int64 {
	n, err := strconv.ParseFloat(string(raw[:min(len(raw), 64)]), 64)
	if raw != nil && (err != nil || !(n >= 0 && n <= mostUsage)) {
		return -1
	}
	return int64(n)
}

// mostErrorText is how many bytes of an error are read; the error shows fewer.
const mostErrorText = 4096

// errorText returns the text of an error that a server reports in one of the usual forms.
func errorText(body []byte) string {
	body = bytes.Trim(body, " \t\r\n")
	said := func(raw []byte) string {
		var text string
		if len(raw) > 6*mostErrorText || json.Unmarshal(raw, &text) != nil {
			return ""
		}
		return text
	}
	top := []member{{name: "error"}, {name: "message"}}
	if json.Valid(body) && lookUp(body, top) {
		inner := []member{{name: "message"}}
		lookUp(top[0].value, inner)
		for _, raw := range [][]byte{inner[0].value, top[0].value, top[1].value} {
			if text := said(raw); text != "" {
				return text
			}
		}
	}
	return strings.ToValidUTF8(string(body[:min(len(body), mostErrorText)]), "")
}
