package sqlitestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

var (
	_ journal.Rewinder = (*View)(nil)
	_ journal.Rewinder = (*Directory)(nil)
)

// RowsAt implements [journal.Rewinder]. It reads the changes since the last base. Unlike
// ForkAt, it neither copies history nor writes a file.
func (a *archive) RowsAt(ctx context.Context, session journal.SessionID, at journal.Mark) (g journal.SavedGraph, err error) {
	if err := a.flush(ctx, session); err != nil {
		return g, err
	}
	err = a.catalog.withFamily(ctx, "topology", session, func(e catalog.Entry, f *family) error {
		own, err := a.catalog.authored(ctx, e, f)
		if err != nil {
			return err
		}
		upTo, _, err := f.bounds(ctx, own, at)
		if err != nil {
			return err
		}
		g = journal.SavedGraph{Session: e.Session, Graph: e.Graph, Born: e.Born, Durability: e.Durability}
		return f.rowsAt(ctx, &g, upTo)
	})
	return g, err
}

// episode is a part of what a session wrote under one origin, in packed ids.
type episode struct {
	no, first, last int64
	reaches         int64 // the last event that the file has of the origin; first if it has none
	began           int64 // time of its first event
}

// eventsOf counts the events of some episodes that the file has. Those that were pruned
// from its beginning count as well.
func eventsOf(line []episode) (n int64) {
	for _, e := range line {
		n += min(e.reaches, e.last) - e.first
	}
	return n
}

// rowsAt determines the rows of the topology after the given number of events of each
// of a session's own origins.
func (f *family) rowsAt(ctx context.Context, g *journal.SavedGraph, upTo map[journal.Origin]uint64) (err error) {
	v, err := f.look(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	var line []episode
	var in *snapshot
	most := int64(-1)
	for _, s := range v.byAge() { // one of them has everything that the session wrote; later ones may only name its origins
		found, err := s.ownIn(ctx, upTo)
		if err != nil {
			return err
		}
		if n := eventsOf(found); len(found) > 0 && n > most {
			in, line, most = s, found, n
		}
	}
	if in == nil {
		return unknownTopology(g.Session)
	}
	return in.replayRows(ctx, g, line)
}

// ownIn lists the origins of a session that a file has, in the order in which they were
// written. It omits origins after the last event. An origin without events may have
// changes as well; see [writer.inOrder].
func (s *snapshot) ownIn(ctx context.Context, upTo map[journal.Origin]uint64) (line []episode, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var uuid []byte
		var of episode
		if err := scan(&of.no, &uuid, &of.began, &of.reaches); err != nil {
			return err
		}
		origin, err := storefile.OriginIn(uuid)
		if n, own := upTo[origin]; own {
			of.first = of.no << storefile.SeqBits
			of.last = of.first + int64(n)
			line = append(line, of)
		}
		return err
	}, `SELECT no, uuid, coalesce((SELECT ts FROM event WHERE id > no << 40 AND id < (no + 1) << 40 ORDER BY id LIMIT 1), -1),
		coalesce((SELECT max(id) FROM event WHERE id > no << 40 AND id < (no + 1) << 40), no << 40) FROM origin ORDER BY no`)
	if err != nil || len(line) == 0 {
		return line, err
	}
	next := int64(math.MaxInt64)
	for i := range slices.Backward(line) {
		if line[i].began < 0 {
			line[i].began = next
		}
		next = min(next, line[i].began)
	}
	slices.SortFunc(line, func(a, b episode) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.no, b.no)) })
	end := -1
	for i := range line {
		if line[i].last > line[i].first {
			end = i
		}
	}
	if end >= 0 {
		return line[:end+1], nil
	}
	line = line[:1] // its base and its first change
	return line, span{in: s}.value(ctx, &line[0].last, "SELECT event FROM change WHERE event >= ? AND event < ? AND NOT base ORDER BY event, part LIMIT 1",
		line[0].first, line[0].first+1<<storefile.SeqBits)
}

