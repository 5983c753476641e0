package engine

import (
	"context"
	"fmt"

	"github.com/seed47132306/terrarium/abi"
)

// Outgoing is a message from outside.
type Outgoing struct {
	Payload []byte
	Headers map[string]string
	// Durable waits until the message is as durable as its graph promises.
	Durable bool
	// Producer and Offset, given together, make sure that nothing is taken in
	// twice: a message whose offset is not above the highest one seen from
	// that producer on that channel is left out. Offsets start at 1.
	Producer string
	Offset   uint64

	kind  abi.Kind          // zero: a message
	reply chan callerAnswer // of a request
}

// Sent says what became of a message.
type Sent struct {
	Message EventID
	Seq     uint64 // in its channel
	// Duplicate says that it was left out: the producer's offset had been
	// seen. Message and Seq are not those of the earlier message then.
	Duplicate bool

	ch    *channel
	store Store // where it is logged; nil: nowhere
	upTo  uint64
}

// Wait waits until the message is as durable as its graph promises; for a
// duplicate, until the message is that was taken in before it. In a graph
// without a store there is nothing to wait for.
func (s Sent) Wait(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	// After a cut, all that the parents had logged is durable.
	if err := s.store.Wait(ctx, s.upTo); err != nil && s.ch.home.logsTo(s.store) {
		return err
	}
	return nil
}

// Send publishes a message on a channel. It blocks while the graph does not
// take in outside messages (see [OverflowBlock] and [Store.Room]) and, if asked
// to, until the message is durable.
func (e *Engine) Send(ctx context.Context, channel ChannelID, out Outgoing) (Sent, error) {
	e.mu.RLock()
	ch := e.channels[channel]
	e.mu.RUnlock()
	if ch == nil || ch.inbox != "" {
		err := gone("channel", string(channel))
		err.Op = "send"
		return Sent{}, err
	}
	return e.sendOn(ctx, ch, out)
}

// SendTo sends a message directly to a creature.
func (e *Engine) SendTo(ctx context.Context, to CreatureID, out Outgoing) (Sent, error) {
	e.mu.RLock()
	ch := e.channels[InboxOf(to)]
	e.mu.RUnlock()
	if ch == nil {
		err := gone("creature", string(to))
		err.Op = "send_to"
		return Sent{}, err
	}
	return e.sendOn(ctx, ch, out)
}

// MaxMessage is the most bytes that a message from outside may have, headers
// included.
const MaxMessage = 16 << 20

func (e *Engine) sendOn(ctx context.Context, ch *channel, out Outgoing) (Sent, error) {
	headers, ok := EncodeHeaders(out.Headers)
	if !ok {
		return Sent{}, invalid("send", "a header has no name, or contains NUL", "use other names and values")
	}
	if size := len(out.Payload) + len(headers); size > MaxMessage {
		return Sent{}, &abi.Error{Code: abi.TooLarge, Op: "send", Message: fmt.Sprintf("the message has %d bytes; at most %d are allowed", size, MaxMessage), Remedy: "send it in parts"}
	}
	if (out.Producer == "") != (out.Offset == 0) {
		return Sent{}, invalid("send", "producer and offset belong together, and offsets start at 1", "give both or neither")
	}
	select {
	case <-e.closing:
		return Sent{}, errClosed
	default:
	}
	judged, g, err := e.admitOutside(ctx, ch, &outsideSend{payload: out.Payload, headers: headers, plain: out.Headers})
	if err != nil {
		return Sent{}, err
	}
	if e.isClosing() {
		g.mu.Unlock() // the store takes nothing in any more
		return Sent{}, errClosed
	}
	store, logged := g.store, g.seq
	sent, wake := e.publishOutside(g, ch, judged, out)
	wake.flush(e.queue)
	sent.ch, sent.store, sent.upTo = ch, store, max(logged, sent.Message.Seq)
	if out.Durable {
		return sent, sent.Wait(ctx)
	}
	return sent, nil
}

// outsideSend is a message from outside as policies leave it.
type outsideSend struct {
	payload, headers []byte
	plain            map[string]string // the headers, before policies
	verdicts         []policyVerdict
	recalled         recollection
}

