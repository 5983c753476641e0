package sqlitestore

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// liveTable is a table of live rows, with its columns. A later version may add columns at
// the end; a base without them has the rows of an earlier version.
type liveTable struct{ name, columns string }

var liveTables = []liveTable{
	{"meta", "key, value"},
	{"creature", "id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec"},
	{"channel", "id, name, description, deployment, address, born, report, inbox"},
	{"head", "channel, seq"},
	{"edge", "creature, channel, direction, alias, ord"},
	{"cursor", "reader, channel, seq, until, alias"},
	{"producer", "channel, producer, offset"},
	{"timer", "creature, name, due, period, payload"},
	{"request", "id, creature, tag, deadline"},
	{"wire", "id, name, source, target, with_content, prompt, predicate, allow_self, ord"},
	{"letter", "id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload"},
}

// stateTable is in a base only if the log may lack some of the values that were written.
var stateTable = liveTable{"state_value", "creature, key, value"}

// packedColumns returns the columns that hold packed ids of events.
func (t liveTable) packedColumns() []int {
	switch t.name {
	case "request":
		return []int{0}
	case "letter":
		return []int{0, 3}
	}
	return nil
}

// baseRows are all live rows of a session, by table. A blob is an object with a member b,
// and a text that is not UTF-8 an object with a member t; an id of an event is a text.
type baseRows map[string][][]any

type jsonBlob struct {
	B []byte `json:"b"`
}

// jsonText stands for a text that is not UTF-8.
type jsonText struct {
	T []byte `json:"t"`
}

// layBase begins the table of changes in a file that does not have one yet: it writes
// down all rows, after the last event of the session. It is used within a transaction.
func (w *writer) layBase() error {
	if w.based {
		return nil
	}
	tables := liveTables
	gaps, err := lossy(w.c, math.MaxInt64)
	if err != nil {
		return err
	}
	if gaps || w.lossy {
		tables = append(slices.Clone(tables), stateTable)
	}
	rows, err := w.dump(tables)
	if err != nil {
		return err
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	behind, err := w.lastOwn()
	if err != nil {
		return err
	}
	part, _, err := w.c.Integer("SELECT coalesce(max(part), 0) + 1 FROM change WHERE event = ?", behind)
	if err != nil {
		return err
	}
	if err := w.writeChange(w.originOf(behind>>storefile.SeqBits), behind, part, behind+1, 1, string(text)); err != nil {
		return err
	}
	w.based = true
	if no := w.origins[w.own]; behind>>storefile.SeqBits == no {
		w.behind, w.parts = uint64(behind&storefile.SeqMask), part
	}
	return w.c.Exec("INSERT OR REPLACE INTO store (key, value) VALUES (?, '1')", storefile.Based)
}

// lossy reports whether the log in the file may lack some of the values that creatures
// wrote to their states up to a time: history has been pruned, or a graph without a store
// became part of the session.
func lossy(c *sqlite.Conn, until int64) (bool, error) {
	_, lossy, err := c.Integer("SELECT 1 FROM store WHERE key = '"+storefile.Pruned+"' UNION ALL SELECT 1 FROM ancestor WHERE parent = '"+storefile.VolatileParent+"' AND created <= ? LIMIT 1", until)
	return lossy, err
}

// lastOwn returns the packed id of the last event of the session. If there is none yet, it
// returns the id before that of the first event.
func (w *writer) lastOwn() (int64, error) {
	last, found, err := w.c.Integer(`SELECT e.id FROM own w JOIN origin o ON o.uuid = w.uuid
		JOIN event e ON e.id = (SELECT max(id) FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40)
		ORDER BY e.ts DESC, e.id DESC LIMIT 1`)
	if err != nil || found {
		return last, err
	}
	no, err := w.number(w.own)
	return no << storefile.SeqBits, err
}

// dump reads all rows of some tables.
func (w *writer) dump(tables []liveTable) (baseRows, error) {
	uuids := make(map[int64]journal.Origin, len(w.origins))
	for origin, no := range w.origins {
		uuids[no] = origin
	}
	out := baseRows{}
	for _, t := range tables {
		packed := t.packedColumns()
		out[t.name] = [][]any{} // a table without rows is in the base, and is empty
		err := w.c.QueryOnce("SELECT "+t.columns+" FROM "+t.name, func(v []driver.Value) error {
			row := make([]any, len(v))
			for i := range v {
				row[i] = v[i]
				if b, ok := v[i].([]byte); ok {
					row[i] = jsonBlob{bytes.Clone(b)}
				}
				if s, ok := v[i].(string); ok && !utf8.ValidString(s) {
					row[i] = jsonText{[]byte(s)}
				}
				if n, ok := v[i].(int64); ok && slices.Contains(packed, i) {
					row[i] = journal.EventID{Origin: uuids[n>>storefile.SeqBits], Seq: uint64(n & storefile.SeqMask)}
				}
			}
			out[t.name] = append(out[t.name], row)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// restore replaces the present rows by those of a base, within a transaction.
func (w *writer) restore(text string) (rows baseRows, err error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&rows); err != nil {
		return nil, err
	}
	for _, t := range append(slices.Clone(liveTables), stateTable) {
		if err := w.c.Exec("DELETE FROM " + t.name); err != nil {
			return nil, err
		}
		for _, row := range rows[t.name] {
			if err := w.restoreRow(t, row); err != nil {
				return nil, fmt.Errorf("the base of the changes: %w", err)
			}
		}
	}
	return rows, nil
}

func (w *writer) restoreRow(t liveTable, row []any) error {
	columns := strings.Split(t.columns, ", ")
	if len(row) > len(columns) {
		return fmt.Errorf("a row of %s has %d columns", t.name, len(row))
	}
	columns = columns[:len(row)]
	packed := t.packedColumns()
	values := make([]driver.Value, len(row))
	for i, field := range row {
		value, err := w.restoreField(field, slices.Contains(packed, i))
		if err != nil {
			return err
		}
		values[i] = value
	}
	return w.c.Exec("INSERT INTO "+t.name+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")", values...)
}

// restoreField returns a value in the form in which the file stores it.
func (w *writer) restoreField(field any, packed bool) (driver.Value, error) {
	switch v := field.(type) {
	case nil:
		return nil, nil
	case bool:
		return v, nil
	case json.Number:
		return v.Int64()
	case string:
		if !packed {
			return v, nil
		}
		id, err := journal.ParseEventID(v)
		if err != nil {
			return nil, err
		}
		return w.pack(id)
	case map[string]any:
		return restoreBytes(v)
	}
	return nil, fmt.Errorf("a field is %T", field)
}

// restoreBytes returns the blob or text that an object stands for.
func restoreBytes(object map[string]any) (driver.Value, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var of struct {
		jsonBlob
		jsonText
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, err
	}
	if of.T != nil {
		return string(of.T), nil
	}
	return append([]byte{}, of.B...), nil
}
