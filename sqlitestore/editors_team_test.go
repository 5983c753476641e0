package sqlitestore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// team is the sum of an editor's answers: everything in the graph that is on its side and not
// in its deployment. Hands use only the channels of their own side and the gate of the other,
// so that the two sides do not depend on each other.
type team struct {
	side     string
	places   map[string]journal.ChannelID // of the deployment's channels, by name
	members  map[string]journal.CreatureID
	gate     journal.ChannelID // of the other side
	hands    map[string]*hand
	channels map[string]journal.ChannelID // made by the editor
	relay    map[journal.ChannelID]bool   // the channels that the relay listens on besides those of its deployment
	answered uint64
	refused  map[string]int // by code
}

type hand struct {
	id      journal.CreatureID
	since   uint64 // the order that spawned it
	stopped bool
	listens map[journal.ChannelID]bool
	wire    *journal.OutputWire
}

func newTeam(side string) *team {
	return &team{side: side, places: map[string]journal.ChannelID{}, members: map[string]journal.CreatureID{}, hands: map[string]*hand{}, channels: map[string]journal.ChannelID{}, relay: map[journal.ChannelID]bool{}, refused: map[string]int{}}
}

// result is the result of a call.
type result struct {
	OK     bool
	Code   string
	Error  string
	Result struct {
		Creature journal.CreatureID
		Name     string
		State    string
		Channel  journal.ChannelID
		Wire     *journal.OutputWire
	}
}

// answer applies the next answer of an editor, to an order as the log has it.
func (m *team) answer(order, answer []byte) error {
	var o struct {
		ID    uint64
		Calls []toolCall
	}
	var a struct {
		ID      uint64
		Results []result
	}
	if err := json.Unmarshal(order, &o); err != nil {
		return err
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return err
	}
	if a.ID != m.answered+1 || o.ID != a.ID {
		return fmt.Errorf("%s has answered order %d with number %d, after order %d", m.side, o.ID, a.ID, m.answered)
	}
	m.answered = a.ID
	for i, r := range a.Results {
		if err := m.take(o.Calls[i].Args, o.Calls[i].Tool, &r); err != nil {
			return fmt.Errorf("the answer to order %d of %s, %s, is %s: %w", a.ID, m.side, order, answer, err)
		}
		if last := i == len(a.Results)-1; !r.OK && !last || last && r.OK && i < len(o.Calls)-1 {
			return fmt.Errorf("the answer to order %d of %s, %s, is %s: an answer ends at a refusal, and only there", a.ID, m.side, order, answer)
		}
	}
	return nil
}

// take applies the result of one call.
func (m *team) take(c callArgs, tool string, r *result) error {
	if !r.OK {
		m.refused[r.Code]++
	}
	switch tool {
	case "group_add_node":
		return m.added(c, r)
	case "group_channel":
		return m.rewired(c, r)
	case "group_wire":
		return m.checkResult(c, r)
	}
	h := m.hands[c.Creature]
	if want := map[bool]string{true: "", false: "not_found"}[h != nil]; r.Code != want {
		return fmt.Errorf("want the code %q", want)
	}
	switch {
	case h == nil:
	case tool == "group_remove_node":
		delete(m.hands, c.Creature)
	default:
		h.stopped = tool == "group_stop_node"
		if r.Result.Creature != h.id || (r.Result.State == "stopped") != h.stopped {
			return fmt.Errorf("the hand is %+v", *h)
		}
	}
	return nil
}

// added applies the result of group_add_node, which follows from the living creatures.
func (m *team) added(c callArgs, r *result) error {
	want := ""
	switch {
	case len(m.hands) == mostHands:
		want = "limit"
	case m.hands[c.Name] != nil:
		want = "already_exists"
	}
	if r.Code != want {
		return fmt.Errorf("%d hands are alive: want the code %q", len(m.hands), want)
	}
	if r.OK {
		m.hands[c.Name] = &hand{id: r.Result.Creature, since: m.answered, listens: map[journal.ChannelID]bool{m.places[m.side+"-answers"]: true}}
	}
	return nil
}

