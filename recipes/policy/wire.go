package policy

import (
	"encoding/json"

	"github.com/seed47132306/terrarium/engine/deploy"
)

// Messages between the engine's process and the process that runs scripts, one JSON value
// after another. The engine begins with a manifest, which the process answers with an
// empty reply when it is ready. Then the engine asks one question at a time, and requests
// for data may precede the answer.

// manifest lists what a process runs.
type manifest struct {
	Memory   int64
	Policies []script
}

// script is a policy in the form that another process needs.
type script struct {
	Index  int
	Policy Policy
}

// question asks for the judgement of one policy.
type question struct {
	Index int
	Send  *deploy.SendEvent   `json:",omitempty"`
	Event *deploy.PolicyEvent `json:",omitempty"`
}

// reply is an answer or, with Needs, a request for data that the answer depends on.
type reply struct {
	Needs string `json:",omitempty"` // "graph" or "memory"

	Kind      kind                        `json:",omitempty"`
	Reason    string                      `json:",omitempty"`
	Line      int                         `json:",omitempty"`
	Payload   []byte                      `json:",omitempty"`
	Patched   bool                        `json:",omitempty"` // Payload is valid, even if it is empty
	Headers   *map[string]string          `json:",omitempty"`
	Names     map[string]deploy.Collision `json:",omitempty"`
	Terms     terms                       `json:",omitzero"` // of ask
	Request   json.RawMessage             `json:",omitempty"`
	Memory    json.RawMessage             `json:",omitempty"`
	Remembers bool                        `json:",omitempty"`
	Fault     *ScriptError                `json:",omitempty"`
}

// supply has the requested data.
type supply struct {
	Graph  *deploy.GraphView `json:",omitempty"`
	Memory json.RawMessage   `json:",omitempty"`
}

// replyOf encodes the answer of a policy, in the process that runs it.
func replyOf(a answer, fault *ScriptError) reply {
	r := reply{Fault: fault, Memory: a.memory, Remembers: a.remembers}
	if v := a.verdict; v != nil {
		r.Kind, r.Reason, r.Line, r.Headers, r.Names = v.kind, v.reason, v.line, v.headers, v.names
		r.Terms, r.Request = v.terms, v.request
		r.Payload, r.Patched = v.payload, v.payload != nil
	}
	return r
}

// answer decodes the reply, in the engine's process.
func (r *reply) answer() (answer, *ScriptError) {
	if r.Fault != nil {
		return answer{}, r.Fault
	}
	a := answer{memory: r.Memory, remembers: r.Remembers}
	if r.Kind == "" {
		return a, nil
	}
	a.verdict = &verdict{kind: r.Kind, reason: clip(r.Reason), line: r.Line, headers: r.Headers, names: r.Names, terms: r.Terms.bounded(), request: r.Request}
	if r.Patched {
		a.verdict.payload = append([]byte{}, r.Payload...)
	}
	return a, nil
}
