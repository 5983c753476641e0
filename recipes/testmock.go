package recipes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// mock is a creature that gives canned answers in a test.
type mock struct {
	address string
	answers []mockAnswer
}

// mockAnswer is one answer, as the script of the mock reads it.
type mockAnswer struct {
	Alias   *string                    `json:"alias,omitempty"`
	Payload *string                    `json:"payload,omitempty"`
	JSON    json.RawMessage            `json:"json,omitempty"`
	Reply   json.RawMessage            `json:"reply,omitempty"`
	Send    map[string]json.RawMessage `json:"send,omitempty"`
	Output  json.RawMessage            `json:"output,omitempty"`
	Fail    *string                    `json:"fail,omitempty"`
}

//go:embed mock.js
var mockScript string

// mockModule runs the script of a mock.
const mockModule = "js"

// readMock reads a mock block: one mock for each creature that it replaces.
func (ts *testReader) readMock(s scope, b *hcl.Block) (out []mock) {
	c := ts.blockContent(s.title, b)
	for _, spec := range ts.mocked(s, c) {
		out = append(out, mock{address: spec.Address, answers: ts.mockAnswers(s, c, spec)})
	}
	if len(out) == 0 {
		ts.mockAnswers(s, c, nil) // for their mistakes
	}
	return out
}

// mocked returns the creatures that a mock replaces.
func (ts *testReader) mocked(s scope, c blockBody) (out []*deploy.CreatureSpec) {
	a := c.attr("creature")
	if a == nil {
		return nil // which has been reported
	}
	addresses, _ := ts.creaturesAt(s, a.Expr)
	for _, address := range addresses {
		i := slices.IndexFunc(ts.deployment.Creatures, func(spec deploy.CreatureSpec) bool { return spec.Address == address })
		if i >= 0 { // otherwise it has an error
			out = append(out, &ts.deployment.Creatures[i])
		}
	}
	return out
}

// mockAnswers reads the answers of a mock. spec is nil if its creature is not known.
func (ts *testReader) mockAnswers(s scope, c blockBody, spec *deploy.CreatureSpec) (out []mockAnswer) {
	for _, b := range c.Blocks {
		if answer, ok := ts.mockAnswer(s, ts.blockContent(s.title, b), b.DefRange, spec); ok {
			out = append(out, answer)
		}
	}
	return out
}

func (ts *testReader) mockAnswer(s scope, c blockBody, at hcl.Range, spec *deploy.CreatureSpec) (out mockAnswer, ok bool) {
	if a := c.attr("channel"); a != nil {
		alias, ok := ts.aliasAt(s, a, spec)
		if !ok {
			return out, false
		}
		out.Alias = &alias
	}
	s = s.secretly()
	if text, ok := ts.stringAttr(s, c, "payload"); ok {
		out.Payload = &text
	}
	if text, ok := ts.stringAttr(s, c, "fail"); ok {
		out.Fail = &text
	}
	if c.attr("payload") != nil && c.attr("json") != nil {
		ts.report(s, at, Diagnostic{Summary: "One payload expected", Detail: "An answer is for a payload or for json, and not for both.", Remedy: "Remove one of them."})
		return out, false
	}
	if out.JSON, ok = ts.jsonAttr(s, c, "json"); !ok {
		return out, false
	}
	if out.Reply, ok = ts.jsonAttr(s, c, "reply"); !ok {
		return out, false
	}
	if out.Output, ok = ts.jsonAttr(s, c, "output"); !ok {
		return out, false
	}
	out.Send, ok = ts.mockSends(s, c, spec)
	return out, ok
}

