package engine

import (
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// SendChannelArgs are the arguments of the tool send_channel.
type SendChannelArgs struct {
	Channel string            `json:"channel" jsonschema:"minLength=1,description=the caller's alias for the channel or its name or its id"`
	Payload journal.Payload   `json:"payload"`
	Headers map[string]string `json:"headers,omitempty"`
}

// SendChannelResult is what send_channel answers.
type SendChannelResult struct {
	Channel journal.ChannelID `json:"channel"`
}

func sendChannel(t *turn, args []byte) (any, error) {
	a, err := decodeArgs[SendChannelArgs](args)
	if err != nil {
		return nil, err
	}
	headers, ok := journal.EncodeHeaders(a.Headers)
	if !ok {
		return nil, errtext.Invalid("send_channel", "a header has no name, or contains NUL", "use other names and values")
	}
	var edge topology.Edge
	var ch *channel // nil if this turn makes it; the commit looks it up by its alias
	if err := t.look(func(s *staging) (err error) {
		edge, err = s.sendEdge(a.Channel)
		ch = s.x.e.channels[edge.Channel]
		return err
	}); err != nil {
		return nil, err
	}
	if code := t.room(1, a.Payload, headers); code != abi.OK {
		return nil, t.faultError()
	}
	t.sends = append(t.sends, sendEffect{alias: edge.Alias, ch: ch, payload: t.keep(a.Payload), headers: t.keep(headers)})
	return SendChannelResult{edge.Channel}, nil
}

// sendEdge finds the edge on which the caller sends: by its own alias, or by the
// channel's id or name.
func (s *staging) sendEdge(ref string) (topology.Edge, error) {
	c, _ := s.topo().Creature(s.caller.id)
	var byName *topology.Edge
	for i, e := range c.Edges {
		if e.Direction != journal.Send {
			continue
		}
		if e.Alias == ref {
			return e, nil
		}
		ch, _ := s.topo().Channel(e.Channel)
		if byName == nil && (ch.Name == ref || string(e.Channel) == ref) {
			byName = &c.Edges[i]
		}
	}
	if byName != nil {
		return *byName, nil
	}
	return topology.Edge{}, &abi.Error{
		Code: abi.NotConnected, Op: "send_channel", Message: fmt.Sprintf("the creature sends on no channel %s", errtext.Quoted([]byte(ref))),
		Remedy: "connect it first; " + sendsOn(c.Edges), IDs: map[string]string{"creature": string(s.caller.id)},
	}
}

// sendsOn lists what a creature sends on, by alias.
func sendsOn(edges []topology.Edge) string {
	const most = 16
	var names []string
	for _, e := range edges {
		switch {
		case e.Direction != journal.Send:
		case len(names) == most:
			return "it sends on " + strings.Join(names, ", ") + " and others, which its awareness lists"
		default:
			names = append(names, errtext.Quoted([]byte(e.Alias)))
		}
	}
	if len(names) == 0 {
		return "it sends on nothing yet"
	}
	return "it sends on " + strings.Join(names, ", ")
}

// faultError is the fault that a check of the turn has left.
func (t *turn) faultError() error {
	return &abi.Error{Code: t.fault.code, Op: "tool", Message: t.fault.text, Remedy: t.fault.remedy, IDs: t.fault.ids}
}

// GroupSendArgs are the arguments of the tool group_send.
type GroupSendArgs struct {
	Creature string          `json:"creature" jsonschema:"minLength=1,description=a member of the own graph by id or name"`
	Payload  journal.Payload `json:"payload"`
}

// GroupSendResult is what group_send answers.
type GroupSendResult struct {
	Creature journal.CreatureID `json:"creature"`
}

func groupSend(t *turn, args []byte) (any, error) {
	a, err := decodeArgs[GroupSendArgs](args)
	if err != nil {
		return nil, err
	}
	var to *creature
	if err := t.look(func(s *staging) (err error) {
		to, err = s.addressee(a.Creature)
		return err
	}); err != nil {
		return nil, err
	}
	if code := t.room(1, a.Payload, nil); code != abi.OK {
		return nil, t.faultError()
	}
	t.sends = append(t.sends, sendEffect{to: to, payload: t.keep(a.Payload)})
	return GroupSendResult{to.id}, nil
}

// addressee finds whom the caller may send to: a worker reaches privileged
// creatures only.
func (s *staging) addressee(ref string) (*creature, error) {
	c, err := s.creature(ref)
	if err != nil {
		return nil, err
	}
	if !s.topo().IsPrivileged(s.caller.id) && !c.Privileged {
		return nil, &abi.Error{
			Code: abi.NotPrivileged, Op: "group_send", Message: "a worker sends to privileged creatures only",
			Remedy: "send on a channel, or to a privileged creature", IDs: map[string]string{"creature": string(c.ID)},
		}
	}
	if fresh := s.fresh[c.ID]; fresh != nil {
		return fresh, nil
	}
	return s.x.e.creatures[c.ID], nil
}

// addition finds a creature that the turn has added to the own graph with a tool.
func (t *turn) addition(ref string) (c *creature) {
	err := t.look(func(s *staging) error {
		found, err := s.creature(ref)
		c = s.fresh[found.ID]
		return err
	})
	if err != nil {
		return nil // there is none, or the turn is run again
	}
	return c
}
