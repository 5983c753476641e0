package terrarium

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/topology"
)

// What a program asks of the engine, by the names that it has there.

// Batch carries out the steps that f takes, all or nothing: if f answers an
// error, nothing has changed. f must not call methods of the engine; it blocks
// all other changes while it runs.
func (t *Terrarium) Batch(ctx context.Context, f func(b *engine.Batch) error) error {
	return t.engine.Batch(ctx, f)
}

// Change carries out operations of the topology in order, all or nothing, and
// returns one outcome for each. Operations that add creatures are not among
// them: see [Terrarium.AddCreature] and [Terrarium.Batch].
func (t *Terrarium) Change(ctx context.Context, ops ...topology.Op) ([]engine.Outcome, error) {
	return t.engine.Change(ctx, ops...)
}

// AddCreature adds a creature and starts it, unless its specification says
// otherwise. It belongs to the deployment of its parent, else of a channel that it
// is wired to, else, if it joins a graph, as a channel of that would; with an
// address it belongs to none. The module is loaded and an instance started before anything
// changes, so a creature that cannot start is an error here.
func (t *Terrarium) AddCreature(ctx context.Context, spec deploy.CreatureSpec) (engine.Added, error) {
	return t.engine.AddCreature(ctx, spec)
}

// Prepare makes a creature ready to be added by [engine.Batch.AddPrepared]. It takes as
// long as its guest takes to be compiled and to start, and holds up nobody. What
// is not added has to be discarded.
func (t *Terrarium) Prepare(ctx context.Context, spec deploy.CreatureSpec) (*engine.Prepared, error) {
	return t.engine.Prepare(ctx, spec)
}

// RemoveCreature removes a creature, and its workers if they go with it (see
// [deploy.Workers]); its graph may split. Deliveries that wait for it become dead
// letters.
func (t *Terrarium) RemoveCreature(ctx context.Context, id journal.CreatureID) (engine.Outcome, error) {
	return t.engine.RemoveCreature(ctx, id)
}

// AddChannel declares a channel in a graph.
func (t *Terrarium) AddChannel(ctx context.Context, g journal.GraphID, name, description string) (engine.Outcome, error) {
	return t.engine.AddChannel(ctx, g, name, description)
}

// RemoveChannel drops a channel with its edges; its graph may split. What its
// listeners have not read becomes dead letters.
func (t *Terrarium) RemoveChannel(ctx context.Context, id journal.ChannelID) (engine.Outcome, error) {
	return t.engine.RemoveChannel(ctx, id)
}

// AddWire adds an output wire and returns it with its id. It answers not_found
// for creatures and predicates that do not exist, not_connected for creatures
// of two graphs, already_exists for a name or a wire that From has already, and
// limit for one wire too many.
func (t *Terrarium) AddWire(ctx context.Context, w journal.OutputWire) (journal.OutputWire, error) {
	return t.engine.AddWire(ctx, w)
}

// RemoveWire removes an output wire and returns what it was. Turns that commit
// from now on deliver nothing over it.
func (t *Terrarium) RemoveWire(ctx context.Context, id journal.WireID) (journal.OutputWire, error) {
	return t.engine.RemoveWire(ctx, id)
}

// AssignRoot makes a creature the root of its deployment, and privileged. Within its
// graph the members may send on the report channel, which is made if there is none,
// and the root gets its edges; also those that it lacks, if it is the root already.
// Whoever was the root before is it no more: what it had because of that goes, which
// may split its graph, and its privilege stays. A report channel in another graph
// goes with it.
//
// If the creature belongs to no deployment, then it and all others of its graph that
// belong to none become one.
func (t *Terrarium) AssignRoot(ctx context.Context, id journal.CreatureID) (engine.Rooted, error) {
	return t.engine.AssignRoot(ctx, id)
}

