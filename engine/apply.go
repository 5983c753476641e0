package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Applied says what [Engine.Apply] did, per address.
type Applied struct {
	Creatures map[string]CreatureID // by address
	Channels  map[string]ChannelID  // by address
	Resumed   []string              // addresses that existed in a saved session
	Created   []string              // addresses that did not
	Removed   []RemovedAddress      // what the session had and the recipe does not
	// Problems are those of [Engine.Problems]. If the deployment was in a store
	// that cannot be read, it has begun anew.
	Problems []error
}

// RemovedAddress is something that a saved session had and the recipe does
// not.
type RemovedAddress struct {
	Address string
	Pending uint64 // deliveries that waited for it; they are dead letters now
}

// ReportChannel is the name of the channel on which the members of a
// deployment report to its root.
const ReportChannel = "report_to_root"

const (
	reportAddress     = "channel." + ReportChannel
	reportDescription = "reports to the root"
)

// Apply makes a deployment exist: all of it, or on an error nothing. Where a
// saved session has the deployment, its graphs are brought back first, and
// creatures and channels of the same address go on with their state, cursors
// and waiting deliveries; the deployment alone decides about the shape. A
// deployment that is applied already is refused with already_exists.
func (e *Engine) Apply(ctx context.Context, d *Deployment) (*Applied, error) {
	templates, err := e.loadSpecies(ctx, d)
	if err != nil {
		return nil, err
	}
	prepared, err := e.prepareAll(ctx, d)
	if err != nil {
		e.closeTemplates(ctx, templates)
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &application{e: e, d: d, prepared: prepared, channels: map[string]ChannelID{}, creatures: map[string]CreatureID{}}
	applied, err := a.run(ctx)
	if err == nil {
		e.keepTemplates(templates)
	} else {
		e.closeTemplates(ctx, templates)
		e.closePolicy(d.Policy)
	}
	for _, c := range prepared {
		if err != nil || c.home.load() == nil {
			e.discardPrepared(ctx, c)
		}
	}
	return applied, err
}

// prepareAll loads every module and starts every first instance, so that a
// deployment that cannot start is refused as a whole.
func (e *Engine) prepareAll(ctx context.Context, d *Deployment) (map[string]*creature, error) {
	prepared := map[string]*creature{}
	for i := range d.Creatures {
		spec := d.Creatures[i]
		spec.Privileged = spec.Privileged || (d.Root != "" && spec.Address == d.Root)
		c, err := e.prepare(ctx, spec)
		if err != nil {
			for _, c := range prepared {
				e.discardPrepared(ctx, c)
			}
			if spec.Where != "" {
				err = fmt.Errorf("%s: %s: %w", spec.Where, spec.Address, err)
			}
			return nil, err
		}
		c.deployment = d.Name
		prepared[spec.Address] = c
	}
	return prepared, nil
}

// application is one call of Apply under way.
type application struct {
	e        *Engine
	d        *Deployment
	prepared map[string]*creature // by address
	// live are the deployment's creatures that exist, by address. Usually the
	// recipe's have just taken the places of saved ones; but they run already
	// if another deployment, or Restore, has brought their graph back.
	live      map[string]*creature
	creatures map[string]CreatureID
	channels  map[string]ChannelID
	adopted   []*channel // that existed before
	result    Applied
}

func (a *application) run(ctx context.Context) (*Applied, error) {
	e, d := a.e, a.d
	if e.closed || e.isClosing() {
		return nil, errClosed
	}
	if e.deployments[d.Name] != nil {
		return nil, &abi.Error{
			Code: abi.AlreadyExists, Op: "apply", Message: "the deployment " + d.Name + " is applied already",
			Remedy: "give the recipe another name in its terrarium block", IDs: map[string]string{"deployment": d.Name},
		}
	}
	if err := a.refuseTwins(); err != nil {
		return nil, err
	}
	e.tellProblems()
	a.result.Problems = slices.Clone(e.problems)
	waking := e.newWaking()
	for _, g := range e.savedWith(d.Name) {
		if err := waking.add(ctx, g, a.specOf); err != nil {
			waking.rollBack(ctx)
			return nil, err
		}
	}
	x := e.newChange("apply")
	x.summary = true
	if err := a.prepareChange(x); err != nil {
		waking.rollBack(ctx)
		return nil, err
	}
	x.deployed = slices.Sorted(maps.Values(a.creatures))
	if err := a.judgePlan(x); err != nil {
		waking.rollBack(ctx)
		return nil, err
	}
	if err := a.carryOut(ctx, x); err != nil {
		waking.rollBack(ctx)
		return nil, err
	}
	e.deployments[d.Name] = d
	if d.Policy != nil {
		e.policies.Store(d.Name, d.Policy)
	}
	for _, ch := range a.adopted {
		a.setPolicy(ch)
	}
	waking.commit()
	a.result.Creatures, a.result.Channels = a.creatures, a.channels
	return &a.result, nil
}

// carryOut carries out the change, output wires included.
func (a *application) carryOut(ctx context.Context, x *change) error {
	x.applying = a.d
	if err := x.stageAll(x.ops); err != nil {
		return err
	}
	if err := a.wireOutputs(x); err != nil {
		x.undo()
		return err
	}
	return x.carryOut(ctx)
}

// refuseTwins refuses to bring a deployment back that is saved twice: a store
// that could not be read has come back, and the deployment has begun anew
// meanwhile.
func (a *application) refuseTwins() error {
	home := map[string]*dormant{}
	for _, g := range a.e.savedWith(a.d.Name) {
		for _, c := range g.Creatures {
			other := home[c.Address]
			if c.Deployment != a.d.Name || c.Address == "" {
				continue
			}
			if home[c.Address] = g; other != nil {
				return &abi.Error{
					Code: abi.Conflict, Op: "apply", Message: fmt.Sprintf("%s of the deployment %s is saved twice: in %s and in %s", c.Address, a.d.Name, other.Path, g.Path),
					Remedy: "decide which of the two to go on with, and use a copy of the session directory without the other, or another name for the recipe",
					IDs:    map[string]string{"deployment": a.d.Name, "path": g.Path, "other": other.Path},
				}
			}
		}
	}
	return nil
}

// specOf says what to make of a saved creature: the recipe's if the deployment
// still has its address; nothing if it is gone; and what it was if it belongs
// to another deployment.
func (a *application) specOf(ctx context.Context, row CreatureRow) (*creature, error) {
	if row.Deployment == a.d.Name || undeclared(row.Deployment) {
		if c := a.prepared[row.Address]; c != nil && row.Deployment == a.d.Name && row.Deployment != "" {
			return c, nil
		}
		return newHusk(row), nil
	}
	return a.e.revive(ctx, row)
}

// prepareChange puts together what leads from what exists to what the
// deployment wants.
func (a *application) prepareChange(x *change) error {
	e, d := a.e, a.d
	x.meta = a.meta()
	if d.Session.Durability != nil {
		x.durability = *d.Session.Durability
		if e.storage == nil {
			x.durability = Volatile
		}
	}
	a.live = map[string]*creature{}
	for _, c := range e.creatures {
		if c.deployment == d.Name && c.spec.Address != "" {
			a.live[c.spec.Address] = c
		}
	}
	for i := range d.Creatures {
		a.addCreature(x, &d.Creatures[i])
	}
	wanted := a.edges()
	if err := a.addChannels(x, wanted); err != nil {
		return err
	}
	a.wire(x, wanted)
	if d.Root != "" {
		x.ops = append(x.ops, topology.SetRoot{ID: a.creatures[d.Root], Root: true})
	}
	a.removeGone(x)
	return nil
}

func (a *application) addCreature(x *change, spec *CreatureSpec) {
	c := a.prepared[spec.Address]
	if live := a.live[spec.Address]; live != nil && live != c {
		if !bytes.Equal(encodeSpec(&live.spec), encodeSpec(&c.spec)) {
			a.e.log.Warn("a creature runs already, and goes on with the settings it has", "creature", live.id, "address", spec.Address)
		}
		c = live
	}
	if c.home.load() != nil { // it was woken
		a.creatures[spec.Address] = c.id
		a.result.Resumed = append(a.result.Resumed, spec.Address)
		t, _ := a.e.topo.Creature(c.id)
		if t.Stopped != spec.Stopped {
			x.ops = append(x.ops, topology.SetStopped{ID: c.id, Stopped: spec.Stopped})
		}
		if privileged := spec.Privileged || spec.Address == a.d.Root; t.Privileged != privileged {
			x.ops = append(x.ops, topology.SetPrivileged{ID: c.id, Privileged: privileged})
		}
		if t.Root && spec.Address != a.d.Root {
			x.ops = append(x.ops, topology.SetRoot{ID: c.id})
		}
		x.resumed = append(x.resumed, c)
		return
	}
	c.id = a.e.ids.newCreature()
	a.creatures[spec.Address] = c.id
	a.result.Created = append(a.result.Created, spec.Address)
	x.creatures[c.id] = c
	x.ops = append(x.ops, topology.AddCreature{ID: c.id, Name: spec.Name, Privileged: c.privileged, Stopped: spec.Stopped})
}

// wantedEdge is an edge that the deployment asks for, by addresses.
type wantedEdge struct {
	creature, channel, alias string
	direction                Direction
	given                    bool // because there is a root, and not by the recipe
}

// edges lists the edges of the recipe, and those that a root brings: members
// may send on the report channel, and the root listens on every channel of the
// deployment.
func (a *application) edges() []wantedEdge {
	var out []wantedEdge
	for i := range a.d.Creatures {
		c := &a.d.Creatures[i]
		for _, w := range c.Listen {
			out = append(out, wantedEdge{c.Address, w.Channel, w.Alias, Listen, false})
		}
		for _, w := range c.Send {
			out = append(out, wantedEdge{c.Address, w.Channel, w.Alias, Send, false})
		}
	}
	root := a.d.Root
	if root == "" {
		return out
	}
	add := func(e wantedEdge) {
		same := func(o wantedEdge) bool {
			return o.creature == e.creature && o.channel == e.channel && o.direction == e.direction
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	for i := range a.d.Creatures {
		if c := &a.d.Creatures[i]; c.Address != root {
			add(wantedEdge{c.Address, reportAddress, ReportChannel, Send, true})
		}
	}
	for _, ch := range a.channelSpecs() {
		add(wantedEdge{root, ch.Address, "", Listen, true})
	}
	return out
}

// channelSpecs are the recipe's channels, and the report channel if there is a
// root.
func (a *application) channelSpecs() []ChannelSpec {
	specs := a.d.Channels
	if a.d.Root != "" {
		specs = append(slices.Clone(specs), ChannelSpec{
			Address: reportAddress, Name: ReportChannel, Description: reportDescription,
		})
	}
	return specs
}

// addChannels declares new channels, each in the graph of the first creature
// that is to have an edge to it.
func (a *application) addChannels(x *change, wanted []wantedEdge) error {
	first := map[string]string{}
	for _, w := range wanted {
		if first[w.channel] == "" {
			first[w.channel] = w.creature
		}
	}
	existing := map[string]*channel{}
	for _, ch := range a.e.channels {
		if ch.deployment == a.d.Name && ch.inbox == "" {
			existing[ch.address] = ch
		}
	}
	for _, spec := range a.channelSpecs() {
		near := first[spec.Address]
		if near == "" {
			return &abi.Error{
				Code: abi.InvalidArgument, Op: "apply", Message: spec.Address + " has neither listeners nor senders",
				Remedy: "wire it to a creature, or leave it out", IDs: map[string]string{"channel": spec.Address},
			}
		}
		if ch := existing[spec.Address]; ch != nil {
			a.channels[spec.Address] = ch.id
			ch.description = spec.Description
			a.adopted = append(a.adopted, ch)
			continue
		}
		ch := &channel{
			id: a.e.ids.NewChannel(), description: spec.Description, deployment: a.d.Name,
			address: spec.Address, label: spec.Name,
		}
		a.setPolicy(ch)
		a.channels[spec.Address] = ch.id
		x.channels[ch.id] = ch
		x.ops = append(x.ops, topology.AddChannel{
			ID: ch.id, With: a.creatures[near], Name: spec.Name, Report: spec.Address == reportAddress,
		})
	}
	return nil
}

func (a *application) setPolicy(ch *channel) {
	if p := a.d.Policy; p != nil && p.JudgesSend(ch.address) {
		ch.policy.Store(&p)
	} else {
		ch.policy.Store(nil)
	}
}

// wire turns on the edges that are wanted, and then off those that are not.
func (a *application) wire(x *change, wanted []wantedEdge) {
	want, own := map[edgeKey]string{}, ownEdges{}
	for _, w := range wanted {
		k := edgeKey{a.creatures[w.creature], a.channels[w.channel], w.direction}
		want[k] = w.alias
		if root := w.creature == a.d.Root; root && w.given {
			x.rooting.given[k] = true
		} else if root && w.direction == Listen {
			own[ownEdge{k.channel, Listen}] = true
		}
		current, on := edgeAlias(a.e.topo, k.creature, k.channel, k.direction)
		if on && w.alias != "" && current != w.alias {
			x.ops = append(x.ops, topology.SetEdge{Creature: k.creature, Channel: k.channel, Direction: k.direction})
			on = false
		}
		if !on {
			x.ops = append(x.ops, topology.SetEdge{Creature: k.creature, Channel: k.channel, Direction: k.direction, On: true, Alias: w.alias})
		}
	}
	if a.d.Root != "" {
		x.rooting.own[a.creatures[a.d.Root]] = own
	}
	for _, address := range slices.Sorted(maps.Keys(a.creatures)) {
		c, _ := a.e.topo.Creature(a.creatures[address])
		for _, edge := range c.Edges {
			_, keep := want[edgeKey{edge.Creature, edge.Channel, edge.Direction}]
			if !keep && !a.gone(edge.Channel) {
				x.ops = append(x.ops, topology.SetEdge{Creature: edge.Creature, Channel: edge.Channel, Direction: edge.Direction})
			}
		}
	}
}

// edgeAlias returns the alias of an edge, if it exists.
func edgeAlias(s *topology.State, c CreatureID, ch ChannelID, dir Direction) (string, bool) {
	info, _ := s.Creature(c)
	for _, e := range info.Edges {
		if e.Channel == ch && e.Direction == dir {
			return e.Alias, true
		}
	}
	return "", false
}

// removeGone removes what a saved session had and the deployment does not.
func (a *application) removeGone(x *change) {
	for _, id := range a.e.topo.Creatures() {
		c := a.e.creatures[id]
		address := c.spec.Address
		left := c.deployment == a.d.Name && address != "" && a.creatures[address] != id
		if !left && (!c.husk || c.huskReason != nil) {
			continue
		}
		a.noteRemoved(c)
		x.ops = append(x.ops, topology.RemoveCreature{ID: id})
	}
	for _, op := range x.withWorkers(x.ops) {
		if r, ok := op.(topology.RemoveCreature); ok {
			for _, worker := range r.With {
				a.noteRemoved(a.e.creatures[worker])
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.e.channels)) {
		if a.gone(id) {
			ch := a.e.channels[id]
			if to, _ := ch.directOf(); to == "" {
				a.result.Removed = append(a.result.Removed, RemovedAddress{Address: ch.address})
			}
			x.ops = append([]topology.Op{topology.RemoveChannel{ID: id}}, x.ops...)
		}
	}
}

// noteRemoved reports a creature that the deployment does not have: by its name,
// if it was spawned.
func (a *application) noteRemoved(c *creature) {
	g := c.home.lock()
	defer g.mu.Unlock()
	a.result.Removed = append(a.result.Removed, RemovedAddress{cmp.Or(c.spec.Address, c.name), c.mb.pending()})
}

// gone reports whether a channel was the deployment's and is not any more. No recipe
// has direct channels: they are there as long as the creatures that they lead to.
func (a *application) gone(id ChannelID) bool {
	ch := a.e.channels[id]
	if ch == nil || ch.deployment != a.d.Name || ch.inbox != "" {
		return false
	}
	if to, _ := ch.directOf(); to != "" {
		return a.e.creatures[to] == nil
	}
	return a.channels[ch.address] != id
}

// meta is what a session remembers of the deployment.
func (a *application) meta() map[string]string {
	m := map[string]string{MetaDeployment: a.d.Name}
	if s := a.d.Source; s.Path != "" {
		m[MetaConfigPath] = s.Path
		m[MetaRecipe] = string(mustJSON(s.Files))
		if len(s.Variables) > 0 {
			m[MetaVariables] = string(mustJSON(s.Variables))
		}
	}
	return m
}
