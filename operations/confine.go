package operations

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
)

// The fields of arguments that name something in a graph.
var (
	graphFields    = []string{"graph", "graphs", "join"}
	creatureFields = []string{"creature", "caller", "from", "to", "parent", "creatures"}
	channelFields  = []string{"channel", "channels", "listen", "send"}
)

// unconfined are the operations that a caller who is confined to graphs may use although
// they name none: their parts are checked, or their results.
var unconfined = []string{"batch", "status"}

// whereabouts finds things, and the graphs in which they are: of the engine, or of a batch.
type whereabouts struct {
	findGraph    graphFinder
	findCreature func(terrarium.GraphID, string) (terrarium.CreatureID, error)
	findChannel  func(terrarium.GraphID, string) (terrarium.ChannelID, error)
	ofCreature   func(terrarium.CreatureID) terrarium.GraphID
	ofChannel    func(terrarium.ChannelID) terrarium.GraphID
}

// whereaboutsNow are those of the engine.
func (s *client) whereaboutsNow(ctx context.Context) (*whereabouts, error) {
	status, err := s.t.Status("")
	if err != nil {
		return nil, err
	}
	return &whereabouts{
		findGraph: s.graphs(ctx), findCreature: s.t.FindCreature, findChannel: s.t.FindChannel,
		ofCreature: func(id terrarium.CreatureID) terrarium.GraphID {
			return graphWith(status, func(s *inspect.GraphStatus) bool {
				return slices.ContainsFunc(s.Creatures, func(x inspect.CreatureStatus) bool { return x.ID == id })
			})
		},
		ofChannel: func(id terrarium.ChannelID) terrarium.GraphID {
			return graphWith(status, func(s *inspect.GraphStatus) bool {
				return slices.ContainsFunc(s.Channels, func(x inspect.ChannelStatus) bool { return x.ID == id })
			})
		},
	}, nil
}

// whereabouts are those of the topology as the batch sees it.
func (b *staging) whereabouts() *whereabouts {
	return &whereabouts{b.graphs, b.FindCreature, b.FindChannel, b.GraphOf, b.GraphOfChannel}
}

// confine returns an error if an operation concerns a graph that the client may not use. It
// replaces names by the ids that it has checked, so that they mean the same later, and puts
// a graph into a field for it that is empty.
func (s *client) confine(ctx context.Context, op *Operation, args any) error {
	if len(s.rights.Graphs) == 0 {
		return nil
	}
	at, err := s.whereaboutsNow(ctx)
	if err != nil {
		return err
	}
	return s.confineAt(at, op, args)
}

// confineAt is confine on a topology.
func (s *client) confineAt(at *whereabouts, op *Operation, args any) error {
	if len(s.rights.Graphs) == 0 {
		return nil
	}
	c := &confinement{whereabouts: at, allowed: s.allowed(at.findGraph)}
	v := reflect.ValueOf(args).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, field := jsonName(f), v.FieldByIndex(f.Index)
		if name == "session" && !field.IsZero() {
			return s.outside(op.Name)
		}
		if !c.checkField(op, name, field) {
			return s.outside(op.Name)
		}
	}
	graph, graphs := v.FieldByName("Graph"), v.FieldByName("Graphs")
	given := graph.IsValid() && !graph.IsZero() || graphs.IsValid()
	if c.unknown && !given {
		return s.outside(op.Name)
	}
	s.narrow(v)
	if given || slices.Contains(unconfined, op.Name) {
		return nil
	}
	if graph.IsValid() {
		return s.fillGraph(op, graph, c)
	}
	if len(c.used) == 0 {
		return s.outside(op.Name)
	}
	return nil
}

// confinement checks the fields of an operation.
type confinement struct {
	*whereabouts
	allowed []terrarium.GraphID
	used    []terrarium.GraphID // graphs of what the fields name
	unknown bool                // a field names what cannot be found
}

