package llmcap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// rule is one rule of a scripted model. The first whose patterns match gives the answer.
type rule struct {
	// When lists patterns for messages in the form "role: content". The last pattern must
	// match the last message. Each of the others must match an earlier message; the latest
	// that it matches counts.
	When []string `json:"when"`
	// Say is the content, and Call the functions that the model calls. In both, ${NAME} is
	// replaced by what the group NAME of a pattern has matched.
	Say  string         `json:"say,omitempty"`
	Call []scriptedCall `json:"call,omitempty"`

	patterns []*regexp.Regexp
}

type scriptedCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// mostRules bounds a script.
const mostRules = 1000

const scriptedRemedy = `write rules in JSON, such as [{"when": ["^user: hello"], "say": "good day"}]`

// readScripted reads the rules of a scripted model.
func (g *grant) readScripted() error {
	if g.Scripted == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(g.Scripted))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&g.rules); err != nil {
		return invalid("scripted cannot be read: "+plainly.JSON([]byte(g.Scripted), err).Error(), scriptedRemedy)
	}
	if n := len(g.rules); strings.Trim(g.Scripted[d.InputOffset():], " \t\r\n") != "" || n == 0 || n > mostRules {
		return invalid(fmt.Sprintf("scripted must be a list of 1 to %d rules", mostRules), scriptedRemedy)
	}
	for i := range g.rules {
		r := &g.rules[i]
		if len(r.When) == 0 || r.Say == "" && len(r.Call) == 0 {
			return invalid(fmt.Sprintf("rule %d of scripted has no when, or neither say nor call", i+1), scriptedRemedy)
		}
		if slices.ContainsFunc(r.Call, func(c scriptedCall) bool { return c.Name == "" }) {
			return invalid(fmt.Sprintf("rule %d of scripted has a call without a name", i+1), scriptedRemedy)
		}
		for _, text := range r.When {
			p, err := regexp.Compile("(?s)" + text)
			if err != nil {
				return invalid(fmt.Sprintf("rule %d of scripted has a pattern that cannot be read: %v", i+1, err), "correct it; patterns are regular expressions in the syntax of Go")
			}
			r.patterns = append(r.patterns, p)
		}
	}
	return nil
}

// match returns what the groups of the patterns have matched.
func (r *rule) match(texts []string) (map[string]string, bool) {
	found := map[string]string{}
	add := func(p *regexp.Regexp, text string) bool {
		m := p.FindStringSubmatch(text)
		for i, name := range p.SubexpNames() {
			if m != nil && name != "" {
				found["${"+name+"}"] = m[i]
			}
		}
		return m != nil
	}
	last := len(texts) - 1
	for i, p := range r.patterns {
		if i == len(r.patterns)-1 {
			return found, add(p, texts[last])
		}
		ok := false
		for n := last - 1; n >= 0 && !ok; n-- {
			ok = add(p, texts[n])
		}
		if !ok {
			return nil, false
		}
	}
	return nil, false
}

// fill replaces the names of groups in the texts of a JSON value.
func fill(v any, names *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return names.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fill(v[i], names)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = fill(v[k], names)
		}
		return out
	}
	return v
}

// scripted answers a request by the rules. The answer depends only on the request.
func (g *grant) scripted(ctx context.Context, q request, size int) capability.Result {
	texts := make([]string, len(q.Messages))
	for i, m := range q.Messages {
		if texts[i] = m.Role + ": "; m.Content != nil {
			texts[i] += *m.Content
		}
	}
	for i := range g.rules {
		found, ok := g.rules[i].match(texts)
		if !ok {
			continue
		}
		message, finish, err := g.rules[i].answer(found, len(texts))
		if err != nil {
			return capability.Failure(abi.Internal, "llm: "+err.Error())
		}
		body, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": finish}}})
		if err != nil {
			return capability.Failure(abi.Internal, "llm: "+err.Error())
		}
		return g.answer(ctx, q, size, capability.Result{Code: abi.OK, Status: 200, Headers: map[string]string{"content-type": "application/json"}, Payload: body})
	}
	return capability.Failure(abi.NotFound, "llm: no rule of scripted matches the last message, "+quote(texts[len(texts)-1])+"; add one")
}

// answer is the message of a rule. Ids of calls differ from those of other answers in the
// same conversation.
func (r *rule) answer(found map[string]string, n int) (m message, finish string, err error) {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		pairs = append(pairs, name, found[name])
	}
	names := strings.NewReplacer(pairs...)
	text := names.Replace(r.Say)
	m, finish = message{Role: "assistant", Content: &text}, "stop"
	for i, c := range r.Call {
		arguments := any(c.Arguments)
		if c.Arguments == nil {
			arguments = map[string]any{}
		}
		var raw bytes.Buffer
		e := json.NewEncoder(&raw)
		e.SetEscapeHTML(false)
		if err := e.Encode(fill(arguments, names)); err != nil {
			return m, "", err
		}
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: fmt.Sprintf("call_%d_%d", n, i+1), Type: "function", Function: function{Name: names.Replace(c.Name), Arguments: strings.TrimSpace(raw.String())}})
		finish = "tool_calls"
	}
	return m, finish, nil
}
