package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// Applied says what [Engine.Apply] did, per address.
type Applied struct {
	Creatures map[string]journal.CreatureID // by address
	Channels  map[string]journal.ChannelID  // by address
	Resumed   []string                      // addresses that existed, in a saved session or running
	Changed   []string                      // those of them that ran, and have another instance: other modules or settings
	Created   []string                      // addresses that did not exist
	Removed   []RemovedAddress              // what existed and the recipe does not have
	// Problems are those of [Engine.Problems]. If the deployment was in a store
	// that cannot be read, it has begun anew.
	Problems []error
}

// RemovedAddress is something that existed and the recipe does not have.
type RemovedAddress struct {
	Address string // the name, of what no recipe has declared
	Pending uint64 // deliveries that waited for it; they are dead letters now
}

const (
	reportAddress     = "channel." + deploy.ReportChannel
	reportDescription = "reports to the root"
)

// application is one call of Apply under way.
type application struct {
	e        *Engine
	d        *deploy.Deployment
	prepared map[string]*creature // by address
	species  []*template
	// live are the deployment's creatures that exist, by address. Usually the
	// recipe's have just taken the places of saved ones; but they run already
	// if another deployment, or Restore, has brought their graph back.
	live      map[string]*creature
	creatures map[string]journal.CreatureID
	channels  map[string]journal.ChannelID
	drift     *drift // what running has changed and stays; nil: the recipe decides alone
	leaving   map[journal.CreatureID]bool
	former    *deploy.Deployment // that is applied now; nil if none is
	adopted   []adoption
	retired   deploy.Policy // that the deployment had; nil if it had none, or still has it
	// kept are channels of the deployment that no recipe has, and that Restore has
	// brought back: they stay, with all who are on them.
	kept   map[journal.ChannelID]bool
	result Applied
}

// may refuses what cannot be applied: the recipe of another deployment that has the
// same name, most likely without anybody's having noticed.
func (a *application) may() error {
	a.former = a.e.deployments[a.d.Name]
	if a.former == nil {
		return a.refuseTwins()
	}
	if was, is := a.former.Source.Path, a.d.Source.Path; was != is && was != "" && is != "" {
		return &abi.Error{
			Code: abi.AlreadyExists, Op: "apply", Message: "another recipe is applied as the deployment " + a.d.Name,
			Remedy: "give one of them another name in its terrarium block",
			IDs:    map[string]string{"deployment": a.d.Name, "path": was, "other": is},
		}
	}
	if a.drift == nil {
		a.drift = driftFrom(a.former)
		a.drift.heals = true
	}
	return nil
}

// run leads from what there is to what the deployment wants. Its saved graphs
// have been brought back.
func (a *application) run(ctx context.Context, h *holding) error {
	a.result.Problems = slices.Clone(a.e.problems)
	a.keepRuntime()
	x := a.e.newChange("apply")
	x.summary = true
	if err := a.prepareChange(ctx, x, h); err != nil {
		x.undo()
		return err
	}
	x.deployed = slices.Sorted(maps.Values(a.creatures))
	if err := a.judgePlan(x); err != nil {
		x.undo()
		return err
	}
	former := a.e.putPolicy(a.d.Name, a.d.Policy)
	if err := a.carryOut(ctx, x); err != nil {
		a.e.putPolicy(a.d.Name, former)
		return err
	}
	a.e.deployments[a.d.Name] = a.d
	if former != nil && !samePolicy(former, a.d.Policy) {
		a.retire(former)
	}
	a.result.Creatures, a.result.Channels = a.creatures, a.channels
	return nil
}