// checkField reports whether what a field names is in the allowed graphs, or cannot be
// found. It replaces names by ids.
func (c *confinement) checkField(op *Operation, name string, field reflect.Value) bool {
	switch texts := field.Interface().(type) {
	case string:
		if texts == "" {
			return true
		}
		id, ok := c.check(op, name, texts)
		if ok {
			field.SetString(id)
		}
		return ok
	case []string:
		ids := make([]string, len(texts))
		for i, text := range texts {
			var ok bool
			if ids[i], ok = c.check(op, name, text); !ok {
				return false
			}
		}
		if len(ids) > 0 {
			field.Set(reflect.ValueOf(ids))
		}
	}
	return true
}

// check returns the id of what a field names, or the name if nothing has it. Names are
// looked up only in the allowed graphs, so that they tell nothing about others.
func (c *confinement) check(op *Operation, field, text string) (string, bool) {
	switch {
	case slices.Contains(graphFields, field):
		g, err := c.findGraph(text)
		return string(g), err == nil && c.use(g)
	case slices.Contains(creatureFields, field):
		if op.Name == "wire" && text == string(journal.ToRoot) {
			return text, true // the root of the creature from which the wire leads
		}
		return findWithin(c, text, c.findCreature, c.ofCreature)
	case slices.Contains(channelFields, field):
		unknown := c.unknown
		id, ok := findWithin(c, text, c.findChannel, c.ofChannel)
		if op.Name == "connect" && !journal.IsID('h', text) {
			c.unknown = unknown // a new channel of the creatures' graphs
		}
		return id, ok
	}
	return text, true
}

// use notes that an operation concerns a graph, and reports whether it is an allowed one.
func (c *confinement) use(g terrarium.GraphID) bool {
	if !slices.Contains(c.used, g) {
		c.used = append(c.used, g)
	}
	return slices.Contains(c.allowed, g)
}

// findWithin finds the id for a name in the allowed graphs. A text that is neither an id
// nor a name in these graphs is returned unchanged. It also reports whether the result may
// be used: an id of something in another graph, and a name that several things have, may
// not be used.
func findWithin[T ~string](c *confinement, text string, find func(terrarium.GraphID, string) (T, error), of func(T) terrarium.GraphID) (string, bool) {
	var found []T
	for _, g := range c.allowed {
		id, err := find(g, text)
		if err == nil && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		c.unknown = true
		return text, true
	case 1:
		return string(found[0]), c.use(of(found[0]))
	}
	return text, false
}

// allowed returns the live graphs that the client may use.
func (s *client) allowed(find graphFinder) (out []terrarium.GraphID) {
	for _, name := range s.rights.Graphs {
		if g, err := find(name); err == nil && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

func graphWith(status []inspect.GraphStatus, has func(*inspect.GraphStatus) bool) terrarium.GraphID {
	for i := range status {
		if has(&status[i]) {
			return status[i].ID
		}
	}
	return ""
}

// narrow puts the client's graphs into an empty list of graphs, which would otherwise
// mean all graphs.
func (s *client) narrow(v reflect.Value) {
	if field := v.FieldByName("Graphs"); field.IsValid() && field.Len() == 0 {
		field.Set(reflect.ValueOf(slices.Clone(s.rights.Graphs)))
	}
}

// fillGraph puts the graph of what the other fields name, or the client's only one, into the
// field for a graph, which is empty.
func (s *client) fillGraph(op *Operation, field reflect.Value, c *confinement) error {
	switch {
	case len(c.used) == 1:
		field.SetString(string(c.used[0]))
	case len(c.used) == 0 && len(s.rights.Graphs) == 1:
		field.SetString(s.rights.Graphs[0])
	default:
		return s.outside(op.Name)
	}
	return nil
}

func (s *client) outside(op string) error {
	return &abi.Error{
		Code: abi.NotPrivileged, Op: op, Message: fmt.Sprintf("the token is only for %s", strings.Join(s.rights.Graphs, ", ")),
		Remedy: "name one of these graphs, or something in it, or use another token",
	}
}
