package engine

import (
	"context"
	"slices"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
)

// outsideSend is a message from outside, as the policies leave it.
type outsideSend struct {
	Outgoing
	headers  []byte       // in the form of the ABI
	verdicts []draft.Word // to be logged, even if the message is refused
	recalled recall.Recollection
	refusal  error // by policies; nil: it is accepted
	// duplicate says that it was accepted before, so that no policy has judged it.
	duplicate bool
	seed      uint64 // of the policies' random numbers, the same for every evaluation; 0: none yet
}

// outsideSeed differs for each message from outside. A message that its producer repeats
// because it was refused is judged with the same seed.
func (e *Engine) outsideSeed(ch *channel, out *Outgoing) uint64 {
	if out.Producer != "" {
		return message.OutsideSeed(ch.id, out.Producer, out.Offset)
	}
	return message.OutsideSeed(ch.id, "", e.judgedOutside.Add(1), uint64(e.core.wallClock()))
}

// admitOutside waits until a message from outside can be accepted, and returns it as the
// policies leave it, inside the critical section of the graph. What policies say about a
// message that they refuse is logged as well, and waits for room like a message.
func (e *Engine) admitOutside(ctx context.Context, ch *channel, sent *outsideSend) (*outsideSend, section, error) {
	for {
		judged, err := e.judgeOutside(ctx, ch, sent)
		if err != nil {
			return nil, section{}, err
		}
		if judged.refusal != nil && len(judged.verdicts) == 0 {
			return nil, section{}, judged.refusal
		}
		g, err := e.core.awaitRoom(ctx, ch)
		if err != nil {
			return nil, section{}, err
		}
		g.wall = e.core.wallClock()
		switch {
		case e.core.isClosing():
			g.leave() // the store no longer accepts anything
			return nil, section{}, errtext.Closed
		case !judged.recalled.Current(g.memory):
			g.leave() // another message has changed what the policies remember
		case judged.refusal != nil:
			judged.logRefused(g)
			g.leave()
			return nil, section{}, judged.refusal
		default:
			return judged, g, nil
		}
	}
}

// judgeOutside asks the policies about a message from outside.
func (e *Engine) judgeOutside(ctx context.Context, ch *channel, sent *outsideSend) (*outsideSend, error) {
	policy := ch.policy.Load()
	if policy == nil || sent.Mark {
		return sent, nil
	}
	if sent.seed == 0 { // few channels have policies, so it is not computed for every message
		sent.seed = e.outsideSeed(ch, &sent.Outgoing)
	}
	out := *sent
	if out.duplicate = ch.wasTakenIn(&sent.Outgoing); out.duplicate {
		return &out, nil
	}
	out.recalled.Home = ch.home.memories
	d := (*policy).Send(ctx, &deploy.SendEvent{
		Graph: graphID(&ch.home), Time: e.core.wallClock(), Seed: sent.seed, Deployment: ch.deployment,
		ChannelName: ch.place().label, ChannelAddress: ch.place().address, Payload: sent.Payload, Headers: sent.Headers,
		Surroundings: deploy.Surroundings{View: ch.home.view(), Memory: out.recalled.Of(ch.deployment)},
	})
	if ctx.Err() != nil {
		return nil, errtext.StoppedWaiting(ctx)
	}
	e.core.failed.Heard(&d.Words)
	if d.Dropped == nil {
		d.DenyAsks()
	}
	out.decide(ch, &d)
	return &out, nil
}

// decide changes the message as the policies have decided.
func (out *outsideSend) decide(ch *channel, d *deploy.SendDecision) {
	var w turnWorker
	effect := &sendEffect{ch: ch}
	w.apply(effect, d)
	out.verdicts = w.turn.verdicts
	switch {
	case effect.left:
		out.refusal = d.Refusal(ch.id, ch.place().label)
		out.verdicts = slices.DeleteFunc(out.verdicts, func(v draft.Word) bool {
			return v.Effect == journal.PolicyDenied || v.Effect == journal.PolicyDropped // the error contains them
		})
	case effect.mutated:
		out.verdicts = append(out.verdicts, draft.ChangesOf(ch.id, ch.deployment, d, journal.NoteMessage(out.Payload, out.headers, d.Original))...)
		out.Payload, out.headers = effect.mutatedPayload, effect.mutatedHeaders
	}
}

// wasTakenIn is hasSeen for a caller outside of the critical section.
func (ch *channel) wasTakenIn(out *Outgoing) bool {
	if out.Producer == "" {
		return false
	}
	g := ch.home.enter()
	if g.none() {
		return false
	}
	defer g.leave()
	return ch.hasSeen(g, out)
}

// logWords logs what policies have said about the message.
func (out *outsideSend) logWords(g section, rec *journal.Record, about journal.Event) {
	for _, v := range out.verdicts {
		g.logVerdict(rec, about, v)
	}
}

// logRefused logs what policies have said about a message that is refused.
func (out *outsideSend) logRefused(g section) {
	rec := g.newRecord()
	out.logWords(g, rec, journal.Event{})
	g.append(rec)
}
