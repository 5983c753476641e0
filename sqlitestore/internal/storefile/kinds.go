package storefile

import (
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// NameKinds adds the names of the kinds of events that are newer than the file, for its
// views. The connection must be able to write.
func NameKinds(c *sqlite.Conn) error {
	highest, _, err := c.Integer("SELECT max(kind) FROM event_kind")
	if err != nil {
		return err
	}
	for _, k := range journal.EventKinds() {
		if int64(k) <= highest {
			continue
		}
		if err := c.Exec("INSERT INTO event_kind (kind, name) VALUES (?, ?)", int64(k), k.String()); err != nil {
			return err
		}
	}
	return nil
}
