package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// SendChannelArgs holds the arguments of the tool send_channel.
type SendChannelArgs struct {
	Channel string            `json:"channel" bounds:"minLength=1" jsonschema:"id or name of the channel, or the caller's alias for it"`
	Payload journal.Payload   `json:"payload"`
	Headers map[string]string `json:"headers,omitempty"`
}

// SendChannelResult is the result of send_channel.
type SendChannelResult struct {
	Channel journal.ChannelID `json:"channel"`
}

func sendChannel(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[SendChannelArgs](args)
	if err != nil {
		return nil, err
	}
	headers, ok := journal.EncodeHeaders(a.Headers)
	if !ok {
		return nil, errtext.Invalid("send_channel", "a header has no name, or contains NUL", "use other names and values")
	}
	var edge topology.Edge
	if err := t.Look(ctx, func(s *Stage) (err error) {
		edge, err = s.sendEdge(a.Channel)
		return err
	}); err != nil {
		return nil, err
	}
	if err := t.Send(edge.Channel, edge.Alias, a.Payload, headers); err != nil {
		return nil, err
	}
	return SendChannelResult{edge.Channel}, nil
}

// sendEdge finds the edge on which the caller sends: by its own alias, or by the
// channel's id or name.
func (s *Stage) sendEdge(ref string) (topology.Edge, error) {
	c, _ := s.Topology().Creature(s.caller.ID)
	var byName *topology.Edge
	for i, e := range c.Edges {
		if e.Direction != journal.Send {
			continue
		}
		if e.Alias == ref {
			return e, nil
		}
		ch, _ := s.Topology().Channel(e.Channel)
		if byName == nil && (ch.Name == ref || string(e.Channel) == ref) {
			byName = &c.Edges[i]
		}
	}
	if byName != nil {
		return *byName, nil
	}
	return topology.Edge{}, &abi.Error{
		Code: abi.NotConnected, Op: "send_channel", Message: fmt.Sprintf("the creature does not send on a channel %s", errtext.Quoted([]byte(ref))),
		Remedy: "connect it first; " + sendsOn(c.Edges), IDs: map[string]string{"creature": string(s.caller.ID)},
	}
}

// sendsOn lists the channels that a creature sends on, by alias.
func sendsOn(edges []topology.Edge) string {
	const most = 16
	var names []string
	for _, e := range edges {
		switch {
		case e.Direction != journal.Send:
		case len(names) == most:
			return "it sends on " + strings.Join(names, ", ") + " and others, listed in its awareness document"
		default:
			names = append(names, errtext.Quoted([]byte(e.Alias)))
		}
	}
	if len(names) == 0 {
		return "it sends on no channel yet"
	}
	return "it sends on " + strings.Join(names, ", ")
}

// GroupSendArgs holds the arguments of the tool group_send.
type GroupSendArgs struct {
	Creature string          `json:"creature" bounds:"minLength=1" jsonschema:"id or name of a member of the caller's graph"`
	Payload  journal.Payload `json:"payload"`
}

// GroupSendResult is the result of group_send.
type GroupSendResult struct {
	Creature journal.CreatureID `json:"creature"`
}

func groupSend(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[GroupSendArgs](args)
	if err != nil {
		return nil, err
	}
	var to journal.CreatureID
	if err := t.Look(ctx, func(s *Stage) (err error) {
		to, err = s.addressee(a.Creature)
		return err
	}); err != nil {
		return nil, err
	}
	if err := t.SendTo(to, a.Payload); err != nil {
		return nil, err
	}
	return GroupSendResult{to}, nil
}

// addressee finds the creature to send to, and checks that the caller may: a
// worker may send only to privileged creatures.
func (s *Stage) addressee(ref string) (journal.CreatureID, error) {
	c, err := s.Find(ref)
	if err != nil {
		return "", err
	}
	if !s.Topology().IsPrivileged(s.caller.ID) && !c.Privileged {
		return "", &abi.Error{
			Code: abi.NotPrivileged, Op: "group_send", Message: "a worker may send only to privileged creatures",
			Remedy: "send on a channel, or to a privileged creature", IDs: map[string]string{"creature": string(c.ID)},
		}
	}
	return c.ID, nil
}
