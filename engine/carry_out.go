package engine

import (
	"context"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/draft"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/internal/sorted"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// newChange starts a change.
func newChange(e locked, name string, o draft.Options) *change {
	return &change{
		e: e, name: name, Draft: e.newDraft(o),
		creatures: map[journal.CreatureID]*creature{}, channels: map[journal.ChannelID]*channel{},
		recipe: recipeChange{durability: e.durability, redeclared: map[*channel]deploy.ChannelSpec{}},
		steps: steps{
			paused: map[*graph]section{}, dirty: map[*creature]bool{}, dropped: map[journal.ChannelID]bool{}, leaving: map[journal.CreatureID]bool{},
			again: map[cursorKey]bool{}, passed: map[journal.GraphID]bool{}, transient: map[*graph]section{}, metas: map[journal.GraphID]map[string]string{},
		},
		logging: logging{records: map[section]*journal.Record{}, burials: map[*feed]*burial{}, entry: newLogEntry()},
	}
}

// carryOut applies what was staged to the stores and the environments. On an error
// nothing has changed.
func (x *change) carryOut(ctx context.Context) error {
	x.attribution = x.turn.attribution(ctx, x.name)
	x.sealed = x.Seal()
	x.addChannels()
	x.scan()
	x.pause()
	defer x.resume()
	plan := x.planStores()
	x.findUnlinked(plan)
	x.partWires(plan)
	x.level(plan)
	x.turn.advance(x)
	unsettle, undeclare := x.comeIntoDeployments(), x.redeclare()
	unremember, err := x.remember()
	if err == nil {
		err = x.foresee(ctx, plan)
	}
	if err == nil {
		err = plan.drain(ctx)
	}
	if err == nil {
		err = plan.carryOut(ctx, x)
	}
	if err != nil {
		unremember()
		unsettle()
		undeclare()
		x.turn.goBack()
		x.Undo()
		return errtext.StorageFailed(x.name, err)
	}
	x.level(plan)
	x.enterLog()
	x.announce(plan)
	x.showWireNotes(plan)
	if x.turn != nil {
		x.turn.rest.announce(x, plan)
	}
	heritages := x.inheritance(plan)
	following{x, plan}.follow()
	for id, of := range heritages {
		x.graph(id).heritage = of
	}
	for id, meta := range x.metas {
		x.graph(id).meta = meta
	}
	if x.turn != nil {
		x.turn.rest.land(x)
	}
	x.writeDown(plan)
	x.reshape()
	plan.retire(ctx, x)
	return nil
}

// addChannels makes the channels that the draft has added, except those of a saved
// graph that is brought back: they exist already.
func (x *change) addChannels() {
	for id, ch := range x.sealed.Channels {
		if x.channels[id] == nil {
			x.channels[id] = &channel{id: id, description: ch.Description, deployment: ch.Deployment}
			x.channels[id].setPlace(ch.Address, ch.Label)
		}
	}
}

// scan records what the deltas remove. An edge that is removed with its channel or
// creature leaves dead letters; an edge that is removed alone leaves a backlog.
func (x *change) scan() {
	ceased := map[cursorKey]bool{}
	for i := range x.sealed.Deltas {
		d := &x.sealed.Deltas[i]
		for _, c := range d.Changes {
			switch c.Kind {
			case topology.ChannelRemoved:
				x.dropped[c.Channel] = true
			case topology.CreatureRemoved:
				x.leaving[c.Creature] = true
			case topology.EdgeRemoved:
				if c.Direction == journal.Listen {
					ceased[cursorKey{journal.ReaderID(c.Creature), c.Channel}] = true
				}
			case topology.EdgeAdded:
				if key := (cursorKey{journal.ReaderID(c.Creature), c.Channel}); c.Direction == journal.Listen && ceased[key] {
					x.again[key] = true
				}
			case topology.CreatureMoved, topology.ChannelMoved:
				if x.e.graphs[c.From] != nil {
					x.passed[c.From], x.passed[c.Graph] = true, true
				}
			}
		}
		for _, u := range d.Unified {
			delete(x.dropped, u.Absorbed) // it will be drained
		}
	}
}

// pause enters the critical sections of all graphs concerned, in order of id.
func (x *change) pause() {
	ids := map[journal.GraphID]bool{}
	for i := range x.sealed.Deltas {
		for _, id := range x.sealed.Deltas[i].OldGraphs {
			ids[id] = true
		}
	}
	for _, cr := range x.recipe.resumed {
		ids[cr.home.load().id] = true
	}
	if x.turn != nil {
		ids[x.turn.c.home.load().id] = true
	}
	for id := range x.sealed.Wires.Lists {
		if cr := x.e.creatures[id]; cr != nil {
			ids[cr.home.load().id] = true
		}
	}
	for ch := range x.recipe.redeclared {
		ids[ch.home.load().id] = true
	}
	for id := range x.leaving {
		for _, child := range x.e.children(id) {
			ids[child.home.load().id] = true
		}
	}
	for _, id := range sorted.Keys(ids) {
		x.graph(id)
	}
}

// writeDown logs the change in every graph concerned.
func (x *change) writeDown(plan *storePlan) {
	if x.bringsBack() {
		return
	}
	plan.logLate(x)
	for _, cr := range x.creatures {
		x.noteNew(cr)
	}
	for _, g := range plan.groups {
		x.noteCut(plan, g)
	}
	x.noteReplaced()
	x.noteUnlinked()
	x.noteWires()
	x.noteRedeclared()
	for _, d := range x.outcomes(plan) {
		ev := journal.Event{Kind: journal.EventTopologyChanged, Payload: journal.JSON(d)}
		ev.Attribute(x.attribution) // once, since each of many graphs lists all of them
		for _, id := range d.NewGraphs {
			if g := x.graph(id); !g.none() {
				x.log(g, x.record(g), ev)
			}
		}
	}
	x.logWords()
	x.writeMemories()
	x.trim(plan)
	x.rememberNew()
	x.answerBuried()
	x.putUnasked()
	x.putMeta()
	if x.recipe.meta != nil || x.e.stops.Any() {
		x.judgeStops()
	}
	for _, g := range sorted.KeysFunc(x.records, byGraphID) {
		if g.store == nil {
			continue
		}
		g.append(x.records[g])
		x.logged = append(x.logged, logged{g.graph, g.store, g.seq})
	}
}

// trim removes rows from the records of graphs with a new store. The first record has
// every row as the change leaves it. Rows written by intermediate steps may be of
// members that have moved elsewhere.
func (x *change) trim(plan *storePlan) {
	for g, rec := range x.records {
		if plan.children[g.id] != nil {
			*rec = journal.Record{Events: rec.Events}
		}
	}
}

// outcomes are the contents of topology_changed events: what each operation did or, in
// a summary, which graphs became which.
func (x *change) outcomes(plan *storePlan) []journal.Delta {
	var out []journal.Delta
	if x.summary {
		for _, g := range plan.groups {
			if d, ok := g.delta(x); ok {
				out = append(out, d)
			}
		}
		return out
	}
	for i := range x.sealed.Deltas {
		out = append(out, journal.NewDelta(&x.sealed.Deltas[i]))
	}
	return out
}

// noteNew logs that a creature has been added.
func (x *change) noteNew(cr *creature) {
	g := x.home(cr)
	if g.none() {
		return // removed by the same change
	}
	rec := x.record(g)
	if cr.instance != nil {
		x.log(g, rec, cr.instanceStarted(journal.StartFirst))
	}
	if !cr.stopped {
		x.log(g, rec, journal.Event{Kind: journal.EventCreatureStarted, Creature: cr.id, Payload: journal.JSON(journal.CreatureStartedPayload{Name: cr.name})})
	}
	x.noteAttached(g, cr)
}

// noteCut logs in the children of a cut which graphs they come from and which
// creatures have moved to them.
func (x *change) noteCut(plan *storePlan, group *storeGroup) {
	kind := journal.EventSessionForked
	if group.Kind() == journal.CutMerge {
		kind = journal.EventSessionMerged
	}
	for _, id := range group.After {
		store := plan.children[id]
		if store == nil || len(group.before) == 0 {
			continue
		}
		g := x.graph(id)
		info := store.Info()
		x.log(g, x.record(g), journal.Event{Kind: kind, Payload: journal.JSON(journal.SessionCutPayload{Session: info.Session, Parents: journal.List(info.Parents)})})
		for _, id := range group.moved {
			if cr := x.e.creatures[id]; cr.home.load() == g.graph {
				x.noteAttached(g, cr)
			}
		}
	}
}