// Send publishes a message on a channel. It blocks while the graph does not
// take in outside messages (see [deploy.OverflowBlock] and [Store.Room]) and, if asked
// to, until the message is durable; see [engine.Outgoing] for what its errors say. When ctx
// ends before the message is taken in, that is unavailable, and a refusal.
func (t *Terrarium) Send(ctx context.Context, channel journal.ChannelID, out engine.Outgoing) (engine.Sent, error) {
	return t.engine.Send(ctx, channel, out)
}

// SendTo sends a message directly to a creature.
func (t *Terrarium) SendTo(ctx context.Context, to journal.CreatureID, out engine.Outgoing) (engine.Sent, error) {
	return t.engine.SendTo(ctx, to, out)
}

// Request sends a direct message to a creature and waits for its reply, and
// until that is as durable as its graph promises. A deadline of zero means
// [engine.DefaultRequestDeadline].
//
// The codes of the error: deadline when no reply came in time, and unknown_outcome
// when ctx ended, the engine was closed or the store failed before one was durable:
// the request may have been handled, or may be yet; unavailable when the creature
// handled the request without replying; not_connected when it was removed before it
// did; what the creature failed with when the request became a dead letter. Others
// say that the request was refused.
func (t *Terrarium) Request(ctx context.Context, to journal.CreatureID, out engine.Outgoing, deadline time.Duration) ([]byte, error) {
	return t.engine.Request(ctx, to, out, deadline)
}

// Ask is the first half of [Terrarium.Request]: it returns when the request has
// its place in the creature's inbox. The caller must call Reply once.
func (t *Terrarium) Ask(ctx context.Context, to journal.CreatureID, out engine.Outgoing, deadline time.Duration) (*engine.Call, error) {
	return t.engine.Ask(ctx, to, out, deadline)
}

// Read starts reading a channel under a name. Two readers of one name on one
// channel at a time are refused with already_exists. The caller must close the
// reader.
func (t *Terrarium) Read(channel journal.ChannelID, name string, o engine.ReaderOptions) (*engine.Reader, error) {
	return t.engine.Read(channel, name, o)
}

// Tool calls a group tool in the name of a creature, as a turn of its own without a
// delivery, and answers what the guest would get: the result as JSON, or the error.
// It waits until the turn is committed and as durable as its graph promises. A
// creature that does not run answers stopped. If ctx ends or the engine is closed
// first, or the store fails, that is unknown_outcome: the call may have happened, or
// may yet.
func (t *Terrarium) Tool(ctx context.Context, caller journal.CreatureID, name string, args []byte) ([]byte, error) {
	return t.engine.Tool(ctx, caller, name, args)
}

// StartTool begins what [Terrarium.Tool] does, and returns at once. Calls of one caller
// are made in the order in which they began.
func (t *Terrarium) StartTool(caller journal.CreatureID, name string, args []byte) (*engine.ToolCall, error) {
	return t.engine.StartTool(caller, name, args)
}

// WaitIdle waits until no delivery is runnable, no turn is running and no
// failed one is waiting to be tried again. Deliveries of stopped and
// quarantined creatures do not count. It answers deadline when ctx ends first.
func (t *Terrarium) WaitIdle(ctx context.Context) error {
	return t.engine.WaitIdle(ctx)
}

// Redeliver delivers a dead letter again: through the inbox of its creature, where
// a message of a channel comes as one of that channel, as it did the first time; or, if it was a send that no edge led anywhere for, through the channel that
// the sender calls by that alias now. If a recipe took its creature away and has
// brought another one to the same address since, that one gets it. The letter is the
// id of the dead letter or of its message, which must be unique in the graph. It is
// gone from the dead letters then; if it fails again, a new one is made.
func (t *Terrarium) Redeliver(ctx context.Context, graph journal.GraphID, letter journal.EventID) (engine.Sent, error) {
	return t.engine.Redeliver(ctx, graph, letter)
}

