package engine

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/internal/approval"
	"github.com/seed47132306/terrarium/engine/internal/effects"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/message"
	"github.com/seed47132306/terrarium/engine/internal/outbound"
	"github.com/seed47132306/terrarium/engine/internal/specs"
	"github.com/seed47132306/terrarium/engine/internal/timing"
	"github.com/seed47132306/terrarium/engine/internal/veil"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
)

// creature is one member of the engine.
type creature struct {
	id   journal.CreatureID
	born uint64
	// settings belong to the worker that owns the creature (see hold). The mutation lock and
	// the graph's mu guard their changes, so that others can read them.
	settings
	deployment string
	revival

	home      graphPointer
	wiring    atomic.Pointer[wiring]
	instances atomic.Uint64 // how many have been started
	starts    atomic.Bool   // the last attempt to start one, with these settings, succeeded

	// The graph's mu guards the fields below.
	membership
	lifecycle
	mb       mailbox
	counters inspect.Counters
	pace     timing.Pace // of its storing and of its timers
	retries
	approvals approval.List // questions of policies about its turns
	jobs      []*toolJob    // outside calls of tools that wait for their turn
	// current is the delivery that a worker is handling; without one, msg is nil.
	current delivery

	wires     []journal.OutputWire          // by rising Order; replaced, never modified
	timers    map[string]*alarm             // by name
	questions map[journal.EventID]*question // unanswered requests
	sight     sight

	// schedule says which worker owns the fields below, if any. Otherwise holders of mu own them.
	schedule
	running
	memory
	tries
	job      *toolJob // what the turn handles, if not a delivery
	portrait portrait // what the log says of the creature
	glance
}

// revival says how a saved creature was brought back.
type revival struct {
	// husk marks a creature that has no module and does not run.
	husk    bool
	revived bool // made from a saved row, not by a caller
	// savedStopped says that the creature is stopped in its store, which a husk seems to
	// be in any case.
	savedStopped bool
	huskReason   error
	// unread is the stored specification of a husk, if it cannot be read.
	unread []byte
}

// storedStopped reports whether the store says that the creature is stopped.
func (c *creature) storedStopped() bool {
	if c.husk {
		return c.savedStopped
	}
	return c.stopped
}

// membership is what the topology knows of a creature.
type membership struct {
	name       string
	parent     journal.CreatureID
	privileged bool
	root       bool
	own        draft.OwnEdges // of a root; see comesWithRoot
}

// lifecycle says whether a creature takes deliveries.
type lifecycle struct {
	stopped     bool
	paused      bool // stopped, with its instance
	quarantined bool
	removed     bool
	started     bool // the start delivery has been handled
}

// runs reports whether the creature takes deliveries.
func (l *lifecycle) runs(section) bool { return !l.stopped && !l.quarantined && !l.removed }

// cold reports whether the creature needs no instance.
func (l *lifecycle) cold(section) bool { return l.removed || l.quarantined || l.stopped && !l.paused }

// condition is the state of a creature in awareness documents. A pause before another
// attempt is too short to be worth a revision, so it does not show.
func (l *lifecycle) condition() journal.CreatureState {
	switch {
	case l.quarantined:
		return journal.Quarantined
	case l.paused:
		return journal.Paused
	case l.stopped:
		return journal.Stopped
	}
	return journal.Running
}

// retries are what the supervisor knows of a creature's failures.
type retries struct {
	attempts []int64 // times of the latest attempts, for the intensity
	// retry is a failed delivery that will be tried again, before everything in the
	// mailbox. backingOff means that the pause before it is not over.
	retry      *delivery
	backingOff bool
}

// schedule says whether a worker owns the creature; the graph's mu guards it. A goroutine
// that sets scheduled makes a worker take the creature. The worker owns the creature until
// it clears scheduled.
type schedule struct {
	scheduled bool  // on the run queue or owned by a worker
	owned     bool  // owned by a worker
	hold      *hold // nil: it may run
}