// jsonAttr returns the value of an attribute as JSON; nil if it is absent.
func (ts *testReader) jsonAttr(s scope, c blockBody, name string) (json.RawMessage, bool) {
	a := c.attr(name)
	if a == nil {
		return nil, true
	}
	v, ok := ts.eval(s, a.Expr)
	if !ok {
		return nil, false
	}
	data, err := jsonOf(v)
	if err != nil {
		ts.fault(s, a.Expr, "Not JSON", fmt.Sprintf("%s cannot be written as JSON: %v.", capital(name), err), "")
	}
	return data, err == nil
}

// aliasAt returns the alias by which a creature listens on a channel.
func (ts *testReader) aliasAt(s scope, a *hcl.Attribute, spec *deploy.CreatureSpec) (string, bool) {
	v, ok := ts.eval(s, a.Expr)
	if !ok {
		return "", false
	}
	address, ok := refAddress(v, "channel")
	if !ok {
		ts.wrongReference(s, a.Expr, v, "channel")
		return "", false
	}
	if spec == nil {
		return "", true
	}
	for _, w := range spec.Listen {
		if w.Channel == address {
			return ts.aliasOf(w), true
		}
	}
	ts.fault(s, a.Expr, "Not a channel of the creature", fmt.Sprintf("%s does not listen on %s.", spec.Address, address), "Name a channel on which it listens, or remove the attribute.")
	return "", false
}

func (ts *testReader) aliasOf(w deploy.WireSpec) string {
	if w.Alias != "" {
		return w.Alias
	}
	for i := range ts.deployment.Channels {
		if ts.deployment.Channels[i].Address == w.Channel {
			return ts.deployment.Channels[i].Name
		}
	}
	return w.Channel
}

// mockSends reads the messages of an answer, by alias.
func (ts *testReader) mockSends(s scope, c blockBody, spec *deploy.CreatureSpec) (map[string]json.RawMessage, bool) {
	data, ok := ts.jsonAttr(s, c, "send")
	if data == nil {
		return nil, ok
	}
	expr := c.attr("send").Expr
	var out map[string]json.RawMessage
	if json.Unmarshal(data, &out) != nil || out == nil {
		ts.fault(s, expr, "Wrong type", "Send must be an object: a message for each alias.", `Write for example send = { report = "hello" }.`)
		return nil, false
	}
	if spec == nil {
		return out, true
	}
	aliases := []string{deploy.ReportChannel}
	for _, w := range spec.Send {
		aliases = append(aliases, ts.aliasOf(w))
	}
	for _, alias := range slices.Sorted(maps.Keys(out)) {
		if !slices.Contains(aliases, alias) {
			ts.faultMeaning(s, expr, "Unknown alias", fmt.Sprintf("%s has no channel %q to send on.", spec.Address, alias), "", nearest(alias, aliases))
			return nil, false
		}
	}
	return out, true
}

// replaceMocked replaces the creatures that the test mocks. Their wiring stays.
func (t *Test) replaceMocked(builtins Builtins) Diagnostics {
	if len(t.mocks) == 0 {
		return nil
	}
	var wasm []byte
	if builtins != nil {
		var err error
		if wasm, err = builtins.Wasm(mockModule); err != nil {
			return Diagnostics{{Severity: Error, Summary: "Mocks are not available", Detail: sentence(err.Error())}}
		}
	}
	for _, m := range t.mocks {
		for i := range t.Recipe.deployment.Creatures {
			if spec := &t.Recipe.deployment.Creatures[i]; spec.Address == m.address {
				m.replace(spec, wasm)
			}
		}
	}
	return nil
}

func (m *mock) replace(spec *deploy.CreatureSpec, wasm []byte) {
	answers, _ := json.Marshal(append([]mockAnswer{}, m.answers...)) // all of it is JSON already
	config, _ := json.Marshal(map[string]string{"script": strings.Replace(mockScript, "/*answers*/ []", string(answers), 1)})
	spec.Module, spec.Wasm, spec.Config, spec.Secret = builtinPrefix+mockModule, wasm, config, nil
	spec.Species, spec.Limits, spec.Grants = "", abi.Limits{}, journal.Grants{}
}
