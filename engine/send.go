package engine

import (
	"context"
	"fmt"
	"maps"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Outgoing is a message from outside.
type Outgoing struct {
	Payload []byte
	Headers map[string]string
	// Durable waits until the message is as durable as its graph promises. The
	// error is then nil if it is; unknown_outcome if the message was accepted but may be
	// lost, for instance because the disk is full or the context ends meanwhile; and any
	// other code if the message was refused.
	Durable bool
	// Producer and Offset, given together, make sure that no message is accepted twice: a message
	// whose offset is not above the highest one seen from that producer on that channel is left
	// out. Offsets start at 1. A message whose outcome is unknown can be repeated with the same
	// two, even by another process: it is a duplicate if the first was not lost.
	Producer string
	Offset   uint64
	// Mark keeps the offset, and sends nothing. Policies do not judge it.
	Mark bool

	// Into is memory for the reply to a request. The reply is returned in it if it fits. After an
	// error, its content has no meaning. It should not be part of the memory of Payload, because the
	// reply is then copied once more.
	Into []byte

	kind  abi.Kind          // zero: a message
	reply chan callerAnswer // of a request
}

// Sent is the result of sending a message.
type Sent struct {
	Message journal.EventID
	Seq     uint64 // in its channel
	// Duplicate says that the message was left out because the producer's offset had been
	// seen. Message and Seq are not those of the earlier message then.
	Duplicate bool

	ch         *channel
	store      journal.Store // where it is logged; nil: nowhere
	upTo       uint64
	repeatable bool // it has a producer and an offset
}

// Wait waits until the message is as durable as its graph promises; for a duplicate,
// until the earlier message is. In a graph without a store it returns at once.
//
// Its only error has the code unknown_outcome, and says how to repeat the message without
// sending it twice. Wait may be called again, and the result may then differ.
func (s Sent) Wait(ctx context.Context) error {
	cause := s.wait(ctx)
	if cause == nil {
		return nil
	}
	return errtext.MayBeLost(s.ch.id, s.Message.String(), s.repeatable, cause)
}

// wait is Wait with the store's reason in the error.
func (s Sent) wait(ctx context.Context) error {
	if s.store == nil {
		return nil
	}
	// After a cut, all that the parents had logged is durable.
	if err := s.store.Wait(ctx, s.upTo); err != nil && s.ch.home.logsTo(s.store) {
		return err
	}
	return nil
}

// Send publishes a message on a channel. It blocks while the graph does not accept outside
// messages (see [deploy.OverflowBlock] and [journal.Store.Room]). If out.Durable is set, it also
// blocks until the message is durable. See [Outgoing] for the meaning of its errors. If ctx
// ends before the message is accepted, the message is refused with the code unavailable.
func (e *Engine) Send(ctx context.Context, channel journal.ChannelID, out Outgoing) (Sent, error) {
	l := e.core.rlock()
	ch := l.channels[channel]
	l.runlock()
	if ch == nil || ch.inbox != "" {
		err := errtext.Gone("channel", string(channel))
		err.Op = "send"
		return Sent{}, err
	}
	return e.sendGiven(ctx, ch, out)
}

// SendTo sends a message directly to a creature.
func (e *Engine) SendTo(ctx context.Context, to journal.CreatureID, out Outgoing) (Sent, error) {
	l := e.core.rlock()
	ch := l.channels[journal.InboxOf(to)]
	l.runlock()
	if ch == nil {
		err := errtext.Gone("creature", string(to))
		err.Op = "send_to"
		return Sent{}, err
	}
	return e.sendGiven(ctx, ch, out)
}

// sendGiven is sendOn with headers from outside.
func (e *Engine) sendGiven(ctx context.Context, ch *channel, out Outgoing) (Sent, error) {
	headers, err := message.OutsideHeaders("send", out.Headers)
	if err != nil {
		return Sent{}, err
	}
	return e.sendOn(ctx, ch, out, headers)
}

func (e *Engine) sendOn(ctx context.Context, ch *channel, out Outgoing, headers []byte) (Sent, error) {
	if size := len(out.Payload) + len(headers); size > deploy.MaxMessage {
		return Sent{}, &abi.Error{Code: abi.TooLarge, Op: "send", Message: fmt.Sprintf("the message has %d bytes; at most %d are allowed", size, deploy.MaxMessage), Remedy: "send it in parts"}
	}
	if (out.Producer == "") != (out.Offset == 0) {
		return Sent{}, errtext.Invalid("send", "producer and offset belong together, and offsets start at 1", "give both or neither")
	}
	select {
	case <-e.core.closing:
		return Sent{}, errtext.Closed
	default:
	}
	judged, g, err := e.admitOutside(ctx, ch, &outsideSend{Outgoing: out, headers: headers})
	if err != nil {
		return Sent{}, err
	}
	store, logged := g.store, g.seq
	var wake waker
	sent := e.publishOutside(g, ch, judged, &wake)
	g.leave()
	wake.flush(&e.core)
	sent.ch, sent.store, sent.upTo, sent.repeatable = ch, store, max(logged, sent.Message.Seq), out.Producer != ""
	if out.Durable {
		return sent, sent.Wait(ctx)
	}
	return sent, nil
}

// publishOutside gives a message its place.
func (e *Engine) publishOutside(g section, ch *channel, out *outsideSend, w *waker) Sent {
	if out.duplicate || ch.hasSeen(g, &out.Outgoing) {
		return Sent{Duplicate: true, Seq: ch.head}
	}
	rec := g.newRecord()
	if out.Producer != "" {
		if ch.producers == nil {
			ch.producers = map[string]uint64{}
		}
		ch.producers[out.Producer] = out.Offset
		if rec != nil {
			rec.Producers = append(rec.Producers, journal.ProducerRow{Channel: ch.id, Producer: out.Producer, Offset: out.Offset})
		}
	}
	if out.Mark {
		g.append(rec)
		return Sent{Seq: ch.head}
	}
	out.logWords(g, rec, journal.Event{Seq: ch.head + 1})
	out.recalled.Keep(&g.memory, rec)
	m := g.newMessage(rec, out.Payload, out.headers)
	m.Kind = abi.KindMessage
	if out.kind != 0 {
		m.Kind = out.kind
	}
	g.sequence(ch, m)
	if out.reply != nil {
		e.core.callers.Store(m.ID, out.reply)
	}
	sent := Sent{Message: m.ID, Seq: m.Seq}
	g.logMessage(rec, ch, m, journal.EventID{}, journal.EventID{})
	g.publish(ch, m, w, rec)
	m.Release()
	g.append(rec)
	return sent
}

// hasSeen reports whether the producer of a message has sent it on the channel before.
func (ch *channel) hasSeen(_ section, out *Outgoing) bool {
	return out.Producer != "" && out.Offset <= ch.producers[out.Producer]
}

// Producers returns the highest offset of every producer that has sent on a channel.
func (e *Engine) Producers(channel journal.ChannelID) (map[string]uint64, error) {
	l := e.core.rlock()
	defer l.runlock()
	ch := l.channels[channel]
	if ch == nil {
		return nil, errtext.Gone("channel", string(channel))
	}
	g := ch.home.enter()
	defer g.leave()
	return maps.Clone(ch.producers), nil
}