// release ends a worker's ownership of the creature.
func (s *schedule) release(g section) {
	s.scheduled, s.owned = false, false
	s.hold.handOver(g)
}

// running is the instance of a creature; see schedule for its owner.
type running struct {
	instance abi.Instance
	handles  *handles
	brief    bool   // the last turn was short
	asleep   bool   // it hibernates: it has no instance until its next turn
	swept    uint64 // its turns at the last sweep, and one; see core.hibernate
}

// memory is the state of a creature.
type memory struct {
	state     *effects.State // nil until loaded; the graph's mu guards writes, too
	stateSize int64
}

// tries counts consecutive attempts.
type tries struct {
	attempt   int // failed attempts of the current delivery
	waits     int // for the store
	conflicts int // of a turn with another change of the graph
}

// glance is what the current turn sees: the graph's shape and the creature's wiring when the turn
// began. For a creature that has ever read it, the awareness document is included.
type glance struct {
	shape  uint64
	facing *wiring
	reads  bool
	beheld *outlook.View
}

// settings are what determines how a creature's turns run.
type settings struct {
	spec   deploy.CreatureSpec // what it was made from
	limits *abi.Limits         // with defaults filled in; never modified
	// configText holds the configuration's attributes in the ABI's format.
	configText map[string][]byte
	module     abi.Module
	veil       *veil.Veil                  // of sensitive values; nil if there are none
	watches    bool                        // its module wants notifications of changes of its surroundings
	usesTools  bool                        // its module imports the hostcall for group tools
	outside    map[string]*outbound.Access // what it can reach, by id
	proved     bool                        // in a copy for a plan: see creature.starts
}

// restart is the restart policy with defaults filled in.
func (s *settings) restart() deploy.RestartPolicy { return s.spec.Restart.WithDefaults() }

// config is the configuration as JSON.
func (s *settings) config() []byte { return specs.JSON(s.spec.Config) }

// newCreature checks a specification and prepares a creature from it.
func newCreature(id journal.CreatureID, spec deploy.CreatureSpec, m abi.Module) (*creature, error) {
	c := &creature{
		id: id, membership: membership{name: spec.Name, parent: spec.Parent, privileged: spec.Privileged}, lifecycle: lifecycle{stopped: spec.Stopped},
		settings: settings{spec: spec, module: m, limits: specs.Limits(spec.Limits)},
	}
	c.spec.Wasm = nil // the module has it; do not keep a second copy
	c.watches, c.usesTools = watchesGraph(m), slices.ContainsFunc(m.Info().Imports, func(i abi.Import) bool { return i.Name == "tool" })
	c.reads = c.watches
	c.mb = mailbox{creature: c, bound: c.limits.Mailbox}
	c.wiring.Store(noWiring)
	var err error
	if c.configText, err = specs.Config(spec.Name, spec.Config); err != nil {
		return nil, err
	}
	c.veil = veil.Of(&spec)
	return c, nil
}

// hasWork reports whether there is work to do.
func (c *creature) hasWork(g section) bool {
	return c.runs(g) && !c.backingOff && !c.approvals.Parked && c.hold == nil && (!c.started || c.retry != nil || c.mb.waiting() || len(c.jobs) > 0 || c.curious(g))
}

// wake schedules the creature if it has work and is not scheduled. A paused engine has no
// workers, and schedules none: a creature on its queue would count as busy forever. The
// caller flushes w after it has left the critical section.
func (c *creature) wake(g section, w *waker) {
	if c.scheduled || !c.hasWork(g) || g.engine.paused {
		return
	}
	c.scheduled = true
	w.Add(c, &g.engine.idle)
}

func (c *creature) engine() *core { return c.home.load().engine }

// row returns the creature's row in its store.
func (c *creature) row(g section) journal.CreatureRow {
	return c.rowWith(g, c.paused, c.approvals.Rows(c.next()))
}