// rewired applies the result of group_channel.
func (m *team) rewired(c callArgs, r *result) error {
	if !r.OK {
		return mayBe(r, "not_found", "already_exists", "not_connected")
	}
	ch := journal.ChannelID(c.Channel)
	if own, ok := m.channels[c.Channel]; ok {
		ch = own
	}
	if c.Action != "create" && r.Result.Channel != ch {
		return fmt.Errorf("the channel is %s", ch)
	}
	switch {
	case c.Action == "create" && m.channels[c.Name] != "":
		return fmt.Errorf("the channel %s exists already", m.channels[c.Name])
	case c.Action == "create":
		m.channels[c.Name] = r.Result.Channel
	case c.Action == "delete":
		m.forget(c.Channel)
	case m.listens(c.Creature) == nil:
		return fmt.Errorf("the creature %s does not exist", c.Creature)
	case c.Action == "wire":
		m.listens(c.Creature)[ch] = true
	default:
		delete(m.listens(c.Creature), ch)
	}
	return nil
}

// listens returns the channels on which a creature listens.
func (m *team) listens(name string) map[journal.ChannelID]bool {
	if h := m.hands[name]; h != nil {
		return h.listens
	}
	if name == m.side+"-relay" {
		return m.relay
	}
	return nil
}

// checkResult applies the result of group_wire.
func (m *team) checkResult(c callArgs, r *result) error {
	if !r.OK {
		return mayBe(r, "not_found", "already_exists", "invalid_argument")
	}
	from, to := m.hands[c.From], m.hands[c.To]
	w := r.Result.Wire
	switch {
	case w == nil || from == nil || w.From != from.id:
		return fmt.Errorf("the source %s of the wire does not exist", c.From)
	case c.Action == "remove" && (from.wire == nil || from.wire.ID != w.ID):
		return fmt.Errorf("the wire was %+v", from.wire)
	case c.Action == "remove":
		from.wire = nil
	case to == nil || w.To != to.id:
		return fmt.Errorf("the target %s of the wire does not exist", c.To)
	default:
		from.wire = w
	}
	return nil
}

func mayBe(r *result, codes ...string) error {
	if slices.Contains(codes, r.Code) {
		return nil
	}
	return fmt.Errorf("want one of %s", strings.Join(codes, ", "))
}

// forget removes a channel that the editor made.
func (m *team) forget(name string) {
	for _, h := range m.hands {
		delete(h.listens, m.channels[name])
	}
	delete(m.relay, m.channels[name])
	delete(m.channels, name)
}

// clone returns a copy of the team as it is now.
func (m *team) clone() *team {
	out := *m
	out.hands, out.channels, out.relay = map[string]*hand{}, maps.Clone(m.channels), maps.Clone(m.relay)
	for name, h := range m.hands {
		h := *h
		h.listens = maps.Clone(h.listens)
		out.hands[name] = &h
	}
	return &out
}

// applied undoes what the deployment does not have, because a recipe determines how its own
// creatures are connected to others. Everything that the team has made remains, because a
// Restore has restored it.
func (m *team) applied() {
	own := slices.Collect(maps.Values(m.channels))
	maps.DeleteFunc(m.relay, func(ch journal.ChannelID, _ bool) bool { return !slices.Contains(own, ch) })
}

// lines returns the parts of the team, in the form of linesOf.
func (m *team) lines() (out []string) {
	if len(m.members) == 0 {
		return nil // not applied yet
	}
	editor, relay := m.members[m.side+"-editor"], m.members[m.side+"-relay"]
	for name, id := range m.members {
		out = append(out, creatureLine(id, name, false))
	}
	for name, id := range m.places {
		out = append(out, channelLine(id, name))
	}
	for name, id := range m.channels {
		out = append(out, channelLine(id, name))
	}
	out = append(out,
		edgeLine(editor, m.places[m.side+"-orders"], journal.Listen), edgeLine(editor, m.places[m.side+"-answers"], journal.Send),
		edgeLine(relay, m.places[m.side+"-answers"], journal.Listen), edgeLine(relay, m.places[m.side+"-gate"], journal.Listen),
		edgeLine(relay, m.places[m.side+"-heard"], journal.Send))
	for ch := range m.relay {
		out = append(out, edgeLine(relay, ch, journal.Listen))
	}
	for name, h := range m.hands {
		out = append(out, creatureLine(h.id, name, h.stopped))
		for ch := range h.listens {
			out = append(out, edgeLine(h.id, ch, journal.Listen))
		}
		if h.wire != nil {
			out = append(out, wireLine(h.wire))
		}
	}
	return out
}

// joined reports whether the team connects the two sides.
func (m *team) joined() bool {
	for _, h := range m.hands {
		if h.listens[m.gate] {
			return true
		}
	}
	return m.relay[m.gate]
}
