package tools

import (
	"context"
	"fmt"
	"maps"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Message is a message that a tool sends.
type Message struct {
	ID      string
	Payload []byte
	Own     []byte // the headers that the caller has set, in the form of the ABI
	Headers []byte // the same with those of the host
}

// SendChannelArgs holds the arguments of the tool send_channel.
type SendChannelArgs struct {
	Channel string            `json:"channel" bounds:"minLength=1" jsonschema:"id or name of the channel, or the caller's alias for it"`
	Payload journal.Payload   `json:"payload"`
	Headers map[string]string `json:"headers,omitempty"`
	ReplyTo string            `json:"reply_to,omitempty" bounds:"minLength=1" jsonschema:"id of the message that this one answers"`
}

// Message returns what the call sends, if that has the id.
func (a *SendChannelArgs) Message(id string) (Message, error) {
	return newMessage("send_channel", id, a.Payload, a.Headers, a.ReplyTo)
}

// SendChannelResult is the result of send_channel.
type SendChannelResult struct {
	Channel journal.ChannelID `json:"channel"`
	Message string            `json:"message" jsonschema:"id of the message, for reply_to in an answer"`
}

func newMessage(op, id string, payload []byte, headers map[string]string, replyTo string) (m Message, err error) {
	if replyTo != "" && !isMessageID(replyTo) {
		return m, errtext.Invalid(op, errtext.Quoted([]byte(replyTo))+" is not the id of a message", "use the id that came with the message, or leave reply_to out")
	}
	own, ok := journal.EncodeHeaders(headers)
	if !ok {
		return m, errtext.Invalid(op, "a header has no name, or contains NUL", "use other names and values")
	}
	all := map[string]string{}
	maps.Copy(all, headers)
	if id != "" { // a log of earlier versions has none
		all[journal.HeaderMessage] = id
	}
	if replyTo != "" {
		all[journal.HeaderReplyTo] = replyTo
	}
	m = Message{ID: id, Payload: payload, Own: own}
	m.Headers, _ = journal.EncodeHeaders(all)
	return m, nil
}

// isMessageID reports whether a text has the form of a message id: one that a tool
// returned, or one from the log.
func isMessageID(text string) bool {
	if journal.IsID('m', text) {
		return true
	}
	id, err := journal.ParseEventID(text)
	return err == nil && id.String() == text
}

func sendChannel(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[SendChannelArgs](args)
	if err != nil {
		return nil, err
	}
	var edge topology.Edge
	out := SendChannelResult{}
	if err := t.Look(ctx, func(s *Stage) (err error) {
		edge, err = s.sendEdge(a.Channel)
		out = SendChannelResult{edge.Channel, s.ids.NewMessage()}
		return err
	}); err != nil {
		return nil, err
	}
	m, err := a.Message(out.Message)
	if err == nil {
		err = t.Send(edge.Channel, edge.Alias, m)
	}
	return out, err
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
		Remedy: "connect it first; " + sendsOn(ref, c.Edges), IDs: map[string]string{"creature": string(s.caller.ID)},
	}
}

// GroupSendArgs holds the arguments of the tool group_send.
type GroupSendArgs struct {
	Creature string          `json:"creature" bounds:"minLength=1" jsonschema:"id or name of a member of the caller's graph"`
	Payload  journal.Payload `json:"payload"`
	ReplyTo  string          `json:"reply_to,omitempty" bounds:"minLength=1" jsonschema:"id of the message that this one answers"`
}

// Message returns what the call sends, if that has the id.
func (a *GroupSendArgs) Message(id string) (Message, error) {
	return newMessage("group_send", id, a.Payload, nil, a.ReplyTo)
}

// GroupSendResult is the result of group_send.
type GroupSendResult struct {
	Creature journal.CreatureID `json:"creature"`
	Message  string             `json:"message" jsonschema:"id of the message, for reply_to in an answer"`
}

func groupSend(ctx context.Context, t Turn, args []byte) (any, error) {
	a, err := decodeArgs[GroupSendArgs](args)
	if err != nil {
		return nil, err
	}
	var out GroupSendResult
	if err := t.Look(ctx, func(s *Stage) (err error) {
		out.Message = s.ids.NewMessage()
		out.Creature, err = s.addressee(a.Creature)
		return err
	}); err != nil {
		return nil, err
	}
	m, err := a.Message(out.Message)
	if err == nil {
		err = t.SendTo(out.Creature, m)
	}
	return out, err
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
			Remedy: "send on a channel, or to a privileged creature" + s.privilegedOnes(ref), IDs: map[string]string{"creature": string(c.ID)},
		}
	}
	return c.ID, nil
}
