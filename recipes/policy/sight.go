package policy

import (
	"slices"

	"github.com/dop251/goja"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// sight is ctx.graph: {id, creatures(filter), channels(filter)}. A runtime has one. It
// keeps the objects made for a graph until the graph changes, which is safe because
// scripts cannot modify them.
type sight struct {
	isolate   *isolate
	object    *goja.Object
	view      *deploy.GraphView
	creatures members[deploy.CreatureView]
	channels  members[deploy.ChannelView]
}

var _ goja.DynamicObject = (*sight)(nil)

var sightKeys = []string{"id", "creatures", "channels"}

// maxKept bounds how many members of a graph are kept.
const maxKept = 4096

func newSight(i *isolate) (*sight, error) {
	s := &sight{isolate: i, view: &deploy.GraphView{}}
	s.object = i.vm.NewDynamicObject(s)
	s.creatures = members[deploy.CreatureView]{isolate: i, fields: creatureFields, id: creatureID, same: sameCreature}
	s.channels = members[deploy.ChannelView]{isolate: i, fields: channelFields, id: channelID, same: sameChannel}
	if err := s.creatures.offer(); err != nil {
		return nil, err
	}
	return s, s.channels.offer()
}

// shown returns the view of a graph, for the running script.
func (s *sight) shown(view *deploy.GraphView) goja.Value {
	if s.view != view { // views are shared, and never modified
		s.view = view
		s.creatures.pointAt(view.Creatures)
		s.channels.pointAt(view.Channels)
	}
	return s.isolate.pristine(s.object)
}

// dropLarge releases a graph that is too large to be kept.
func (s *sight) dropLarge() {
	if len(s.view.Creatures)+len(s.view.Channels) > maxKept {
		s.view = &deploy.GraphView{}
		s.creatures.pointAt(nil)
		s.channels.pointAt(nil)
	}
}

// Get implements [goja.DynamicObject].
func (s *sight) Get(key string) goja.Value {
	switch key {
	case "id":
		return s.isolate.vm.ToValue(string(s.view.ID))
	case "creatures":
		return s.creatures.function
	case "channels":
		return s.channels.function
	}
	return nil
}

// Set implements [goja.DynamicObject]; nothing can be set.
func (s *sight) Set(string, goja.Value) bool { return false }

// Has implements [goja.DynamicObject].
func (s *sight) Has(key string) bool { return slices.Contains(sightKeys, key) }

// Delete implements [goja.DynamicObject]; nothing can be deleted.
func (s *sight) Delete(string) bool { return false }

// Keys implements [goja.DynamicObject].
func (s *sight) Keys() []string { return sightKeys }

// The fields that filters can use.
var (
	creatureFields = map[string]field[deploy.CreatureView]{
		"id":         {text: func(c *deploy.CreatureView) string { return string(c.ID) }},
		"name":       {text: func(c *deploy.CreatureView) string { return c.Name }},
		"address":    {text: func(c *deploy.CreatureView) string { return c.Address }},
		"species":    {text: func(c *deploy.CreatureView) string { return c.Species }},
		"deployment": {text: func(c *deploy.CreatureView) string { return c.Deployment }},
		"parent":     {text: func(c *deploy.CreatureView) string { return c.Parent }},
		"state":      {text: func(c *deploy.CreatureView) string { return string(c.State) }},
		"privileged": {flag: func(c *deploy.CreatureView) bool { return c.Privileged }},
		"root":       {flag: func(c *deploy.CreatureView) bool { return c.Root }},
	}
	channelFields = map[string]field[deploy.ChannelView]{
		"id":         {text: func(c *deploy.ChannelView) string { return string(c.ID) }},
		"name":       {text: func(c *deploy.ChannelView) string { return c.Name }},
		"address":    {text: func(c *deploy.ChannelView) string { return c.Address }},
		"deployment": {text: func(c *deploy.ChannelView) string { return c.Deployment }},
	}
)

func creatureID(c *deploy.CreatureView) string    { return string(c.ID) }
func sameCreature(a, b *deploy.CreatureView) bool { return *a == *b }
func channelID(c *deploy.ChannelView) string      { return string(c.ID) }

func sameChannel(a, b *deploy.ChannelView) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Address == b.Address && a.Deployment == b.Deployment &&
		slices.Equal(a.Listeners, b.Listeners) && slices.Equal(a.Senders, b.Senders)
}
