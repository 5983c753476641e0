package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// contextView is the argument ctx of a script. Like the event it is made on demand.
type contextView struct {
	isolate *isolate
	object  *goja.Object
	policy  *compiled
	subject *subject
	state   goja.Value // once read or set
	before  []byte     // the JSON from which state was made
	graph   goja.Value // once read
}

var _ goja.DynamicObject = (*contextView)(nil)

var errNoState = misuse{errors.New("ctx.state is not a JSON value")}

var contextKeys = names(ContextFields)

func newContextView(i *isolate) *contextView {
	c := &contextView{isolate: i}
	c.object = i.vm.NewDynamicObject(c)
	return c
}

// pointAt makes the view show another policy and event.
func (c *contextView) pointAt(p *compiled, s *subject) {
	*c = contextView{isolate: c.isolate, object: c.object, policy: p, subject: s}
}

// Get implements [goja.DynamicObject].
func (c *contextView) Get(key string) goja.Value {
	vm := c.isolate.vm
	switch {
	case c.policy == nil:
	case key == "policy":
		return vm.ToValue(c.policy.Name)
	case key == "mode":
		return vm.ToValue(c.policy.Mode.String())
	case key == "state":
		return c.recall()
	case key == "graph":
		return c.showGraph()
	}
	return nil
}

// recall makes the state of the policy, at first an empty object.
func (c *contextView) recall() goja.Value {
	if c.state != nil {
		return c.state
	}
	c.before = []byte("{}")
	if c.subject != nil {
		if m := c.subject.surroundings().Memory; m != nil {
			if value := m.Recall(c.policy.memory); value != nil {
				c.before = value
			}
		}
	}
	v, err := c.isolate.decode(string(c.before), false)
	if err != nil {
		c.isolate.throw("ctx.state cannot be read")
	}
	c.state = v
	return v
}

// memory returns what the script left in ctx.state, if it has changed.
func (c *contextView) memory() (value []byte, changed bool, err error) {
	if c.state == nil || c.subject == nil || c.subject.surroundings().Memory == nil {
		return nil, false, nil
	}
	text, ok, err := c.isolate.encode(c.state)
	switch {
	case err != nil:
		return nil, false, err
	case goja.IsUndefined(c.state):
		return nil, true, nil
	case !ok:
		return nil, false, errNoState
	case len(text) > deploy.MaxPolicyMemory:
		return nil, false, misuse{fmt.Errorf("ctx.state has %d bytes; at most %d are kept", len(text), deploy.MaxPolicyMemory)}
	case bytes.Equal(text, c.before):
		return nil, false, nil
	}
	return bytes.Clone(text), true, nil
}

// Set implements [goja.DynamicObject]: only state can be set.
func (c *contextView) Set(key string, value goja.Value) bool {
	if key != "state" {
		return false
	}
	if c.state == nil {
		c.recall()
	}
	c.state = value
	return true
}

// Has implements [goja.DynamicObject].
func (c *contextView) Has(key string) bool { return slices.Contains(contextKeys, key) }

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (c *contextView) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (c *contextView) Keys() []string { return contextKeys }

func (c *contextView) showGraph() goja.Value {
	if c.graph == nil {
		if c.graph = goja.Undefined(); c.subject != nil && c.subject.surroundings().View != nil {
			c.graph = c.isolate.sight.shown(c.subject.surroundings().View())
		}
	}
	return c.graph
}

// plain makes a read-only value from something that encodes as JSON.
func (i *isolate) plain(value any) goja.Value {
	text, err := json.Marshal(value)
	if err != nil {
		i.throw("this cannot be shown")
	}
	v, err := i.decode(string(text), true)
	if err != nil {
		i.throw("this is too large to be shown")
	}
	return v
}
