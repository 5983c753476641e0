package sqlitestore

import (
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
)

// fill writes what a prepared file is, and what it begins with, in one transaction,
// which is not durable yet, whatever the durability of the session is. From then on
// its writer is as durable as was asked for.
func (d *Directory) fill(p *prepared, e entry, content func() error) error {
	p.durability, e.home = e.Durability, d.home
	if err := p.c.tempo(false); err != nil {
		return err
	}
	err := p.c.transact(func() error {
		if err := p.identify(e); err != nil {
			return err
		}
		if err := content(); err != nil {
			return err
		}
		return d.options.hooks.at(pointFilling, p.path)
	})
	if err != nil {
		return err
	}
	p.chain = p.begun
	if err := d.options.hooks.at(pointFilled, p.path); err != nil {
		return err
	}
	return p.pace()
}

// identify writes what the file is and where it comes from, within a
// transaction.
func (w *writer) identify(e entry) error {
	pairs := []driver.Value{
		"session", string(e.Session),
		"graph", string(e.Graph),
		"born", strconv.FormatUint(e.born, 10),
		"durability", e.Durability.String(),
		"created", strconv.FormatInt(e.Created, 10),
		"cut", e.cut,
		"kind", e.kind,
	}
	if !e.Complete {
		pairs = append(pairs, "incomplete", "1")
	}
	if e.home != "" {
		pairs = append(pairs, keyHome, e.home)
	}
	rows := strings.Repeat(", (?, ?)", len(pairs)/2)[2:]
	if err := w.c.exec("INSERT OR REPLACE INTO store (key, value) VALUES "+rows, pairs...); err != nil {
		return err
	}
	parents := e.Parents
	if len(parents) == 0 {
		parents = []journal.SessionID{""}
	}
	for i, p := range parents {
		values := []driver.Value{string(e.Session), int64(i), text(string(p)), string(e.Graph), e.Created, e.MergedAt, e.SplitAt,
			int64(e.born), e.Durability.String(), e.cut, e.kind}
		if err := w.c.exec(`INSERT OR REPLACE INTO ancestor (session, ordinal, parent, graph, created, merged_at, split_at, born, durability, cut, kind)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, values...); err != nil {
			return err
		}
	}
	return nil
}