// admitOutside waits until a message from outside is taken in, and answers it as
// the policies leave it, with the critical section of the graph entered.
func (e *Engine) admitOutside(ctx context.Context, ch *channel, sent *outsideSend) (*outsideSend, *graph, error) {
	for {
		judged, err := e.judgeOutside(ctx, ch, sent)
		if err != nil {
			return nil, nil, err
		}
		g, err := e.awaitRoom(ctx, ch)
		if err != nil {
			return nil, nil, err
		}
		if judged.recalled.current(g) {
			return judged, g, nil
		}
		g.mu.Unlock() // another message has changed what the policies remember
	}
}

// judgeOutside asks the policies about a message from outside.
func (e *Engine) judgeOutside(ctx context.Context, ch *channel, sent *outsideSend) (*outsideSend, error) {
	policy := ch.policy.Load()
	if policy == nil {
		return sent, nil
	}
	var w worker
	w.turn.e = e
	effect := &sendEffect{ch: ch}
	out := *sent
	out.recalled.home = ch.home.lock
	d := (*policy).Send(ctx, &SendEvent{
		Graph: graphID(&ch.home), Time: e.clock.Now().UnixNano(), Deployment: ch.deployment,
		ChannelName: ch.label, ChannelAddress: ch.address, Payload: sent.payload, Headers: sent.plain,
		Surroundings: Surroundings{View: ch.home.view(), Memory: out.recalled.of(ch.deployment)},
	})
	w.apply(effect, &d)
	out.verdicts = w.turn.verdicts
	switch {
	case len(d.Denials) > 0:
		return nil, refusedSend(ch, "denied", d.Denials[0])
	case effect.left:
		return nil, refusedSend(ch, "dropped", *d.Dropped)
	case effect.mutated:
		out.payload, out.headers = effect.mutatedPayload, effect.mutatedHeaders
	}
	return &out, nil
}

func refusedSend(ch *channel, what string, v Verdict) error {
	return &abi.Error{
		Code: abi.Denied, Op: "send", Message: fmt.Sprintf("policy %s %s it: %s", v.Policy, what, v.Reason),
		Remedy: "see the policy at " + v.Where, IDs: map[string]string{"channel": string(ch.id), "policy": v.Policy, "where": v.Where},
	}
}

// publishOutside gives a message its place. The caller has entered the
// critical section of g, which this leaves.
func (e *Engine) publishOutside(g *graph, ch *channel, judged *outsideSend, out Outgoing) (Sent, *waker) {
	defer g.mu.Unlock()
	g.wall = e.wallClock()
	w := &waker{}
	if out.Producer != "" {
		if seen := ch.producers[out.Producer]; out.Offset <= seen {
			return Sent{Duplicate: true, Seq: ch.head}, w
		}
	}
	rec := g.newRecord()
	for _, v := range judged.verdicts {
		g.logVerdict(rec, Event{}, v)
	}
	judged.recalled.keep(g, rec)
	m := g.newMessage(rec, judged.payload, judged.headers)
	m.kind = abi.KindMessage
	if out.kind != 0 {
		m.kind = out.kind
	}
	g.sequence(ch, m)
	if out.reply != nil {
		e.callers.Store(m.id, out.reply)
	}
	if out.Producer != "" {
		if ch.producers == nil {
			ch.producers = map[string]uint64{}
		}
		ch.producers[out.Producer] = out.Offset
		if rec != nil {
			rec.Producers = append(rec.Producers, ProducerRow{ch.id, out.Producer, out.Offset})
		}
	}
	sent := Sent{Message: m.id, Seq: m.seq}
	g.logMessage(rec, ch, m, EventID{}, EventID{})
	g.publish(ch, m, w, rec)
	m.release()
	g.append(rec)
	return sent, w
}

// Producers returns the highest offset of every producer that has sent on a
// channel.
func (e *Engine) Producers(channel ChannelID) (map[string]uint64, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	ch := e.channels[channel]
	if ch == nil {
		return nil, gone("channel", string(channel))
	}
	g := ch.home.lock()
	defer g.mu.Unlock()
	out := make(map[string]uint64, len(ch.producers))
	for p, o := range ch.producers {
		out[p] = o
	}
	return out, nil
}
