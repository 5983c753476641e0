package sqlitestore

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// meta reads the metadata of the session.
func (r *reader) meta(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		var key, value string
		if err := scan(&key, &value); err != nil {
			return err
		}
		out[key] = value
		return nil
	}, "SELECT key, value FROM meta")
	return out, err
}

// collect appends a row to out for every row of a query.
func collect[R any](ctx context.Context, r *reader, out *[]R, fields func(*R) []any, query string) error {
	return sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		var row R
		if err := scan(fields(&row)...); err != nil {
			return err
		}
		*out = append(*out, row)
		return nil
	}, query)
}

// liveRows reads all live rows except states, which are read when they are needed.
func (r *reader) liveRows(ctx context.Context, g *journal.SavedGraph) (err error) {
	if g.Meta, err = r.meta(ctx); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Creatures, func(c *journal.CreatureRow) []any {
		return []any{&c.ID, &c.Name, &c.Deployment, &c.Address, sqlite.Unsigned(&c.Born), &c.Parent, &c.Privileged, &c.Root, &c.Stopped, &c.Started, &c.Module, &c.SHA256, &c.Spec}
	}, "SELECT id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec FROM creature ORDER BY born, id"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Channels, func(c *journal.ChannelRow) []any {
		return []any{&c.ID, &c.Name, &c.Description, &c.Deployment, &c.Address, sqlite.Unsigned(&c.Born), &c.Report, &c.Inbox}
	}, "SELECT id, name, description, deployment, address, born, report, inbox FROM channel ORDER BY born, id"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Heads, func(h *journal.HeadRow) []any {
		return []any{&h.Channel, sqlite.Unsigned(&h.Seq)}
	}, "SELECT channel, seq FROM head ORDER BY channel"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Edges, func(e *journal.EdgeRow) []any {
		return []any{&e.Creature, &e.Channel, &e.Direction, &e.Alias, sqlite.Unsigned(&e.Order)}
	}, "SELECT creature, channel, direction, alias, ord FROM edge ORDER BY ord, creature, channel, direction"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Cursors, func(c *journal.CursorRow) []any {
		return []any{&c.Reader, &c.Channel, sqlite.Unsigned(&c.Seq), sqlite.Unsigned(&c.Until), &c.Alias}
	}, "SELECT reader, channel, seq, until, alias FROM cursor ORDER BY reader, channel, until"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Producers, func(p *journal.ProducerRow) []any {
		return []any{&p.Channel, &p.Producer, sqlite.Unsigned(&p.Offset)}
	}, "SELECT channel, producer, offset FROM producer ORDER BY channel, producer"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Timers, func(t *journal.TimerRow) []any {
		return []any{&t.Creature, &t.Name, &t.Due, &t.Period, &t.Payload}
	}, "SELECT creature, name, due, period, payload FROM timer ORDER BY creature, name"); err != nil {
		return err
	}
	if err := collect(ctx, r, &g.Wires, func(w *journal.OutputWire) []any {
		return []any{&w.ID, &w.Name, &w.From, &w.To, &w.WithContent, &w.Prompt, &w.When, &w.AllowSelf, sqlite.Unsigned(&w.Order)}
	}, "SELECT id, name, source, target, with_content, prompt, predicate, allow_self, ord FROM wire ORDER BY source, ord, id"); err != nil {
		return err
	}
	g.Requests, err = r.requests(ctx)
	return err
}

func (r *reader) requests(ctx context.Context) (out []journal.RequestRow, err error) {
	var packed []int64
	err = sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		var row journal.RequestRow
		var id int64
		err := scan(&id, &row.Creature, &row.Tag, &row.Deadline)
		packed, out = append(packed, id), append(out, row)
		return err
	}, "SELECT id, creature, tag, deadline FROM request ORDER BY id")
	for i := 0; i < len(out) && err == nil; i++ {
		out[i].ID, err = r.unpack(ctx, r.db, packed[i])
	}
	return out, err
}
