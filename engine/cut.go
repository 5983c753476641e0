package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/journal"
)

// carryOut creates and cuts stores, all or nothing.
func (p *storePlan) carryOut(ctx context.Context, x *change) error {
	if x.e.storage == nil {
		return nil
	}
	if x.saved.adopt != nil {
		p.children[x.saved.Graph] = x.saved.adopt
		return nil
	}
	if err := p.mayEnter(x); err != nil {
		return err
	}
	if err := p.layDown(ctx, x); err != nil {
		return err
	}
	cut := journal.Cut{At: x.tick()}
	var ids []journal.GraphID
	for _, g := range p.groups {
		if g.Keeps() || len(g.After) == 0 {
			continue
		}
		durability := g.durability(x)
		if durability == journal.Volatile {
			continue
		}
		for _, b := range g.before {
			if b.store != nil {
				cut.Parents = append(cut.Parents, b.store)
			}
		}
		for _, id := range g.After {
			cut.Children = append(cut.Children, p.child(x, g, id, durability))
			ids = append(ids, id)
		}
		switch kind := g.Kind(); {
		case len(g.before) == 0: // new graphs do not count
		case cut.Kind == "" || cut.Kind == kind:
			cut.Kind = kind
		default:
			cut.Kind = journal.CutRearrange
		}
	}
	stores, err := x.makeStores(ctx, cut)
	if err != nil {
		return errors.Join(err, p.takeBack(ctx, x))
	}
	for i, id := range ids {
		p.children[id] = stores[i]
	}
	p.hand(x)
	return nil
}

// hand takes the old stores away from their graphs after a cut, and gives graphs that
// keep their id their new stores.
func (p *storePlan) hand(x *change) {
	for _, g := range p.groups {
		if len(g.After) > 0 && p.children[g.After[0]] != nil {
			for _, b := range g.before {
				b.store = nil // the cut closed it
			}
		}
	}
	for id, store := range p.children { // a graph may continue with an id of another group
		if old := x.graph(id); !old.none() {
			old.attach(store, 0)
			old.seq = uint64(p.first[id])
		}
	}
}

// makeStores makes the stores of all children of a cut, or none.
func (x *change) makeStores(ctx context.Context, cut journal.Cut) ([]journal.Store, error) {
	if len(cut.Parents) > 0 {
		return x.e.storage.Cut(ctx, cut)
	}
	var specs []journal.StoreSpec
	for _, c := range cut.Children {
		c.StoreSpec.At = max(cut.At, x.e.wallClock()) // no graph may have been entered yet
		specs = append(specs, c.StoreSpec)
	}
	return x.e.storage.Create(ctx, specs...)
}

// child describes one graph after the change to the storage.
func (p *storePlan) child(x *change, g *storeGroup, id journal.GraphID, durability journal.Durability) journal.CutChild {
	info, _ := x.e.topo.Graph(id)
	child := journal.CutChild{StoreSpec: journal.StoreSpec{Graph: id, Born: info.Born, Durability: durability, Meta: x.recipe.meta}}
	parents := slices.SortedFunc(slices.Values(g.before), func(a, b section) int {
		return cmp.Or(cmp.Compare(a.born, b.born), byGraphID(a, b)) // oldest first
	})
	for _, b := range parents {
		if !x.goesOnIn(x.e, b, id) {
			continue
		}
		p.goesOn[b] = append(p.goesOn[b], id)
		if b.store == nil {
			child.VolatileParents++
		} else {
			child.Parents = append(child.Parents, b.store.Info().Session)
		}
		if child.Meta == nil || b.id == id {
			child.Meta = b.meta
		}
	}
	p.meta[id] = child.Meta
	child.Creatures = info.Creatures
	child.Channels = slices.Clone(info.Channels)
	for _, c := range info.Creatures {
		child.Channels = append(child.Channels, journal.InboxOf(c))
	}
	child.First = func(origin journal.Origin) *journal.Record {
		rec := x.firstRecord(g, info, origin)
		p.first[id] = len(rec.Events)
		return rec
	}
	return child
}

// layDown gives a store to graphs that have none and whose members go to several graphs
// with a store. An event has one id, so what waits for members on both sides is logged
// once, in a store that all of those graphs inherit from.
func (p *storePlan) layDown(ctx context.Context, x *change) error {
	for _, g := range p.groups {
		if g.durability(x) == journal.Volatile {
			continue
		}
		for _, b := range g.before {
			if b.store != nil || !p.divides(x, b, g.After) {
				continue
			}
			stores, err := x.e.storage.Cut(ctx, journal.Cut{Kind: journal.CutRearrange, At: x.tick(), Children: []journal.CutChild{{
				VolatileParents: 1,
				StoreSpec: journal.StoreSpec{Graph: b.id, Born: b.born, Durability: g.durability(x), Meta: b.meta, First: func(origin journal.Origin) *journal.Record {
					rec := &journal.Record{}
					snapshot := newSnapshot(x, g, rec, origin)
					snapshot.add(b, func(id journal.GraphID) bool { return slices.Contains(g.After, id) })
					snapshot.write()
					return rec
				}},
			}}})
			if err != nil {
				return errors.Join(err, p.takeBack(ctx, x))
			}
			b.store, b.source = stores[0], observe.Source{Session: stores[0].Info().Session}
			p.interim = append(p.interim, b)
		}
	}
	return nil
}

// divides reports whether the members of the graph go to several graphs.
func (p *storePlan) divides(x *change, g section, into []journal.GraphID) bool {
	n := 0
	for _, id := range into {
		if x.goesOnIn(x.e, g, id) {
			n++
		}
	}
	return n > 1
}

// takeBack retires the stores that layDown has made, if the cut fails. A store that
// cannot be retired has no members, so the next start retires it.
func (p *storePlan) takeBack(ctx context.Context, x *change) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for _, b := range p.interim {
		session := b.store.Info().Session
		errs = append(errs, b.store.Close(ctx), x.e.storage.Retire(ctx, session))
		b.store = nil
	}
	p.interim = nil
	return errors.Join(errs...)
}
