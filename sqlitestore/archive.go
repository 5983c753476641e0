package sqlitestore

import (
	"context"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/rebuild"
)

var (
	_ journal.Archive = (*View)(nil)
	_ journal.Archive = (*Directory)(nil)
)

// Live lists the live sessions as their stores have them, eldest first. The second result
// names what cannot be read.
func (v *View) Live(ctx context.Context) (graphs []journal.SavedGraph, problems []error, err error) {
	list, err := v.catalog.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Read before the logs, which a process may be writing to: the records are never
	// behind them.
	acks, err := catalog.ReadAcks(v.catalog.Dir())
	if err != nil {
		return nil, nil, storageError("open", v.catalog.Path(), err)
	}
	left, err := rebuild.LeftOut(ctx, v.catalog.Catalog)
	if err != nil {
		return nil, nil, storageError("open", v.catalog.Path(), err)
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		problems = append(problems, left[path])
	}
	for i := range list {
		if !list[i].Live {
			continue
		}
		g, lost, err := v.live(ctx, list[i].Session, acks)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, unreadable(&list[i], err))
			continue
		}
		problems = append(problems, lost...)
		if len(g.Creatures) > 0 { // without members its graph has ended
			graphs = append(graphs, g)
		}
	}
	return graphs, problems, nil
}

// live reads a session, and says which ancestors and which part of its end are missing.
func (v *View) live(ctx context.Context, session journal.SessionID, acks map[journal.SessionID]catalog.Ack) (g journal.SavedGraph, lost []error, err error) {
	err = v.catalog.withRows(ctx, "read", session, v.readable, func(e catalog.Entry, f *family) (err error) {
		lost = nil
		for _, ancestor := range f.missing {
			lost = append(lost, lostAncestor(e, ancestor))
		}
		if g, err = f.saved(ctx, e); err != nil {
			return err
		}
		if a, said := acks[session]; said {
			end, err := f.lostEnd(ctx, e, a)
			if end != nil {
				lost = append(lost, end)
			}
			return err
		}
		return nil
	})
	return g, lost, err
}

// Messages reads a channel of a session; see [Store.Messages].
func (d *Directory) Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) (events []journal.Event, err error) {
	if s := d.opened(session); s != nil {
		return s.Messages(ctx, channel, after, until, limit, bytes)
	}
	err = d.catalog.withRows(ctx, "read", session, d.owned, func(_ catalog.Entry, f *family) (err error) {
		events, err = f.messages(ctx, channel, after, until, limit, bytes)
		return err
	})
	return events, err
}

// DeadLetters returns dead letters of a session; see [Store.DeadLetters].
func (d *Directory) DeadLetters(ctx context.Context, session journal.SessionID, creature journal.CreatureID, after journal.EventID, limit int) (letters []journal.DeadLetterRow, err error) {
	if s := d.opened(session); s != nil {
		return s.DeadLetters(ctx, creature, after, limit)
	}
	err = d.catalog.withRows(ctx, "read", session, d.owned, func(_ catalog.Entry, f *family) (err error) {
		letters, err = f.own.letters(ctx, creature, after, limit)
		return err
	})
	return letters, err
}
