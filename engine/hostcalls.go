package engine

import (
	"cmp"
	crand "crypto/rand"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

func (t *turn) HasFeature(f abi.Feature) bool { return hasFeature(f) }

func hasFeature(f abi.Feature) bool {
	return f == abi.FeatureTimers || f == abi.FeatureRequests || f == abi.FeatureTools || f == abi.FeatureHTTP || f == abi.FeatureAwareness
}

func (t *turn) Source(s abi.Source) ([]byte, abi.Code) {
	m := t.d.msg
	switch s {
	case abi.SourcePayload:
		return m.Payload, abi.OK
	case abi.SourceHeaders:
		return m.GuestHeaders(), abi.OK
	case abi.SourceChannel:
		return t.Text(t.channel()), abi.OK
	case abi.SourceSender:
		return t.Text(m.SenderName), abi.OK
	case abi.SourceMessageID:
		return t.Text(m.ID.String()), abi.OK
	case abi.SourceDetail:
		if t.detailJSON == nil {
			t.detailJSON = t.detail()
		}
		return t.detailJSON, abi.OK
	case abi.SourceConfig:
		return t.c.config(), abi.OK
	case abi.SourceSelf:
		return t.Text(t.wiring.name), abi.OK
	case abi.SourceAwarenessJSON, abi.SourceAwarenessMarkdown, abi.SourceAwarenessRevision:
		return t.awareness(s)
	}
	return nil, t.Fail(abi.NotFound, "see the table of sources", "there is no source %d", s)
}

// channel is the creature's name for the channel of the delivery; for the inbox, the
// inbox's own name.
func (t *turn) channel() string {
	return cmp.Or(t.d.alias(), t.wiring.name)
}

// detail is the JSON of the source detail.
func (t *turn) detail() []byte {
	return t.d.msg.Detail(t.kind, t.d.direct(), t.c.attempt+1, t.notice())
}

func (t *turn) Config(key []byte) ([]byte, abi.Code) {
	if int64(len(key)) <= t.c.limits.StateKey { // the cost of looking up a key grows with its length
		if v, ok := t.c.configText[string(key)]; ok {
			return v, abi.OK
		}
	}
	return nil, t.Fail(abi.NotFound, "set it in the creature's config", "the configuration has no attribute %s", errtext.Quoted(key))
}

func (t *turn) Channel(alias []byte) int32 {
	in := t.c.handles
	if len(alias) == 0 || len(alias) > deploy.MaxNameBytes || !utf8.Valid(alias) {
		return t.Fail(abi.InvalidArgument, "name a channel as the creature does", "an alias is UTF-8 of 1 to %d bytes", deploy.MaxNameBytes).Status()
	}
	if h, ok := in.index[string(alias)]; ok {
		return h
	}
	if len(in.names) >= t.c.limits.Handles {
		return t.OverLimit("handles", int64(t.c.limits.Handles)).Status()
	}
	h := int32(len(in.names))
	name := string(alias)
	in.names = append(in.names, handle{alias: name})
	in.index[name] = h
	return h
}

func (t *turn) Send(h int32, payload, headers []byte) int32 {
	if code := t.Effect(); code != abi.OK {
		return code.Status()
	}
	headers = journal.WithoutReserved(headers, t.d.msg.Headers)
	if h == abi.AllChannels {
		return t.sendAll(payload, headers)
	}
	names := t.c.handles.names
	if h < 0 || int(h) >= len(names) {
		return t.Fail(abi.InvalidArgument, "look handles up with the function channel", "%d is not a channel handle", h).Status()
	}
	known := &names[h]
	if known.wiring != t.wiring {
		known.wiring, known.ch = t.wiring, t.wiring.byAlias[known.alias]
	}
	if known.ch == nil {
		return t.Fail(abi.NotConnected, "connect the creature to a channel under that alias", "the creature has no send alias %q", known.alias).Status()
	}
	if code := t.Room(1, payload, headers); code != abi.OK {
		return code.Status()
	}
	t.sends = append(t.sends, sendEffect{alias: known.alias, ch: known.ch, payload: t.Keep(payload), headers: t.Keep(headers)})
	return 1
}

func (t *turn) sendAll(payload, headers []byte) int32 {
	edges := t.wiring.sends
	if len(edges) == 0 {
		return t.Sendable(payload, headers).Status()
	}
	if code := t.Room(len(edges), payload, headers); code != abi.OK {
		return code.Status()
	}
	p, hd := t.Keep(payload), t.Keep(headers)
	for _, e := range edges {
		t.sends = append(t.sends, sendEffect{alias: e.alias, ch: e.ch, payload: p, headers: hd})
	}
	return int32(len(edges))
}

func (t *turn) SendTo(to, payload []byte) abi.Code {
	if code := t.Effect(); code != abi.OK {
		return code
	}
	target := t.peer(to)
	if target == nil {
		return t.Fail(abi.NotFound, "name a creature of this graph, by its id or name", "there is no creature %s in this graph", errtext.Quoted(to))
	}
	if code := t.Room(1, payload, nil); code != abi.OK {
		return code
	}
	t.sends = append(t.sends, sendEffect{to: target, payload: t.Keep(payload)})
	return abi.OK
}

// peer finds a creature of the own graph by id or name, including those that the turn adds.
func (t *turn) peer(name []byte) *creature {
	if len(name) > deploy.MaxNameBytes {
		return nil
	}
	if c := t.neighbour(name); c != nil || !t.changesGraph() {
		return c
	}
	return t.addition(string(name))
}

// neighbour finds a creature that is already in the own graph.
func (t *turn) neighbour(name []byte) *creature {
	g := t.c.home.enter()
	if g.none() {
		return nil
	}
	defer g.leave()
	if c := g.creatures[journal.CreatureID(name)]; c != nil {
		return c
	}
	return g.names[string(name)]
}

func (t *turn) Now() int64 {
	if t.c.spec.Grants.Clock {
		return t.e.clock.Given().UnixNano()
	}
	return t.now
}

// Random is seeded by the delivery's id and the creature's. So listeners to one message
// draw different numbers, and each draws the same ones when the turn is run again.
func (t *turn) Random(p []byte) {
	if t.c.spec.Grants.Random {
		crand.Read(p) // never fails
		return
	}
	if t.rng == nil {
		t.rng = t.d.msg.Random(t.c.id, t.kind)
	}
	t.rng.Read(p)
}