// FindCreature finds a creature by id, or by a name that is unique in the
// engine, or in a graph if one is given.
func (t *Terrarium) FindCreature(g journal.GraphID, name string) (journal.CreatureID, error) {
	return t.engine.FindCreature(g, name)
}

// FindChannel finds a channel by id, or by a name that is unique in the
// engine, or in a graph if one is given.
func (t *Terrarium) FindChannel(g journal.GraphID, name string) (journal.ChannelID, error) {
	return t.engine.FindChannel(g, name)
}

// FindWire finds an output wire by its id or, if a creature is given that it
// leads out of, by its name.
func (t *Terrarium) FindWire(from journal.CreatureID, name string) (journal.OutputWire, error) {
	return t.engine.FindWire(from, name)
}

// Status describes the graphs, eldest first: all of them, or the one given, by
// any id it has had.
func (t *Terrarium) Status(graph journal.GraphID) ([]engine.GraphStatus, error) {
	return t.engine.Status(graph)
}

// Wires lists the output wires of a graph, or of all, those of elder creatures
// first.
func (t *Terrarium) Wires(id journal.GraphID) ([]journal.OutputWire, error) {
	return t.engine.Wires(id)
}

// WiresOf lists the output wires that lead out of a creature, and those of its
// graph that lead to it, as a root too.
func (t *Terrarium) WiresOf(creature journal.CreatureID) (out, in []journal.OutputWire, err error) {
	return t.engine.WiresOf(creature)
}

// Awareness returns the awareness document of a creature as it is now.
func (t *Terrarium) Awareness(id journal.CreatureID) (*outlook.View, error) {
	return t.engine.Awareness(id)
}

// State returns a creature's state, by rising key: all of it, or the keys with
// a prefix.
func (t *Terrarium) State(ctx context.Context, creature journal.CreatureID, prefix string) ([]engine.StateEntry, error) {
	return t.engine.State(ctx, creature, prefix)
}

// Timers returns the timers that a creature has set, by name.
func (t *Terrarium) Timers(creature journal.CreatureID) ([]journal.TimerRow, error) {
	return t.engine.Timers(creature)
}

// DeadLetters returns the dead letters of a graph in the order in which they
// became such, or those of one creature if one is given: at most limit (0:
// 1,000), after the one of the given id. A graph without a store keeps the last
// 1,000, and no more than 2 MiB of them.
func (t *Terrarium) DeadLetters(ctx context.Context, graph journal.GraphID, creature journal.CreatureID, after journal.EventID, limit int) ([]journal.DeadLetterRow, error) {
	return t.engine.DeadLetters(ctx, graph, creature, after, limit)
}

// DeadLetterCount is how many deliveries became dead letters since the engine was
// started.
func (t *Terrarium) DeadLetterCount() int64 {
	return t.engine.DeadLetterCount()
}

// Producers returns the highest offset of every producer that has sent on a
// channel.
func (t *Terrarium) Producers(channel journal.ChannelID) (map[string]uint64, error) {
	return t.engine.Producers(channel)
}

// Subscribe starts observing. buffer is the number of events held for a slow
// subscriber, at most [engine.MaxSubscriptionBuffer]; zero means
// [engine.DefaultSubscriptionBuffer]. The caller must close
// the subscription.
func (t *Terrarium) Subscribe(f engine.Filter, buffer int) *engine.Subscription {
	return t.engine.Subscribe(f, buffer)
}

// SubscribeAfter is [Terrarium.Subscribe] for somebody who goes on behind a cursor:
// what the session stores have behind it comes first, and then what happens, each
// event once. Events that no store keeps come only from when they are watched.
//
// The stores are read by [engine.Subscription.Next], so that nobody waits for it. It
// answers unsupported where there is no session directory, and not_found for a
// cursor of another one.
func (t *Terrarium) SubscribeAfter(ctx context.Context, f engine.Filter, after journal.EventCursor, buffer int) (*engine.Subscription, error) {
	return t.engine.SubscribeAfter(ctx, f, after, buffer)
}

