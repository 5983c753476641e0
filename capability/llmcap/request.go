package llmcap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// request is the request of a creature. Its members have the names of the API of the
// server. Other members are refused, because some of them cost money that no budget
// counts.
type request struct {
	Model       string          `json:"model,omitempty"` // by default, the first that is allowed
	Messages    []message       `json:"messages"`
	Tools       []tool          `json:"tools,omitempty"`
	ToolChoice  json.RawMessage `json:"tool_choice,omitempty"`
	MaxTokens   int64           `json:"max_tokens,omitempty"` // by default, that of the settings
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"top_p,omitempty"`
	Seed        *int64          `json:"seed,omitempty"`
	Stop        []string        `json:"stop,omitempty"`
	Format      json.RawMessage `json:"response_format,omitempty"`
	Effort      string          `json:"reasoning_effort,omitempty"`
}

// requestMembers are the names of the members of a request.
var requestMembers = func() (out []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[request]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}()

type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Name       string     `json:"name,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// function is a call of a function. The arguments are a text, which should be JSON.
type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      *bool           `json:"strict,omitempty"`
	} `json:"function"`
}

// Bounds of a request besides its size.
const (
	mostMessages = 4096
	mostTools    = 128
	mostStops    = 8
)

const requestRemedy = `send {"messages": [{"role": "user", "content": "…"}]}`

// quote quotes a text for an error, and cuts it.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// read reads and checks a request, and completes it from the settings.
func (g *grant) read(raw []byte) (q request, err error) {
	if int64(len(raw)) > g.MaxRequest {
		return q, &abi.Error{
			Code: abi.TooLarge, Op: "llm", Message: fmt.Sprintf("the request has %d bytes; at most %d are allowed", len(raw), g.MaxRequest),
			Remedy: "leave out old messages, or raise max_request in the recipe",
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, invalid("the request cannot be read: "+plainly.JSON(raw, err).Error(), requestRemedy)
	}
	if len(bytes.Trim(raw[d.InputOffset():], " \t\r\n")) > 0 {
		return q, invalid("the request has something after its JSON object", requestRemedy)
	}
	if q.Model == "" {
		q.Model = g.Models[0]
	}
	if !slices.Contains(g.Models, q.Model) {
		return q, &abi.Error{
			Code: abi.Denied, Op: "llm", Message: "the model " + quote(q.Model) + " is not allowed", Remedy: "use " + strings.Join(g.Models, ", ") + ", or add it to models in the recipe",
			IDs: map[string]string{"model": q.Model},
		}
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = g.MaxTokens
	}
	if q.MaxTokens < 0 || q.MaxTokens > g.MaxTokens {
		return q, invalid(fmt.Sprintf("max_tokens is %d; it may be 1 to %d", q.MaxTokens, g.MaxTokens), "lower it, or raise max_tokens in the recipe")
	}
	return q, q.check()
}

func (q *request) check() error {
	switch {
	case len(q.Messages) == 0:
		return invalid("the request has no messages", requestRemedy)
	case len(q.Messages) > mostMessages:
		return invalid(fmt.Sprintf("the request has more than %d messages", mostMessages), "leave out old ones")
	case len(q.Tools) > mostTools:
		return invalid(fmt.Sprintf("the request has more than %d tools", mostTools), "leave some out")
	case len(q.Stop) > mostStops:
		return invalid(fmt.Sprintf("the request has more than %d texts in stop", mostStops), "leave some out")
	}
	for i := range q.Messages {
		if why := q.Messages[i].fault(); why != "" {
			return invalid(fmt.Sprintf("message %d %s", i+1, why), requestRemedy)
		}
	}
	seen := map[string]bool{}
	for i := range q.Tools {
		t := &q.Tools[i]
		if t.Type != "function" || !isFunctionName(t.Function.Name) || seen[t.Function.Name] {
			return invalid(fmt.Sprintf("tool %d is not a function, or its name is missing, invalid or already used", i+1), `send {"type": "function", "function": {"name": "…", "parameters": {…}}}; a name has letters, digits, - and _`)
		}
		seen[t.Function.Name] = true
	}
	return nil
}

// fault says what is wrong with a message.
func (m *message) fault() string {
	switch m.Role {
	case "system", "developer", "user":
		if m.Content == nil {
			return "has no content"
		}
	case "assistant":
		if m.Content == nil && len(m.ToolCalls) == 0 {
			return "has neither content nor tool_calls"
		}
	case "tool":
		if m.Content == nil || m.ToolCallID == "" {
			return "lacks content or tool_call_id"
		}
	default:
		return "has the role " + quote(m.Role) + ", which is not one of system, developer, user, assistant and tool"
	}
	if m.Role != "assistant" && len(m.ToolCalls) > 0 || m.Role != "tool" && m.ToolCallID != "" {
		return "has a member that its role cannot have"
	}
	return ""
}

func isFunctionName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

// wire is the request as the server gets it.
func (g *grant) wire(q request) ([]byte, error) {
	stream := g.Stream == nil || *g.Stream
	extra := struct {
		*request
		MaxTokens     *int64         `json:"max_tokens,omitempty"`
		MaxCompletion *int64         `json:"max_completion_tokens,omitempty"`
		Stream        bool           `json:"stream,omitempty"`
		StreamOptions map[string]any `json:"stream_options,omitempty"`
	}{request: &q, Stream: stream}
	if stream {
		extra.StreamOptions = map[string]any{"include_usage": true}
	}
	if g.MaxTokensName == "max_tokens" {
		extra.MaxTokens = &q.MaxTokens
	} else {
		extra.MaxCompletion = &q.MaxTokens
	}
	return json.Marshal(extra)
}

// Check implements [capability.Grant].
func (g *grant) Check(r capability.Request) error {
	if len(r.Head) > 0 {
		return invalid("a request to a model has no head", "use the function request")
	}
	_, err := g.read(r.Body)
	return err
}

// View implements [capability.Grant].
func (g *grant) View(r capability.Request) map[string]any {
	q, err := g.read(r.Body)
	if err != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	if raw, err := json.Marshal(q); err == nil {
		_ = json.Unmarshal(raw, &out)
	}
	out["endpoint"] = g.Endpoint
	return out
}

// Amend implements [capability.Grant].
func (g *grant) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	q, err := g.read(r.Body)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(members))
	d.DisallowUnknownFields()
	// A member replaces the whole value: no old message may remain.
	var m request
	var names map[string]json.RawMessage
	if json.Unmarshal(members, &names) != nil || d.Decode(&m) != nil {
		return r, invalid("a policy can replace the members of a request, such as model, messages and max_tokens", "correct the policy")
	}
	old, err := json.Marshal(q)
	if err != nil {
		return r, invalid("the request cannot be encoded", "correct the policy")
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(old, &all); err != nil {
		return r, invalid("the request cannot be encoded", "correct the policy")
	}
	for name, value := range names {
		// The decoder accepts names in other cases, which would be added beside the member.
		if !slices.Contains(requestMembers, name) {
			return r, invalid("a policy replaces "+quote(name)+", which a request does not have", "use "+strings.Join(requestMembers, ", "))
		}
		if all[name] = value; string(value) == "null" {
			delete(all, name)
		}
	}
	r.Body, err = json.Marshal(all)
	return r, err
}
