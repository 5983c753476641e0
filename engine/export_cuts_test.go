package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Shape is a graph as its environment has it, apart from the topology.
type Shape struct {
	ID        journal.GraphID
	Session   journal.SessionID // "" without a store
	Creatures []journal.CreatureID
	Channels  []journal.ChannelID // without inboxes
	Edges     []Edge              // in either direction
}

// Successors returns the successors of ended graphs.
func (s *Stepper) Successors() journal.Succession {
	out := journal.Succession{}
	s.core.observers.Successors.Range(func(old, into any) bool {
		out[old.(journal.GraphID)] = into.(journal.GraphID)
		return true
	})
	return out
}

// Shapes lists the graphs as their environments have them.
func (s *Stepper) Shapes() []Shape {
	l := s.core.rlock()
	defer l.runlock()
	out := make([]Shape, 0, len(l.graphs))
	for _, g := range l.graphs {
		shape := Shape{ID: g.id}
		if g.store != nil {
			shape.Session = g.store.Info().Session
		}
		for _, ch := range g.channels {
			if ch.inbox == "" {
				shape.Channels = append(shape.Channels, ch.id)
			}
		}
		for _, c := range g.creatures {
			shape.Creatures = append(shape.Creatures, c.id)
			for _, src := range c.mb.feeds {
				if src.ch != nil && src.ch.inbox == "" {
					shape.Edges = append(shape.Edges, Edge{c.id, src.id})
				}
			}
			for _, send := range c.wiring.Load().sends {
				shape.Edges = append(shape.Edges, Edge{c.id, send.ch.id})
			}
		}
		out = append(out, shape)
	}
	slices.SortFunc(out, func(a, b Shape) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Life is the part of a creature that no cut may change.
type Life struct {
	Instances uint64 // started in this run
	Timers    string
	Asks      []journal.RequestRow // open requests
	Hand      delivered            // the delivery that a worker is handling
	Again     Edge                 // the listener and channel of the delivery that will be tried again
	Aliases   map[Bond]string
}

// delivered is a message's place in its channel.
type delivered struct {
	channel journal.ChannelID
	seq     uint64
}

// Bond is an edge of a creature, by its direction.
type Bond struct {
	Channel   journal.ChannelID
	Direction journal.Direction
}

// Lives returns the Life of each creature. Requests made without a log are left out, because
// they get other ids when they enter one.
func (s *Stepper) Lives() map[journal.CreatureID]Life {
	l := s.core.rlock()
	defer l.runlock()
	out := make(map[journal.CreatureID]Life, len(l.creatures))
	for id, c := range l.creatures {
		rec := &journal.Record{}
		g := c.home.enter()
		putAsks(g, rec, c)
		if g.store == nil {
			rec.Requests = nil
		}
		g.leave()
		l := Life{Instances: c.instances.Load(), Aliases: map[Bond]string{}}
		l.Timers, l.Asks = fmt.Sprint(rec.Timers), rec.Requests
		if m := c.current.msg; m != nil {
			l.Hand = delivered{m.Channel, m.Seq}
		}
		if d := c.retry; d != nil {
			l.Again = Edge{id, d.msg.Channel}
		}
		for _, send := range c.wiring.Load().sends {
			l.Aliases[Bond{send.ch.id, journal.Send}] = send.alias
		}
		for _, src := range c.mb.feeds {
			if src.ch != nil {
				l.Aliases[Bond{src.id, journal.Listen}] = src.alias
			}
		}
		out[id] = l
	}
	return out
}
