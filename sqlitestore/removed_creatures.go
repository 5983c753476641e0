package sqlitestore

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

var _ journal.Rememberer = (*Store)(nil)

// Was returns the last row of a creature. The log contains that row if it records rows
// that events do not imply; see [rowChanges]. Rows that were pruned, or written before the
// log recorded rows, are not known.
func (s *Store) Was(ctx context.Context, creature journal.CreatureID) (row journal.CreatureRow, known bool, err error) {
	if err := s.flush(ctx); err != nil {
		return row, false, err
	}
	var latest int64
	err = s.read(ctx, "read", func(f *family) error {
		for _, r := range f.members() {
			found, at, err := r.was(ctx, creature)
			if err != nil {
				return err
			}
			if found.ID != "" && (!known || at >= latest) {
				row, latest, known = found, at, true
			}
		}
		return nil
	})
	return row, known, err
}

// was is Was of one file. It also returns when the row was logged.
func (r *reader) was(ctx context.Context, creature journal.CreatureID) (row journal.CreatureRow, at int64, err error) {
	err = sqlite.Each(ctx, r.db, func(scan func(...any) error) error {
		return scan(&row.ID, &row.Name, &row.Deployment, &row.Address, &at)
	}, `SELECT row.id, row.name, row.deployment, row.address, coalesce((SELECT ts FROM event WHERE id = row.event), 0) AS at FROM (
		SELECT c.event, c.part, r.value ->> 'ID' AS id, r.value ->> 'Name' AS name, r.value ->> 'Deployment' AS deployment, r.value ->> 'Address' AS address
			FROM change c, json_each(c.rows, '$.Creatures') r WHERE NOT c.base AND instr(c.rows, ?1)
		UNION ALL
		SELECT c.event, c.part, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3
			FROM change c, json_each(c.rows, '$.creature') r WHERE c.base AND instr(c.rows, ?1)
		) row WHERE row.id = ?1 ORDER BY at DESC, row.event DESC, row.part DESC LIMIT 1`, string(creature))
	return row, at, err
}
