package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/observe"
	"github.com/seed47132306/terrarium/engine/journal"
)

// layDown gives a store to graphs that have none and whose members go to several graphs
// with a store. An event has one id, so what waits for members on both sides is logged
// once, in a store that all of those graphs inherit from.
func (p *storePlan) layDown(ctx context.Context, x *change) error {
	for _, g := range p.groups {
		if g.durability(x) == journal.Volatile {
			continue
		}
		for _, b := range g.before {
			if b.store != nil || !x.e.divides(b, g.after) {
				continue
			}
			stores, err := x.e.storage.Cut(ctx, journal.Cut{Kind: journal.CutRearrange, At: x.tick(), Children: []journal.CutChild{{
				VolatileParents: 1,
				StoreSpec: journal.StoreSpec{Graph: b.id, Born: b.born, Durability: g.durability(x), Meta: b.meta, First: func(origin journal.Origin) *journal.Record {
					rec := &journal.Record{}
					snapshot := newSnapshot(x, g, rec, origin)
					snapshot.add(b, func(id journal.GraphID) bool { return slices.Contains(g.after, id) })
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
func (e locked) divides(g section, into []journal.GraphID) bool {
	n := 0
	for _, id := range into {
		if e.goesOnIn(g, id) {
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