// Sessions lists the sessions of the session directory, eldest first; without
// one there are none.
func (t *Terrarium) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	return t.engine.Sessions(ctx)
}

// ApplyDeployment makes a deployment exist: all of it, or on an error nothing. Where a
// saved session has the deployment, its graphs are brought back first, and
// creatures and channels of the same address go on with their state, cursors
// and waiting deliveries; the deployment alone decides about the shape, unless
// [Deployment.Last] says otherwise: creatures that were spawned, and channels that
// were made, while it ran, go, and are among [engine.Applied.Removed]. A session that
// [Terrarium.Restore] has brought back keeps its workers, what leads to them, and what
// waits for them.
//
// A deployment that is applied already is led from what there is to what it is now.
// Creatures that the recipe says the same of go on as if nothing had happened. Those
// whose module or settings are others end the turn that they are in, which Apply
// waits for, and go on with another instance, with all they have and what waits for
// them; one that was quarantined is not any more. What the recipe declared before
// and does not now, goes; workers, channels, edges and wires that came while it ran
// stay, and who was stopped or started, made privileged or demoted, as long as the
// recipe says what it said then. A recipe from another path under the same name is
// refused with already_exists.
func (t *Terrarium) ApplyDeployment(ctx context.Context, d *deploy.Deployment) (*engine.Applied, error) {
	return t.engine.Apply(ctx, d)
}

// ApplyAll is [Terrarium.ApplyDeployment] for deployments that share saved graphs: each
// decides about its own members, in the order given. Nothing runs before all of
// them are applied. If one fails, nothing is applied, unless others before it
// have been: these stay. [Terrarium.Plan] fails where this would.
func (t *Terrarium) ApplyAll(ctx context.Context, deployments ...*deploy.Deployment) ([]*engine.Applied, error) {
	return t.engine.ApplyAll(ctx, deployments...)
}

// Plan says what [Terrarium.ApplyAll] would do with the deployments, and does none of
// it. An error is the one that ApplyAll would answer.
func (t *Terrarium) Plan(ctx context.Context, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	return t.engine.Plan(ctx, deployments...)
}

// Restore brings every saved graph back as it was, creatures that no recipe
// declared included. A creature whose module cannot be loaded comes back
// stopped; the second result says why, after the engine's [Terrarium.Problems].
func (t *Terrarium) Restore(ctx context.Context) (graphs []journal.GraphID, problems []error, err error) {
	return t.engine.Restore(ctx)
}

// Remembered lists the deployments of all graphs, saved or brought back, that
// have not been applied.
func (t *Terrarium) Remembered() []engine.Remembered {
	return t.engine.Remembered()
}

// Saved lists the saved graphs that have not been brought back, eldest first.
func (t *Terrarium) Saved() []journal.SavedGraph {
	return t.engine.Saved()
}

// Problems are the stores that could not be read when the engine was started, and
// files of the session directory that are not known to it. They have been set
// aside, and what is in them is not there; everything else goes on. Behind them comes
// what is wrong with the session directory at present, such as a store that cannot be
// written. The errors are of the type [abi.Error] and name the path.
func (t *Terrarium) Problems() []error {
	return t.engine.Problems()
}

// PolicyFailures are the policies that have failed to decide since the engine was
// started, by name: scripts that threw or took too long. A denial is no failure, nor is
// what a policy ignores by itself. Each is an [abi.Error] with the ids policy, where, of
// the first failure, and failures, which is their number.
func (t *Terrarium) PolicyFailures() []error {
	return t.engine.PolicyFailures()
}

// UnaccountedBytes is what the process held in its Go heap after the last garbage
// collection beyond what is accounted to creatures: their state, their mailboxes,
// linear memories that lie in the heap, and 32 KiB for each. Workers look about once a
// second while turns run; it is 0 before.
func (t *Terrarium) UnaccountedBytes() int64 {
	return t.engine.UnaccountedBytes()
}
