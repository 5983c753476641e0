package sqlitestore

import (
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// fill writes the identity and the first content of a spare file in one transaction. That
// transaction is not durable yet, whatever the durability of the session. From then on,
// its writer is as durable as requested.
func (d *Directory) fill(p *spareFile, e catalog.Entry, content func() error) error {
	p.durability = e.Durability
	if err := p.c.SetDurable(false); err != nil {
		return err
	}
	err := p.c.Transact(func() error {
		if err := p.identify(e, d.home); err != nil {
			return err
		}
		if err := content(); err != nil {
			return err
		}
		return d.options.hooks.At(failpoint.Filling, p.path)
	})
	if err != nil {
		return err
	}
	p.chain = p.begun
	if err := d.options.hooks.At(failpoint.Filled, p.path); err != nil {
		return err
	}
	return p.pace()
}

// identify writes which session the file contains and which sessions it came from, within
// a transaction.
func (w *writer) identify(e catalog.Entry, home string) error {
	pairs := []driver.Value{
		"session", string(e.Session),
		"graph", string(e.Graph),
		"born", strconv.FormatUint(e.Born, 10),
		"durability", e.Durability.String(),
		"created", strconv.FormatInt(e.Created, 10),
		"cut", e.Cut,
		"kind", string(e.Kind),
	}
	if !e.Complete {
		pairs = append(pairs, storefile.Incomplete, "1", storefile.Needs, joined(e.Needs))
	}
	if home != "" {
		pairs = append(pairs, storefile.Home, home)
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := w.st.key.Run(pairs[i : i+2]); err != nil {
			return err
		}
	}
	parents := e.Parents
	if len(parents) == 0 {
		parents = []journal.SessionID{""}
	}
	for i, p := range parents {
		values := []driver.Value{string(e.Session), int64(i), sqlite.OptionalText(string(p)), string(e.Graph), e.Created, e.MergedAt, e.SplitAt,
			int64(e.Born), e.Durability.String(), e.Cut, string(e.Kind)}
		if err := w.st.ancestor.Run(values); err != nil {
			return err
		}
	}
	return nil
}

func joined(sessions []journal.SessionID) string {
	texts := make([]string, len(sessions))
	for i, s := range sessions {
		texts[i] = string(s)
	}
	return strings.Join(texts, " ")
}
