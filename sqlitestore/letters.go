package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

const letterFields = "id, ts, creature, coalesce(message, 0), kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload"

// packedLetter is a dead letter whose ids are still packed, as in the file.
type packedLetter struct {
	journal.DeadLetterRow
	id, message int64
}

// letters reads dead letters after a given one, which may have been removed meanwhile.
func (r *reader) letters(ctx context.Context, creature journal.CreatureID, after journal.EventID, limit int) (out []journal.DeadLetterRow, err error) {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sqlite.EndRead(tx)) }()
	if limit <= 0 {
		limit = defaultLimit
	}
	low := int64(0)
	if !after.IsZero() {
		if low, err = numberOf(ctx, tx, after); err != nil {
			return nil, err
		}
		if low == 0 {
			return nil, &abi.Error{
				Code: abi.NotFound, Op: "dead_letters", Message: "the session has no dead letter " + after.String(),
				Remedy: "take the id from a dead letter of this session; dead_letters lists them", IDs: map[string]string{"event": after.String()},
			}
		}
	}
	query, args := "SELECT "+letterFields+" FROM letter WHERE id > ?", []any{low}
	if creature != "" {
		query, args = query+" AND creature = ?", append(args, string(creature))
	}
	packed, err := scanLetters(ctx, tx, query+" ORDER BY id LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	for i := range packed {
		row := packed[i].DeadLetterRow
		if row.ID, err = r.unpack(ctx, tx, packed[i].id); err != nil {
			return nil, err
		}
		if row.Message, err = r.unpack(ctx, tx, packed[i].message); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

func scanLetters(ctx context.Context, q sqlite.Querier, query string, args ...any) (out []packedLetter, err error) {
	err = sqlite.Each(ctx, q, func(scan func(...any) error) error {
		var l packedLetter
		err := scan(&l.id, &l.Time, &l.Creature, &l.message, &l.Kind, &l.Channel, sqlite.Unsigned(&l.Seq), &l.Sender,
			&l.Alias, &l.Reason, &l.Attempts, &l.Error, &l.LastWords, &l.Headers, &l.Payload)
		out = append(out, l)
		return err
	}, query, args...)
	return out, err
}
