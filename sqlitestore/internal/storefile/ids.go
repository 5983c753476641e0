package storefile

import (
	"context"
	"database/sql/driver"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// Every event of a file has an id in one integer: the number that its origin has in the
// file, and after it the number of the event.
const (
	// SeqBits is how many bits of a packed event id are the number within the origin; the
	// other bits are enough for eight million origins.
	SeqBits = 40
	// SeqMask covers the bits of that number.
	SeqMask = 1<<SeqBits - 1
)

// OriginIn converts an origin from the form in which a file stores it.
func OriginIn(uuid []byte) (journal.Origin, error) {
	if len(uuid) != len(journal.Origin{}) {
		return journal.Origin{}, sqlite.Malformed("an origin has %d bytes, and should have %d", len(uuid), len(journal.Origin{}))
	}
	return journal.Origin(uuid), nil
}

// TakeHighest records the highest number of an origin from a row.
func TakeHighest(v []driver.Value, out map[journal.Origin]uint64) error {
	var origin journal.Origin
	var highest uint64
	if err := sqlite.TakeRow(v, (*[16]byte)(&origin), &highest); err != nil {
		return err
	}
	out[origin] = highest
	return nil
}

// OwnHighest returns the origins under which the file's session has written, with the
// highest number of each.
func OwnHighest(ctx context.Context, c *sqlite.Conn) (map[journal.Origin]uint64, error) {
	out := map[journal.Origin]uint64{}
	err := c.QueryWithin(ctx, `SELECT w.uuid, (SELECT id & 0xffffffffff FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40 ORDER BY id DESC LIMIT 1)
		FROM own w JOIN origin o ON o.uuid = w.uuid`, nil, func(v []driver.Value) error {
		if v[1] == nil { // everything written under it has been pruned
			return nil
		}
		return TakeHighest(v, out)
	})
	return out, err
}

// VolatileParent represents a graph without a store in a lineage.
const VolatileParent = "volatile"

// PlainIDs refuses ids of sessions that could not occur in the names of files.
func PlainIDs(ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if _, err := files.NameOf(id); err != nil {
			return sqlite.Malformed("%q cannot be the id of a session", sqlite.Shorten(id))
		}
	}
	return nil
}