// rowWith is row with other questions of policies, and maybe paused.
func (c *creature) rowWith(_ section, paused bool, approvals []journal.ApprovalRow) journal.CreatureRow {
	row := journal.CreatureRow{
		ID: c.id, Name: c.name, Deployment: c.deployment, Address: c.spec.Address, Born: c.born,
		Parent: c.parent, Privileged: c.privileged, Root: c.root, Stopped: c.storedStopped(), Started: c.started,
		Module: c.spec.Module, SHA256: c.module.Info().SHA256, Spec: specs.Row{StoredSpec: deploy.NewStoredSpec(&c.spec), Own: c.own.List(), Awareness: c.sight.stored(), Approvals: approvals, Paused: paused}.Encode(),
	}
	if c.husk && c.unread != nil {
		row.Spec = c.unread
	}
	return row
}

// bootMessage is the message of a call that handles no delivery.
var bootMessage = func() *message.Message {
	m := message.New(nil, nil)
	m.Retain()
	return m
}()

// loadState reads the creature's state unless it is loaded. The caller owns the
// creature (see scheduled).
func (c *creature) loadState(ctx context.Context) error {
	if c.state != nil {
		return nil
	}
	state, size, err := c.storedState(ctx)
	if g := c.home.enter(); !g.none() {
		if err == nil {
			c.state, c.stateSize = state, size
		}
		g.leave()
		return err
	}
	return errtext.Gone("creature", string(c.id))
}

// storedState reads the creature's state from the store, if its graph has one.
func (c *creature) storedState(ctx context.Context) (state *effects.State, size int64, err error) {
	for {
		g := c.home.enter()
		if g.none() {
			return nil, 0, errtext.Gone("creature", string(c.id))
		}
		store := g.store
		g.leave()
		var saved map[string][]byte
		if store != nil {
			saved, err = store.State(ctx, c.id)
		}
		if err == nil || ctx.Err() != nil || c.home.logsTo(store) { // otherwise a cut closed the store meanwhile
			state, size = effects.StateOf(saved)
			return state, size, err
		}
	}
}

// hold keeps a creature from beginning another turn. Its deliveries wait in its mailbox.
// As soon as no worker owns the creature, the holder does.
type hold struct {
	quiet chan struct{} // closed when no worker owns the creature
	over  bool          // quiet is closed
}

// handOver makes the holder the owner of the creature. The caller has owned it until now.
func (h *hold) handOver(section) {
	if h != nil && !h.over {
		h.over = true
		close(h.quiet)
	}
}

// portrait is a creature's setting as it was last noted. The worker that owns the
// creature owns it.
type portrait struct {
	wiring *wiring // nil: it must be noted again
	number uint64  // how many were noted
	turns  int     // since then
}

// alarm is a timer that a creature has set. The graph's mu guards it.
type alarm struct {
	row   journal.TimerRow
	timer *timing.Timer
	held  bool // it became due while the creature did not run
}

// question is an open request of a creature. The graph's mu guards it.
type question struct {
	// key is the id with which the request was sent. The id in row, which the log and the
	// store have, differs if the graph had no store then.
	key   journal.EventID
	row   journal.RequestRow
	timer *timing.Timer
	// out is the request to a capability, or nil for a request to a creature. call executes it.
	out  *journal.OutboundRequest
	call *outbound.Call
}

// toolJob is a call of a group tool from outside, on behalf of a creature.
type toolJob struct {
	name string
	args []byte
	msg  *message.Message // in place of a delivery

	// The worker that owns the creature owns these.
	result []byte
	err    error
	again  bool // the turn is to be run again

	done chan jobAnswer // has room for one
}

type jobAnswer struct {
	result []byte
	err    error
	store  journal.Store // store that the turn is logged in; nil: none
	seq    uint64
}

// noteDealt records that a creature has handled a delivery. It reports whether the
// creature's row changes: it does for start and for notifications.
func (c *creature) noteDealt(_ section, kind abi.Kind) bool {
	start := kind == abi.KindStart
	c.started = c.started || start
	if !c.watches || c.beheld == nil || !start && kind != abi.KindGraphChanged {
		return start
	}
	c.sight.notified = c.beheld.Revision()
	return true
}
