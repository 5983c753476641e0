package terrarium

import (
	"context"
	"time"

	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/diff"
	"github.com/seed47132306/terrarium/engine/inspect"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/outlook"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Methods of the engine that an embedding program uses, under the same names.

// Batch applies the steps of f, all or nothing: if f returns an error, nothing has
// changed. f must not call methods of the engine. It blocks all other changes while it
// runs.
func (t *Terrarium) Batch(ctx context.Context, f func(b *engine.Batch) error) error {
	return t.engine.Batch(ctx, f)
}

// Change applies operations on the topology in order, all or nothing, and returns an
// outcome for each. It cannot add creatures: see [Terrarium.AddCreature] and
// [Terrarium.Batch].
func (t *Terrarium) Change(ctx context.Context, ops ...topology.Op) ([]engine.Outcome, error) {
	return t.engine.Change(ctx, ops...)
}

// AddCreature adds a creature and starts it, unless its specification says otherwise. The
// creature belongs to the deployment of its parent; without a parent, to that of a channel
// to which it is wired; otherwise, if it joins a graph, to the deployment to which a new
// channel of that graph would belong. A creature with an address belongs to none. The
// module is loaded and an instance started before anything changes, so AddCreature returns
// an error for a creature that cannot start.
func (t *Terrarium) AddCreature(ctx context.Context, spec deploy.CreatureSpec) (engine.Added, error) {
	return t.engine.AddCreature(ctx, spec)
}

// Prepare prepares a creature for [engine.Batch.AddPrepared]. It takes as long as
// compiling and starting the guest, and blocks no other caller. The caller must discard
// a creature that it does not add.
func (t *Terrarium) Prepare(ctx context.Context, spec deploy.CreatureSpec) (*engine.Prepared, error) {
	return t.engine.Prepare(ctx, spec)
}

// RemoveCreature removes a creature, and its workers if they are removed with it (see
// [deploy.Workers]). Its graph may split. Deliveries that wait for it become dead
// letters.
func (t *Terrarium) RemoveCreature(ctx context.Context, id journal.CreatureID) (engine.Outcome, error) {
	return t.engine.RemoveCreature(ctx, id)
}

// AddChannel declares a channel in a graph.
func (t *Terrarium) AddChannel(ctx context.Context, g journal.GraphID, name, description string) (engine.Outcome, error) {
	return t.engine.AddChannel(ctx, g, name, description)
}

// RemoveChannel removes a channel and its edges. Its graph may split. Messages that its
// listeners have not read become dead letters.
func (t *Terrarium) RemoveChannel(ctx context.Context, id journal.ChannelID) (engine.Outcome, error) {
	return t.engine.RemoveChannel(ctx, id)
}

// AddWire adds an output wire and returns it with its id. The error is not_found for
// creatures and predicates that do not exist, not_connected for creatures in different
// graphs, already_exists for a name or a wire that From already has, and limit for one
// wire too many.
func (t *Terrarium) AddWire(ctx context.Context, w journal.OutputWire) (journal.OutputWire, error) {
	return t.engine.AddWire(ctx, w)
}

// RemoveWire removes an output wire and returns it. Turns that commit from then on
// deliver nothing over it.
func (t *Terrarium) RemoveWire(ctx context.Context, id journal.WireID) (journal.OutputWire, error) {
	return t.engine.RemoveWire(ctx, id)
}

// AssignRoot makes a creature the root of its deployment, and privileged. The members in
// its graph may send on the report channel, which is created if necessary, and the root
// gets its edges. If the creature is the root already, it gets the edges that it lacks.
// The previous root loses the edges that it had as the root, which may split its graph,
// but keeps its privilege. A report channel in another graph is removed.
//
// If the creature belongs to no deployment, it and all other such creatures of its graph
// form a new one.
func (t *Terrarium) AssignRoot(ctx context.Context, id journal.CreatureID) (engine.Rooted, error) {
	return t.engine.AssignRoot(ctx, id)
}

// Send sends a message on a channel. It blocks while the graph does not accept messages
// from outside (see [deploy.OverflowBlock] and [journal.Store.Room]) and, if requested, until the
// message is durable; [engine.Outgoing] describes the errors. If ctx ends before the
// message is accepted, the error is unavailable, and the message is refused.
func (t *Terrarium) Send(ctx context.Context, channel journal.ChannelID, out engine.Outgoing) (engine.Sent, error) {
	return t.engine.Send(ctx, channel, out)
}

// SendTo sends a message directly to a creature.
func (t *Terrarium) SendTo(ctx context.Context, to journal.CreatureID, out engine.Outgoing) (engine.Sent, error) {
	return t.engine.SendTo(ctx, to, out)
}

// Request sends a direct message to a creature, and waits until the creature's reply is
// as durable as its graph promises. A deadline of zero means
// [engine.DefaultRequestDeadline]. The payload must not change before Request returns.
//
// The error has one of these codes; any other code means that the request was refused:
//
//   - deadline, if no reply came in time
//   - unknown_outcome, if ctx ended, the engine was closed or the store failed before the
//     reply was durable: the request may or may not be handled
//   - unavailable, if the creature handled the request without a reply
//   - not_connected, if the creature was removed before it handled the request
//   - the code of the creature's failure, if the request became a dead letter
func (t *Terrarium) Request(ctx context.Context, to journal.CreatureID, out engine.Outgoing, deadline time.Duration) ([]byte, error) {
	return t.engine.Request(ctx, to, out, deadline)
}

// Ask is the first half of [Terrarium.Request]. It returns when the request is in the
// creature's inbox. The caller must call Reply once.
func (t *Terrarium) Ask(ctx context.Context, to journal.CreatureID, out engine.Outgoing, deadline time.Duration) (*engine.Call, error) {
	return t.engine.Ask(ctx, to, out, deadline)
}

// Read starts reading a channel under a reader's name. A second reader with the same
// name on the same channel is refused with already_exists. The caller must close the
// reader.
func (t *Terrarium) Read(channel journal.ChannelID, name string, o engine.ReaderOptions) (*engine.Reader, error) {
	return t.engine.Read(channel, name, o)
}

// Tool calls a group tool on behalf of a creature, in a turn of its own without a delivery.
// It returns what the guest would get: the result as JSON, or the error. Tool waits until
// the turn is committed and as durable as its graph promises. The error is stopped for a
// creature that does not run. If ctx ends, the engine is closed or the store fails first,
// the error is unknown_outcome: the call may or may not take effect.
func (t *Terrarium) Tool(ctx context.Context, caller journal.CreatureID, name string, args []byte) ([]byte, error) {
	return t.engine.Tool(ctx, caller, name, args)
}

// StartTool starts a call as [Terrarium.Tool] does, and returns at once. The calls of one
// caller run in the order in which they were started.
func (t *Terrarium) StartTool(caller journal.CreatureID, name string, args []byte) (*engine.ToolCall, error) {
	return t.engine.StartTool(caller, name, args)
}

// WaitIdle waits until no turn is running, no delivery can run and none waits for a
// retry. Deliveries for stopped and quarantined creatures do not count. The error is
// deadline if ctx ends first.
func (t *Terrarium) WaitIdle(ctx context.Context) error {
	return t.engine.WaitIdle(ctx)
}

// Redeliver delivers a dead letter again through the inbox of its creature. A message of
// a channel is again delivered as a message of that channel. If no edge led anywhere for
// the original send, the letter is sent on the channel that now has the sender's alias.
// If a recipe has removed the creature and later added another one at the same address,
// the new creature gets the letter. letter is the id of the dead letter or of its message, which
// must be unique in the graph. Redeliver removes the dead letter; if the delivery fails
// again, it becomes a new one.
func (t *Terrarium) Redeliver(ctx context.Context, graph journal.GraphID, letter journal.EventID) (engine.Sent, error) {
	return t.engine.Redeliver(ctx, graph, letter)
}

// Approvals lists the open questions of policies about turns of creatures; see
// [engine.Engine.Approvals].
func (t *Terrarium) Approvals(graphs ...journal.GraphID) ([]inspect.Approval, error) {
	return t.engine.Approvals(graphs...)
}

// Decide answers a question of a policy; see [engine.Engine.Decide].
func (t *Terrarium) Decide(approval journal.EventID, d engine.Decision, graphs ...journal.GraphID) (*engine.Decided, error) {
	return t.engine.Decide(approval, d, graphs...)
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

// FindWire finds an output wire by its id or, if its source is given, by its name.
func (t *Terrarium) FindWire(from journal.CreatureID, name string) (journal.OutputWire, error) {
	return t.engine.FindWire(from, name)
}

// Status describes all graphs, oldest first, or one graph by any id it has had.
func (t *Terrarium) Status(graph journal.GraphID) ([]inspect.GraphStatus, error) {
	return t.engine.Status(graph)
}

// Wires lists the output wires of a graph, or of all graphs, ordered by the age of their
// sources, oldest first.
func (t *Terrarium) Wires(id journal.GraphID) ([]journal.OutputWire, error) {
	return t.engine.Wires(id)
}

// WiresOf lists the output wires from a creature, and the wires of its graph that lead to
// it. If the creature is the root, these include the wires to the root.
func (t *Terrarium) WiresOf(creature journal.CreatureID) (out, in []journal.OutputWire, err error) {
	return t.engine.WiresOf(creature)
}

// Awareness returns the awareness document of a creature as it is now.
func (t *Terrarium) Awareness(id journal.CreatureID) (*outlook.View, error) {
	return t.engine.Awareness(id)
}

// State returns a creature's state sorted by key: all keys, or those with a prefix.
func (t *Terrarium) State(ctx context.Context, creature journal.CreatureID, prefix string) ([]inspect.StateEntry, error) {
	return t.engine.State(ctx, creature, prefix)
}

// Timers returns the timers that a creature has set, sorted by name.
func (t *Terrarium) Timers(creature journal.CreatureID) ([]journal.TimerRow, error) {
	return t.engine.Timers(creature)
}

// DeadLetters returns the dead letters of a graph, or of one of its creatures, oldest
// first: at most limit (0 means 1,000) after the one with the given id. A graph without a
// store keeps the last 1,000, and at most 2 MiB of them.
func (t *Terrarium) DeadLetters(ctx context.Context, graph journal.GraphID, creature journal.CreatureID, after journal.EventID, limit int) ([]journal.DeadLetterRow, error) {
	return t.engine.DeadLetters(ctx, graph, creature, after, limit)
}

// DeadLetterCount returns the number of deliveries that became dead letters since the
// start of the engine.
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

// SubscribeAfter is [Terrarium.Subscribe] for a subscriber that continues after a cursor.
// It first gets the stored events after the cursor and then new events, each event once.
// Events that no store keeps are only shown from the time of the call.
//
// [engine.Subscription.Next] reads the stores, so that no other caller waits for them.
// The error is unsupported without a session directory, and not_found for a cursor of
// another directory.
func (t *Terrarium) SubscribeAfter(ctx context.Context, f engine.Filter, after journal.EventCursor, buffer int) (*engine.Subscription, error) {
	return t.engine.SubscribeAfter(ctx, f, after, buffer)
}

// Sessions lists the sessions of the session directory, oldest first. Without a directory
// the list is empty.
func (t *Terrarium) Sessions(ctx context.Context) ([]journal.SessionInfo, error) {
	return t.engine.Sessions(ctx)
}

// ApplyDeployment applies a deployment, all or nothing. If a saved session has the
// deployment, its graphs are restored first. Creatures and channels with the same address
// resume with their state, cursors and waiting deliveries. The deployment alone decides on
// the graphs, unless [deploy.Deployment.Last] says otherwise: creatures that were spawned, and
// channels that were created, while it ran are removed and listed in
// [engine.Applied.Removed]. A session that [Terrarium.Restore] has restored keeps its
// workers, their edges and their waiting deliveries.
//
// If the deployment is already applied, ApplyDeployment changes the differences. Creatures
// that the recipe does not change continue undisturbed. Creatures with another module or
// other settings finish their present turn, for which the call waits, and continue on a new
// instance with their state and waiting deliveries; quarantine ends. Creatures and channels
// that the recipe no longer declares are removed. Workers, channels, edges and wires that
// were added while the recipe ran are kept. A creature that was stopped or started, promoted
// or demoted stays as it is, unless the recipe has changed the corresponding setting. A
// recipe from another path under the same name is refused with already_exists.
func (t *Terrarium) ApplyDeployment(ctx context.Context, d *deploy.Deployment) (*engine.Applied, error) {
	applied, err := t.ApplyAll(ctx, d)
	if len(applied) == 0 {
		return nil, err
	}
	return applied[0], err
}

// ApplyAll is [Terrarium.ApplyDeployment] for deployments that share saved graphs. Each
// decides on its own members, in the given order. Nothing runs before all of them are
// applied. If one fails, neither it nor later ones are applied; earlier ones stay applied.
// [Terrarium.Plan] fails where ApplyAll would.
//
// The sources and sinks of an applied deployment start, end and change with it. A sink or
// source that the deployment does not change continues undisturbed.
func (t *Terrarium) ApplyAll(ctx context.Context, deployments ...*deploy.Deployment) ([]*engine.Applied, error) {
	select {
	case t.applying <- struct{}{}:
		defer func() { <-t.applying }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	declared, err := t.connectors.opened(deployments)
	if err != nil {
		return nil, err
	}
	applied, err := t.engine.ApplyAll(ctx, judged(&t.policies, t.policy, deployments...)...)
	t.connectors.applied(t, deployments[:len(applied)], applied, declared)
	return applied, err
}

// Plan returns the changes that [Terrarium.ApplyAll] would make with the deployments, and
// changes nothing. Its error is the one that ApplyAll would return.
func (t *Terrarium) Plan(ctx context.Context, deployments ...*deploy.Deployment) (*diff.Plan, error) {
	return planning(t.policy, deployments, func(d []*deploy.Deployment) (*diff.Plan, error) { return t.engine.Plan(ctx, d...) })
}

// Restore restores every saved graph as it was, including creatures without a recipe. It
// applies no recipe, so no policies are in force; see [Terrarium.Resume]. A creature whose module cannot be loaded is restored stopped. The second result says why,
// after the engine's [Terrarium.Problems].
func (t *Terrarium) Restore(ctx context.Context) (graphs []journal.GraphID, problems []error, err error) {
	return t.engine.Restore(ctx)
}

// Remembered lists the deployments of all graphs, saved or restored, that have not been
// applied.
func (t *Terrarium) Remembered() []engine.Remembered {
	return t.engine.Remembered()
}

// Saved lists the saved graphs that have not been restored, oldest first.
func (t *Terrarium) Saved() []journal.SavedGraph {
	return t.engine.Saved()
}

// Problems returns an error for each store that could not be read at the start of the
// engine, and for each file of the session directory that is missing from its catalogue.
// These files have been set aside, and their contents are missing; everything else
// continues. Errors for present problems of the session directory follow, such as a store
// that cannot be written. The errors have the type [abi.Error] and name the path.
func (t *Terrarium) Problems() []error {
	return t.engine.Problems()
}

// PolicyFailures returns an error for each policy that has failed to decide since the start
// of the engine, sorted by name: its script threw or took too long. A denial is not a
// failure, and neither is an error that the policy itself ignores. Each [abi.Error] has the
// ids policy, where (the place of the first failure) and failures (their number).
func (t *Terrarium) PolicyFailures() []error {
	return t.engine.PolicyFailures()
}

// UnaccountedBytes returns the size of the process's Go heap after the last garbage
// collection, without the part that is accounted to creatures: their state, their
// mailboxes, linear memories in the heap, and 32 KiB for each. Workers measure it about
// once a second while turns run; before that it is 0.
func (t *Terrarium) UnaccountedBytes() int64 {
	return t.engine.UnaccountedBytes()
}

// Deployment is [engine.Engine.Deployment].
func (t *Terrarium) Deployment(name string) *deploy.Deployment { return t.engine.Deployment(name) }
