package hosts_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed47132306/terrarium/conformance/hosts"
)

// conversation checks every line of the protocol against its schema.
type conversation struct {
	hosts.Adapter
	t      *testing.T
	schema *jsonschema.Resolved
	lines  *int
}

func (c conversation) check(v any) {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		c.t.Fatal(err)
	}
	*c.lines++
	if err := c.schema.Validate(plain); err != nil {
		c.t.Errorf("%.300s: %v", text, err)
	}
}

func (c conversation) Do(ctx context.Context, q *hosts.Request) (*hosts.Response, error) {
	c.check(q)
	r, err := c.Adapter.Do(ctx, q)
	if err == nil {
		c.check(r)
	}
	return r, err
}

func TestProtocolHasASchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/host-adapters.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{`{}`, `{"id":1,"op":"fly"}`, `{"id":1,"op":"load","modul":""}`, `{"id":1,"turns":[{"creature":"x"}]}`, `{"id":1,"turns":[{"creature":"x","status":"ok","effects":[{"kind":"shout"}]}]}`} {
		var v any
		if err := json.Unmarshal([]byte(wrong), &v); err != nil {
			t.Fatal(err)
		}
		if resolved.Validate(v) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
	lines := 0
	run(t, func(ctx context.Context) (hosts.Adapter, error) {
		a, err := ownHost(ctx)
		return conversation{a, t, resolved, &lines}, err
	}, cases(t))
	if lines < 500 {
		t.Errorf("only %d lines were compared", lines)
	}
}
