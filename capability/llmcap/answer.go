package llmcap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	// Estimated says that the server has not said how many tokens there were.
	Estimated bool `json:"estimated,omitempty"`
}

// chunk is a complete answer of a server, or a part of one: a complete one has the message
// of a choice, a part has what it adds.
type chunk struct {
	Choices []struct {
		Index        int     `json:"index"`
		Message      *delta  `json:"message"`
		Delta        *delta  `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type delta struct {
	Content   *string `json:"content"`
	Refusal   *string `json:"refusal"`
	ToolCalls []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// mostCalls bounds the calls of functions in an answer.
const mostCalls = 128

// The ways in which an answer is not one.
var (
	errNotJSON = errors.New("the answer is not what the interface prescribes")
	errBroke   = errors.New("the answer broke off")
	errCalls   = fmt.Errorf("the answer calls more than %d functions", mostCalls)
)

// errServer is an error that a server reports instead of an answer.
type errServer string

func (e errServer) Error() string { return "the server reports " + quote(string(e)) }

// assembly puts an answer together.
type assembly struct {
	answer
	content  strings.Builder
	spoken   bool // there is content, which may be empty
	calls    []*callParts
	finished bool
}

type callParts struct {
	id, name  string
	arguments strings.Builder
}

// assemble reads a response: events of a stream, or one JSON object.
func assemble(body []byte, stream bool) (answer, error) {
	a := &assembly{}
	if !stream {
		if err := a.add(body); err != nil {
			return answer{}, err
		}
	} else if err := events(body, a.add); err != nil {
		return answer{}, err
	}
	if !a.finished {
		return answer{}, errBroke
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
	return a.answer, nil
}

// errDone ends a stream.
var errDone = errors.New("done")

// events reads the events of a stream and calls f with the data of each. Lines end in any of
// the ways of the standard; an event without an empty line after it counts, because servers
// leave out the last one.
func events(body []byte, f func(data []byte) error) error {
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
	for len(body) > 0 {
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
		if has {
			data = append(data, '\n')
		}
		data, has = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	return ended(flush())
}

func ended(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// add adds a part, or a complete answer.
func (a *assembly) add(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return errNotJSON
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return errServer(errorText(data))
	}
	if c.Usage != nil {
		a.Usage = usage{Prompt: bounded(c.Usage.Prompt), Completion: bounded(c.Usage.Completion)}
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			continue // one was requested
		}
		d := choice.Delta
		if choice.Message != nil {
			d = choice.Message
		}
		if d != nil {
			if err := a.extend(d); err != nil {
				return err
			}
		}
		if r := choice.FinishReason; r != nil && *r != "" {
			a.FinishReason, a.finished = (*r)[:min(len(*r), 64)], true
		}
	}
	return nil
}

func (a *assembly) extend(d *delta) error {
	for _, text := range []*string{d.Content, d.Refusal} {
		if text != nil && (*text != "" || text == d.Content) {
			a.content.WriteString(*text)
			a.spoken = true
		}
	}
	for i := range d.ToolCalls {
		part := &d.ToolCalls[i]
		at := len(a.calls) - 1
		switch {
		case part.Index != nil:
			at = *part.Index
		case at < 0 || part.ID != "" && part.ID != a.calls[at].id:
			at = len(a.calls) // a server that numbers nothing begins another call with its id
		}
		if at < 0 || at >= mostCalls {
			return errCalls
		}
		for len(a.calls) <= at {
			a.calls = append(a.calls, &callParts{})
		}
		call := a.calls[at]
		if call.id == "" {
			call.id = part.ID
		}
		if part.Function.Name != call.name { // some servers repeat it, some send it in parts
			call.name += part.Function.Name
		}
		call.arguments.WriteString(part.Function.Arguments)
	}
	return nil
}

// bounded is a number of tokens that a server has reported; -1 for one that cannot be.
func bounded(n float64) int64 {
	if !(n >= 0 && n <= mostUsage) {
		return -1
	}
	return int64(n)
}

// errorText is what a server says about an error, in one of its usual forms.
func errorText(body []byte) string {
	var v struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &v) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var text string
		switch {
		case json.Unmarshal(v.Error, &inner) == nil && inner.Message != "":
			return inner.Message
		case json.Unmarshal(v.Error, &text) == nil && text != "":
			return text
		case v.Message != "":
			return v.Message
		}
	}
	return strings.ToValidUTF8(string(body), "")
}