// replayRows reads the last base in the line, and applies the changes after it.
func (s *snapshot) replayRows(ctx context.Context, g *journal.SavedGraph, line []episode) error {
	rows := newTopologyRows()
	from := -1
	var base change
	for i := len(line) - 1; i >= 0 && from < 0; i-- {
		err := sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
			from = i
			return scan(&base.event, &base.part, &base.rows)
		}, "SELECT event, part, rows FROM change WHERE event BETWEEN ? AND ? AND base ORDER BY event DESC, part DESC LIMIT 1", line[i].first, line[i].last)
		if err != nil {
			return err
		}
	}
	if from < 0 {
		return unknownTopology(g.Session)
	}
	if err := rows.begin(base.rows); err != nil {
		return err
	}
	for i := from; i < len(line); i++ {
		first := line[i].first
		if i == from {
			first = base.event
		}
		err := sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
			var c change
			if err := scan(&c.event, &c.part, &c.rows); err != nil {
				return err
			}
			if i == from && c.event == base.event && c.part <= base.part {
				return nil
			}
			return rows.change(c.rows)
		}, "SELECT event, part, rows FROM change WHERE event BETWEEN ? AND ? AND NOT base ORDER BY event, part", first, line[i].last)
		if err != nil {
			return err
		}
	}
	rows.into(g)
	return nil
}

// unknownTopology is the error if the log does not determine the topology at a cursor.
func unknownTopology(session journal.SessionID) error {
	return &abi.Error{
		Code: abi.Unsupported, Op: "topology", Message: fmt.Sprintf("the graph of session %s at that moment is not known: an older version wrote it, or history has been pruned since", session),
		Remedy: "choose a later moment", IDs: map[string]string{"session": string(session)},
	}
}

// edgeKey identifies an edge.
type edgeKey struct {
	creature  journal.CreatureID
	channel   journal.ChannelID
	direction journal.Direction
}

// topologyRows are the rows that describe the topology of a graph.
type topologyRows struct {
	creatures map[journal.CreatureID]journal.CreatureRow
	channels  map[journal.ChannelID]journal.ChannelRow
	edges     map[edgeKey]journal.EdgeRow
	wires     map[journal.WireID]journal.OutputWire
}

func newTopologyRows() *topologyRows {
	return &topologyRows{
		map[journal.CreatureID]journal.CreatureRow{}, map[journal.ChannelID]journal.ChannelRow{}, map[edgeKey]journal.EdgeRow{}, map[journal.WireID]journal.OutputWire{},
	}
}

func (t *topologyRows) put(r *journal.Record) {
	for _, c := range r.Creatures {
		t.creatures[c.ID] = c
	}
	for _, c := range r.Channels {
		t.channels[c.ID] = c
	}
	for _, e := range r.Edges {
		t.edges[edgeKey{e.Creature, e.Channel, e.Direction}] = e
	}
	for _, w := range r.Wires {
		t.wires[w.ID] = w
	}
}

// change applies the changes of a record.
func (t *topologyRows) change(text string) error {
	c, err := decodeChanges(text)
	if err != nil {
		return err
	}
	r := c.record()
	for _, id := range r.Drop.Creatures {
		delete(t.creatures, id)
		maps.DeleteFunc(t.edges, func(e edgeKey, _ journal.EdgeRow) bool { return e.creature == id })
		maps.DeleteFunc(t.wires, func(_ journal.WireID, w journal.OutputWire) bool { return w.From == id })
		delete(t.channels, journal.InboxOf(id))
	}
	for _, id := range r.Drop.Channels {
		delete(t.channels, id)
		maps.DeleteFunc(t.edges, func(e edgeKey, _ journal.EdgeRow) bool { return e.channel == id })
	}
	for _, e := range r.Drop.Edges {
		delete(t.edges, edgeKey{e.Creature, e.Channel, e.Direction})
	}
	for _, id := range r.Drop.Wires {
		delete(t.wires, id)
	}
	t.put(r)
	return nil
}

