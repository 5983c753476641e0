package sqlitestore

import "github.com/seed47132306/terrarium/sqlitestore/internal/storefile"

// uniteChanges adds the changes in the attached file that belong to the events of an
// origin in this file. They are added in one step, so all changes before the last one in
// this file are present, unless those of the attached file begin earlier.
func (b *builder) uniteChanges(p numbers) error {
	if b.since > 0 {
		return nil // see forgetChanges
	}
	here, beyond := p.new<<storefile.SeqBits, (p.new+1)<<storefile.SeqBits
	shift := (p.new - p.old) << storefile.SeqBits
	from, _, err := b.c.Integer(`SELECT CASE WHEN min(event) <= ?3 + (SELECT min(event) FROM parent.change WHERE event >= ?1 - ?3 AND event < ?2 - ?3)
		THEN max(event) ELSE ?1 END FROM main.change WHERE event >= ?1 AND event < ?2`, here, beyond, shift)
	if err != nil {
		return err
	}
	last, _, err := b.c.Integer("SELECT coalesce(max(id), ?1) FROM main.event WHERE id > ?1 AND id < ?2", here, beyond)
	if err != nil {
		return err
	}
	_, found, err := b.c.Integer("SELECT 1 FROM parent.change WHERE event BETWEEN ? AND ? LIMIT 1", from-shift, last-shift)
	if err != nil || !found {
		return err
	}
	return b.c.Transact(func() error {
		return b.c.Exec(`INSERT OR IGNORE INTO main.change (event, part, first, base, rows, sum)
			SELECT event + ?1, part, first + ?1, base, rows, sum FROM parent.change WHERE event BETWEEN ?2 AND ?3`, shift, from-shift, last-shift)
	})
}

// forgetChanges starts the table of changes over in a file that was pruned: earlier
// changes are useless without the pruned part.
func (b *builder) forgetChanges() error {
	if b.since == 0 {
		return nil
	}
	if err := b.c.Exec("DELETE FROM main.change"); err != nil {
		return err
	}
	return b.c.Exec("DELETE FROM main.store WHERE key = ?", storefile.Based)
}