// carryOut carries out the change, output wires included.
func (a *application) carryOut(ctx context.Context, x *change) error {
	x.applying = a.d
	directs := x.directsOf(x.ops...)
	err := x.stageAll(x.ops)
	if err == nil {
		err = x.stageAll(x.unheard(directs))
	}
	if err == nil {
		err = a.wireOutputs(x)
	}
	if err != nil {
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

// prepareChange puts together what leads from what exists to what the
// deployment wants.
func (a *application) prepareChange(ctx context.Context, x *change, h *holding) error {
	e, d := a.e, a.d
	x.meta = a.meta()
	if d.Session.Durability != nil {
		x.durability = *d.Session.Durability
		if e.storage == nil {
			x.durability = journal.Volatile
		}
	}
	a.live = map[string]*creature{}
	for _, c := range e.creatures {
		if c.deployment == d.Name && c.spec.Address != "" {
			a.live[c.spec.Address] = c
		}
	}
	a.drift.since(a)
	for i := range d.Creatures {
		if spec := &d.Creatures[i]; !a.drift.removed(a, spec.Address) {
			a.addCreature(ctx, x, spec, h)
		}
	}
	a.findLeaving(x)
	existing := a.channelsByAddress()
	wanted := a.drift.wanted(a, edgesOf(d), existing)
	if err := a.addChannels(x, wanted, existing); err != nil {
		return err
	}
	a.wire(x, wanted)
	a.setRoot(x, wanted)
	a.removeGone(x)
	a.setNames(x)
	return nil
}

// setNames gives creatures the names that the recipe has for them now. It comes last:
// who goes has let go of its name then, and a creature that is new and takes over the
// name of another one has it in the end.
func (a *application) setNames(x *change) {
	var renamed, created []topology.Naming
	for i := range a.d.Creatures {
		spec := &a.d.Creatures[i]
		id := a.creatures[spec.Address]
		naming := topology.Naming{ID: id, Name: spec.Name}
		if t, exists := a.e.topo.Creature(id); !exists {
			if id != "" {
				created = append(created, naming)
			}
		} else if !isNumbered(t.Name, spec.Name) && !a.drift.leavesName(spec) {
			renamed = append(renamed, naming)
		}
	}
	if len(renamed) > 0 || len(a.leaving) > 0 && len(created) > 0 {
		x.ops = append(x.ops, topology.SetNames{Names: append(renamed, created...)})
	}
}

// isNumbered reports whether a creature is called by a name, perhaps with a number
// behind it, which a merge has given it.
func isNumbered(is, name string) bool {
	number, ok := strings.CutPrefix(is, name+"~")
	_, err := strconv.ParseUint(number, 10, 32)
	return is == name || ok && err == nil
}

// channelsByAddress are the deployment's channels that exist.
func (a *application) channelsByAddress() map[string]*channel {
	out := map[string]*channel{}
	for _, ch := range a.e.channels {
		if ch.deployment == a.d.Name && ch.inbox == "" {
			out[ch.address] = ch
		}
	}
	return out
}

// setRoot makes the recipe's root the root.
func (a *application) setRoot(x *change, wanted []wantedEdge) {
	if a.drift.leavesRoot(a.d) {
		a.drift.acquaint(a, x)
		return
	}
	a.drift.demote(a, x, wanted)
	if id := a.creatures[a.d.Root]; id != "" {
		x.ops = append(x.ops, topology.SetRoot{ID: id, Root: true})
	}
}

func (a *application) addCreature(ctx context.Context, x *change, spec *deploy.CreatureSpec, h *holding) {
	c := a.prepared[spec.Address]
	live := a.live[spec.Address]
	running := live != nil && live != c
	if running {
		if h.has(live) && a.become(ctx, x, live, c) {
			a.result.Changed = append(a.result.Changed, spec.Address)
		}
		c = live
	}
	if c.home.load() != nil { // it was woken
		a.creatures[spec.Address] = c.id
		a.result.Resumed = append(a.result.Resumed, spec.Address)
		t, _ := a.e.topo.Creature(c.id)
		if t.Stopped != spec.Stopped && !a.drift.leavesStopped(spec) {
			x.ops = append(x.ops, topology.SetStopped{ID: c.id, Stopped: spec.Stopped})
		}
		if privileged := spec.Privileged || spec.Address == a.d.Root; t.Privileged != privileged && !a.drift.leavesPrivilege(spec.Address, privileged) {
			x.ops = append(x.ops, topology.SetPrivileged{ID: c.id, Privileged: privileged})
		}
		if t.Root && spec.Address != a.d.Root && !a.drift.leavesRoot(a.d) {
			x.ops = append(x.ops, topology.SetRoot{ID: c.id})
		}
		if !running || h.has(c) {
			x.resumed = append(x.resumed, c)
		}
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
	direction                journal.Direction
	given                    bool // because there is a root, and not by the recipe
}

// edgesOf lists the edges of the recipe, and those that a root brings: members
// may send on the report channel, and the root listens on every channel of the
// deployment. An alias that is not given is the channel's name in the recipe,
// whatever its graph calls it.
func edgesOf(d *deploy.Deployment) []wantedEdge {
	var out []wantedEdge
	names := map[string]string{}
	for _, ch := range channelSpecsOf(d) {
		names[ch.Address] = ch.Name
	}
	for i := range d.Creatures {
		c := &d.Creatures[i]
		for _, w := range c.Listen {
			out = append(out, wantedEdge{c.Address, w.Channel, cmp.Or(w.Alias, names[w.Channel]), journal.Listen, false})
		}
		for _, w := range c.Send {
			out = append(out, wantedEdge{c.Address, w.Channel, cmp.Or(w.Alias, names[w.Channel]), journal.Send, false})
		}
	}
	root := d.Root
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
	for i := range d.Creatures {
		if c := &d.Creatures[i]; c.Address != root {
			add(wantedEdge{c.Address, reportAddress, deploy.ReportChannel, journal.Send, true})
		}
	}
	for _, ch := range channelSpecsOf(d) {
		add(wantedEdge{root, ch.Address, ch.Name, journal.Listen, true})
	}
	return out
}

// channelSpecsOf are the recipe's channels, and the report channel if there is a
// root.
func channelSpecsOf(d *deploy.Deployment) []deploy.ChannelSpec {
	specs := d.Channels
	if d.Root != "" {
		specs = append(slices.Clone(specs), deploy.ChannelSpec{
			Address: reportAddress, Name: deploy.ReportChannel, Description: reportDescription,
		})
	}
	return specs
}

// addChannels declares new channels, each in the graph of the first creature
// that is to have an edge to it. Another deployment of that graph may have the
// name, or somebody who made a channel while it ran: as when graphs merge, the
// newcomer gets a number.
func (a *application) addChannels(x *change, wanted []wantedEdge, existing map[string]*channel) error {
	first := map[string]string{}
	for _, w := range wanted {
		if first[w.channel] == "" {
			first[w.channel] = w.creature
		}
	}
	for _, spec := range channelSpecsOf(a.d) {
		near, ch := first[spec.Address], existing[spec.Address]
		switch {
		case near == "" && a.drift == nil:
			return &abi.Error{
				Code: abi.InvalidArgument, Op: "apply", Message: spec.Address + " has neither listeners nor senders",
				Remedy: "wire it to a creature, or leave it out", IDs: map[string]string{"channel": spec.Address},
			}
		case ch != nil:
			a.channels[spec.Address] = ch.id
			if ch.description != spec.Description {
				x.described[ch] = spec.Description
			}
			continue
		case near == "":
			continue // it was removed, or whoever would have it
		}
		ch = &channel{
			id: a.e.ids.NewChannel(), description: spec.Description, deployment: a.d.Name,
			address: spec.Address, label: spec.Name,
		}
		a.channels[spec.Address] = ch.id
		x.channels[ch.id] = ch
		x.ops = append(x.ops, topology.AddChannel{
			ID: ch.id, With: a.creatures[near], Name: spec.Name, Numbered: true, Report: spec.Address == reportAddress,
		})
	}
	return nil
}

// meta is what a session remembers of the deployment.
func (a *application) meta() map[string]string {
	m := map[string]string{MetaDeployment: a.d.Name}
	if a.d.Session.AllowMerge {
		m[MetaMerge] = mergeAllowed
	}
	if s := a.d.Source; s.Path != "" {
		m[MetaConfigPath] = s.Path
		m[MetaRecipe] = string(journal.JSON(s.Files))
		m[MetaDeclared] = string(journal.JSON(slices.Concat([]deploy.Declaration{}, a.d.Declared)))
		if len(s.Variables) > 0 {
			m[MetaVariables] = string(journal.JSON(s.Variables))
		}
	}
	return m
}
