package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/outlets"
	"github.com/seed47132306/terrarium/engine/internal/recall"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/tools"
)

// turn collects the effects that a guest requests during one call; it implements
// [abi.Turn]. It belongs to one worker, which reuses it for its next turn.
type turn struct {
	effects.Own
	e      *core
	c      *creature
	kind   abi.Kind
	d      delivery // d.msg is never nil
	now    int64
	wiring *wiring
	// ctx is the context of the current call, because the calls of a guest do not pass it on.
	ctx context.Context

	sends   []sendEffect
	asked   int // requests among them
	reached []journal.ReachNote
	wired   []outlets.Delivery // deliveries of the output over its wires
	replied bool
	reply   effects.Span
	// replyHere says that the reply is in the memory of the caller that runs the turn, not in reply.
	replyHere bool
	verdicts  []draft.Word
	judged    bool                // policies have changed or left out a send
	recalled  recall.Recollection // by the policies that judge what the turn does
	asking    approval.Asking     // of policies about what the turn does
	fuel      int64               // what the guest used; -1 if the host does not count it

	tools *toolUse // nil unless the turn has called a group tool
	alone *locked  // the mutation lock, if the turn holds it; see handleAlone

	caller *callerTurn // of the worker

	detailJSON []byte // the source detail, once it was requested
	looked     bool   // the awareness document was requested
	late       bool   // and is newer than the turn

	rng *rand.ChaCha8
}

// sendEffect is one message that the turn requests to send: on a channel, which is looked
// up again by its alias if the wiring has changed meanwhile, or to a creature.
type sendEffect struct {
	alias   string
	ch      *channel
	to      *creature
	payload effects.Span
	headers effects.Span
	ask     *ask   // nil unless it is a request
	reach   *reach // nil unless it is one to a capability; then headers is its head

	// The decision of the policies.
	mutated        bool
	mutatedPayload []byte
	mutatedHeaders []byte
	left           bool // denied or dropped: leave it out
	keep           bool // log it as it was
}

// begin prepares the turn for one call into c's instance.
func (t *turn) begin(ctx context.Context, c *creature, d delivery, kind abi.Kind, readOnly bool) {
	t.Begin(c.limits, c.veil, c.state, c.stateSize, readOnly)
	t.ctx, t.c, t.d, t.kind = ctx, c, d, kind
	t.now = d.msg.Time
	if c.spec.Grants.Clock {
		t.now = 0
	}
	t.wiring = c.wiring.Load()
}

// start makes an instance of a creature, unless it has one. The caller owns the
// creature's instance (see scheduled).
func (t *turn) start(ctx context.Context, c *creature) error {
	if c.instance != nil {
		return nil
	}
	c.handles = &handles{index: map[string]int32{}}
	t.begin(ctx, c, delivery{msg: bootMessage}, 0, true)
	instance, err := c.module.Instantiate(ctx, c.limits, t)
	if c.starts.Store(err == nil); err != nil {
		return c.veil.Error(err)
	}
	c.instance, c.asleep = instance, false
	c.instances.Add(1)
	return nil
}

// reset discards what was collected, and keeps the memory unless it is large.
func (t *turn) reset() {
	t.Reset()
	t.fuel = 0
	t.sends = effects.Emptied(t.sends)
	t.verdicts, t.judged = effects.Emptied(t.verdicts), false
	t.recalled.Forget()
	t.asking = approval.Asking{}
	t.replied, t.replyHere, t.reply, t.detailJSON = false, false, effects.Span{}, nil
	t.looked, t.late = false, false
	t.asked, t.reached = 0, effects.Emptied(t.reached)
	if t.tools != nil {
		t.tools.Discard()
		t.tools = nil
	}
	t.wired = effects.Emptied(t.wired)
	t.ctx, t.c, t.d, t.wiring, t.rng = nil, nil, delivery{}, nil, nil
}

// ask is what a request has in addition to a send.
type ask struct {
	deadline time.Duration
	tag      int64
}

// toolUse is a turn's use of the group tools.
type toolUse struct {
	tools.Use
	bytes int64 // of the calls and their results, which are read, judged and noted
	// recalled is what policies recalled that judge calls.
	recalled recall.Recollection
	// graph and shape are what the turn sees: one topology with its own operations. If a
	// later call finds another topology, the turn is run again.
	graph    *graph
	shape    uint64
	conflict bool
	log      []journal.NotedCall
}

// stop runs creature_stop of a creature's instance, if it has one, and closes the instance.
// Failures are ignored, because the instance is no longer used. The caller owns the creature.
func (t *turn) stop(ctx context.Context, c *creature) {
	if c.instance != nil {
		t.begin(ctx, c, delivery{msg: bootMessage}, 0, true)
		if err := c.veil.Error(c.instance.Stop(ctx, t)); err != nil {
			t.e.log.Debug("stopping an instance", "creature", c.id, "error", err)
		}
		t.reset()
	}
	t.e.discardInstance(ctx, c)
	c.asleep = false
}

// kindTool is the kind of a turn that calls one group tool instead of the guest.
const kindTool abi.Kind = -1

// changesGraph reports whether the turn has operations on the graph to apply.
func (t *turn) changesGraph() bool { return t.tools != nil && t.tools.Len() > 0 }
