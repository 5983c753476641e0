package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dop251/goja"

	"github.com/seed47132306/terrarium/engine"
)

// contextView is what a script gets as ctx. Like the event it is made when it is
// asked for.
type contextView struct {
	isolate *isolate
	policy  *compiled
	subject *subject
	state   goja.Value // once asked for or set
	before  []byte     // what state was made from
	graph   goja.Value // once asked for
}

var _ goja.DynamicObject = (*contextView)(nil)

var errNoState = errors.New("ctx.state is no JSON value")

var contextKeys = names(ContextFields)

func newContextView(i *isolate) *contextView { return &contextView{isolate: i} }

// show makes the view one of another policy and event.
func (c *contextView) show(p *compiled, s *subject) {
	*c = contextView{isolate: c.isolate, policy: p, subject: s}
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

// recall makes what the policy remembers, an object at first.
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
	v, err := c.isolate.parse(goja.Undefined(), c.isolate.vm.ToValue(string(c.before)))
	if err != nil {
		c.isolate.throw("ctx.state cannot be read")
	}
	c.state = v
	return v
}

// memory is what the script has left in ctx.state, if that is another value than
// before.
func (c *contextView) memory() (value []byte, changed bool, err error) {
	if c.state == nil || c.subject == nil || c.subject.surroundings().Memory == nil {
		return nil, false, nil
	}
	text, err := c.isolate.write(goja.Undefined(), c.state)
	if err != nil {
		return nil, false, err
	}
	s, ok := text.Export().(string)
	switch {
	case goja.IsUndefined(c.state):
		return nil, true, nil
	case !ok:
		return nil, false, errNoState
	case len(s) > engine.MaxPolicyMemory:
		return nil, false, fmt.Errorf("ctx.state has %d bytes; at most %d are kept", len(s), engine.MaxPolicyMemory)
	}
	return []byte(s), s != string(c.before), nil
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

// showGraph makes ctx.graph: {id, creatures(filter), channels(filter)}.
func (c *contextView) showGraph() goja.Value {
	if c.graph != nil {
		return c.graph
	}
	if c.subject == nil || c.subject.surroundings().View == nil {
		return goja.Undefined()
	}
	i := c.isolate
	o := i.vm.NewObject()
	view := c.subject.surroundings().View()
	for _, field := range []struct {
		name  string
		value any
	}{
		{"id", string(view.ID)},
		{"creatures", func(call goja.FunctionCall) goja.Value { return i.matching(call, view.Creatures) }},
		{"channels", func(call goja.FunctionCall) goja.Value { return i.matching(call, view.Channels) }},
	} {
		if err := o.Set(field.name, field.value); err != nil {
			i.throw("ctx.graph cannot be shown")
		}
	}
	c.graph = o
	return o
}

// wanted is one field of a filter.
type wanted struct {
	key   string
	value any
}

// matching makes a list of those that have the fields of a filter, all of them
// if there is none.
func (i *isolate) matching(call goja.FunctionCall, list any) goja.Value {
	var filter []wanted
	switch arg := call.Argument(0).(type) {
	case *goja.Object:
		for _, key := range arg.Keys() {
			filter = append(filter, wanted{key, arg.Get(key).Export()})
		}
	default:
		if !goja.IsUndefined(arg) {
			i.throw("the filter is not an object: creatures({species: \"reviewer\"})")
		}
	}
	var found any
	switch list := list.(type) {
	case []engine.CreatureView:
		found = filtered(i, list, creatureFields, filter)
	case []engine.ChannelView:
		found = filtered(i, list, channelFields, filter)
	}
	return i.plain(found)
}

// The fields that filters know.
var (
	creatureFields = map[string]func(*engine.CreatureView) any{
		"id":         func(c *engine.CreatureView) any { return string(c.ID) },
		"name":       func(c *engine.CreatureView) any { return c.Name },
		"address":    func(c *engine.CreatureView) any { return c.Address },
		"species":    func(c *engine.CreatureView) any { return c.Species },
		"deployment": func(c *engine.CreatureView) any { return c.Deployment },
		"parent":     func(c *engine.CreatureView) any { return c.Parent },
		"state":      func(c *engine.CreatureView) any { return c.State },
		"privileged": func(c *engine.CreatureView) any { return c.Privileged },
		"root":       func(c *engine.CreatureView) any { return c.Root },
	}
	channelFields = map[string]func(*engine.ChannelView) any{
		"id":         func(c *engine.ChannelView) any { return string(c.ID) },
		"name":       func(c *engine.ChannelView) any { return c.Name },
		"address":    func(c *engine.ChannelView) any { return c.Address },
		"deployment": func(c *engine.ChannelView) any { return c.Deployment },
	}
)

func filtered[V any](i *isolate, list []V, fields map[string]func(*V) any, filter []wanted) []V {
	for _, w := range filter {
		if fields[w.key] == nil {
			i.throw(fmt.Sprintf("there is no %q to look for", clip(w.key)))
		}
	}
	out := []V{}
	for k := range list {
		fits := true
		for _, w := range filter {
			fits = fits && fields[w.key](&list[k]) == w.value
		}
		if fits {
			out = append(out, list[k])
		}
	}
	return out
}

// plain makes a read-only value of something that encodes as JSON.
func (i *isolate) plain(value any) goja.Value {
	text, err := json.Marshal(value)
	if err != nil {
		i.throw("this cannot be shown")
	}
	v, err := i.parseData(goja.Undefined(), i.vm.ToValue(string(text)))
	if err != nil {
		i.throw("this is too large to be shown")
	}
	return v
}
