package engine

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
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
	seed      uint64 // of the policies' random numbers, the same for every evaluation
}

// outsideSeed differs for each message from outside. A message that its producer repeats
// because it was refused is judged with the same seed.
func (e *Engine) outsideSeed(ch *channel, out *Outgoing) uint64 {
	number := out.Offset
	if out.Producer == "" {
		number = e.judgedOutside.Add(1)
	}
	h := fnv.New64a()
	h.Write([]byte(ch.id))
	h.Write([]byte(out.Producer))
	h.Write(binary.LittleEndian.AppendUint64(nil, number))
	if out.Producer == "" {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(e.core.wallClock())))
	}
	return h.Sum64()
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
	if policy == nil {
		return sent, nil
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
		// Interrupted policies have failed, which may deny or allow anything.
		return nil, &abi.Error{
			Code: abi.Unavailable, Op: "send", Message: "the caller stopped waiting while policies judged the message",
			Remedy: "send it again", Err: context.Cause(ctx),
		}
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
		out.verdicts = append(out.verdicts, changes(ch, d, journal.NoteMessage(out.Payload, out.headers, d.Original))...)
		out.Payload, out.headers = effect.mutatedPayload, effect.mutatedHeaders
	}
}

// changes are the verdicts of the policies that have changed a message from outside. The
// first has the original message.
func changes(ch *channel, d *deploy.SendDecision, original journal.NotedMessage) []draft.Word {
	by := d.ChangedBy
	if len(by) == 0 {
		by = []deploy.Verdict{{Policy: ch.deployment}} // it cannot be attributed to a single policy
	}
	out := make([]draft.Word, len(by))
	for i, v := range by {
		out[i] = draft.Word{Effect: journal.PolicyChanged, Judged: journal.JudgeSend, Channel: ch.id, Verdict: v}
	}
	out[0].Original = &original
	return out
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