// begin reads the rows of a base.
func (t *topologyRows) begin(text string) error {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var base baseRows
	if err := in.Decode(&base); err != nil {
		return fmt.Errorf("the base of the changes: %w", err)
	}
	var r journal.Record
	err := errors.Join(
		eachRow(base["creature"], func(v row) {
			r.Creatures = append(r.Creatures, journal.CreatureRow{
				ID: journal.CreatureID(v.text(0)), Name: v.text(1), Deployment: v.text(2), Address: v.text(3), Born: uint64(v.number(4)), Parent: journal.CreatureID(v.text(5)),
				Privileged: v.number(6) != 0, Root: v.number(7) != 0, Stopped: v.number(8) != 0, Started: v.number(9) != 0, Module: v.text(10), SHA256: v.text(11), Spec: []byte(v.text(12)),
			})
		}),
		eachRow(base["channel"], func(v row) {
			r.Channels = append(r.Channels, journal.ChannelRow{
				ID: journal.ChannelID(v.text(0)), Name: v.text(1), Description: v.text(2), Deployment: v.text(3), Address: v.text(4), Born: uint64(v.number(5)),
				Report: v.number(6) != 0, Inbox: journal.CreatureID(v.text(7)),
			})
		}),
		eachRow(base["edge"], func(v row) {
			r.Edges = append(r.Edges, journal.EdgeRow{
				Creature: journal.CreatureID(v.text(0)), Channel: journal.ChannelID(v.text(1)), Direction: journal.Direction(v.number(2)), Alias: v.text(3), Order: uint64(v.number(4)),
			})
		}),
		eachRow(base["wire"], func(v row) {
			r.Wires = append(r.Wires, journal.OutputWire{
				ID: journal.WireID(v.text(0)), Name: v.text(1), From: journal.CreatureID(v.text(2)), To: journal.CreatureID(v.text(3)), WithContent: v.number(4) != 0,
				Prompt: v.text(5), When: v.text(6), AllowSelf: v.number(7) != 0, Order: uint64(v.number(8)),
			})
		}))
	t.put(&r)
	return err
}

// row is a row of a base. A field that it lacks is zero.
type row []any

func eachRow(rows [][]any, take func(row)) error {
	for _, fields := range rows {
		v := make(row, len(fields))
		for i, field := range fields {
			value, err := (*writer)(nil).restoreField(field, false)
			if err != nil {
				return fmt.Errorf("the base of the changes: %w", err)
			}
			v[i] = value
		}
		take(v)
	}
	return nil
}

func (v row) text(i int) string {
	if i >= len(v) {
		return ""
	}
	switch field := v[i].(type) {
	case string:
		return field
	case []byte:
		return string(field)
	}
	return ""
}

func (v row) number(i int) int64 {
	if i >= len(v) {
		return 0
	}
	switch field := v[i].(type) {
	case int64:
		return field
	case bool:
		if field {
			return 1
		}
	}
	return 0
}

// into puts the rows into a graph, in the order of [reader.liveRows].
func (t *topologyRows) into(g *journal.SavedGraph) {
	g.Creatures = slices.SortedFunc(maps.Values(t.creatures), func(a, b journal.CreatureRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	g.Channels = slices.SortedFunc(maps.Values(t.channels), func(a, b journal.ChannelRow) int {
		return cmp.Or(cmp.Compare(a.Born, b.Born), cmp.Compare(a.ID, b.ID))
	})
	g.Edges = slices.SortedFunc(maps.Values(t.edges), func(a, b journal.EdgeRow) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Creature, b.Creature), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Direction, b.Direction))
	})
	g.Wires = slices.SortedFunc(maps.Values(t.wires), func(a, b journal.OutputWire) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
	})
}
