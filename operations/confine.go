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

// confine returns an error if an operation concerns a graph that the client may not use. A
// field for the graph that is empty gets the client's graphs.
func (s *client) confine(ctx context.Context, op *Operation, args any) error {
	if len(s.rights.Graphs) == 0 {
		return nil
	}
	status, err := s.t.Status("")
	if err != nil {
		return err
	}
	allowed := s.allowedGraphs(ctx)
	named := false
	v := reflect.ValueOf(args).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, field := jsonName(f), v.FieldByIndex(f.Index)
		if name == "session" && !field.IsZero() {
			return s.outside(op.Name)
		}
		for _, text := range textsOf(field) {
			inside, concerns := insideOf(ctx, s.t, status, allowed, name, text)
			if concerns && !inside {
				return s.outside(op.Name)
			}
			named = named || concerns
		}
	}
	if named || slices.Contains(unconfined, op.Name) {
		s.narrow(v)
		return nil
	}
	return s.fillGraph(op, v)
}

// allowedGraphs returns the live graphs that the client may use.
func (s *client) allowedGraphs(ctx context.Context) (out []terrarium.GraphID) {
	for _, name := range s.rights.Graphs {
		if g, err := s.t.FindGraph(ctx, name); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// textsOf returns the texts of a field.
func textsOf(field reflect.Value) []string {
	switch texts := field.Interface().(type) {
	case string:
		if texts != "" {
			return []string{texts}
		}
	case []string:
		return texts
	}
	return nil
}

// insideOf reports whether a field concerns a graph, and whether it is an allowed one.
func insideOf(ctx context.Context, t *terrarium.Terrarium, status []inspect.GraphStatus, allowed []terrarium.GraphID, field, text string) (inside, concerns bool) {
	var g terrarium.GraphID
	var err error
	switch {
	case slices.Contains(graphFields, field):
		g, err = t.FindGraph(ctx, text)
	case slices.Contains(creatureFields, field):
		var c terrarium.CreatureID
		if c, err = t.FindCreature("", text); err != nil {
			return false, false // other fields say where it is looked up, or the operation fails
		}
		g = graphWith(status, func(s *inspect.GraphStatus) bool {
			return slices.ContainsFunc(s.Creatures, func(x inspect.CreatureStatus) bool { return x.ID == c })
		})
	case slices.Contains(channelFields, field):
		var c terrarium.ChannelID
		if c, err = t.FindChannel("", text); err != nil {
			return false, false
		}
		g = graphWith(status, func(s *inspect.GraphStatus) bool {
			return slices.ContainsFunc(s.Channels, func(x inspect.ChannelStatus) bool { return x.ID == c })
		})
	default:
		return false, false
	}
	return err == nil && slices.Contains(allowed, g), true
}

func graphWith(status []inspect.GraphStatus, has func(*inspect.GraphStatus) bool) terrarium.GraphID {
	for i := range status {
		if has(&status[i]) {
			return status[i].ID
		}
	}
	return ""
}

// narrow adds the client's graphs to a list of graphs that is empty, as the other fields do
// not bound it.
func (s *client) narrow(v reflect.Value) {
	if field := v.FieldByName("Graphs"); field.IsValid() && field.Len() == 0 {
		field.Set(reflect.ValueOf(slices.Clone(s.rights.Graphs)))
	}
}

// fillGraph puts the client's graphs into arguments that name nothing.
func (s *client) fillGraph(op *Operation, v reflect.Value) error {
	s.narrow(v)
	if field := v.FieldByName("Graphs"); field.IsValid() {
		return nil
	}
	field := v.FieldByName("Graph")
	if !field.IsValid() || len(s.rights.Graphs) != 1 {
		return s.outside(op.Name)
	}
	field.SetString(s.rights.Graphs[0])
	return nil
}

func (s *client) outside(op string) error {
	return &abi.Error{
		Code: abi.NotPrivileged, Op: op, Message: fmt.Sprintf("the token is only for %s", strings.Join(s.rights.Graphs, ", ")),
		Remedy: "name one of these graphs, or something in it, or use another token",
	}
}
