package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"context"
	"encoding/json"
	"math"
)

// neededFrom returns the time of the oldest event that is, or may be, still to be read: a
// message after a cursor, or a request that waits for its answer. The session's own file
// names the waiting readers, but the event may be in that of an ancestor.
func (v *familySnapshot) neededFrom(ctx context.Context) (since int64, err error) {
	own := v.files[0]
	readers, err := own.unread(ctx)
	if err != nil {
		return 0, err
	}
	requests, err := own.r.requests(ctx)
	if err != nil {
		return 0, err
	}
	since = math.MaxInt64
	for _, file := range v.files {
		from, err := file.firstBehind(ctx, readers)
		if err != nil {
			return 0, err
		}
		since = min(since, from)
		for _, q := range requests {
			packed, err := numberOf(ctx, file.tx, q.ID)
			if err != nil {
				return 0, err
			}
			if at, found, err := file.firstFrom(ctx, packed, packed); err != nil {
				return 0, err
			} else if found {
				since = min(since, at.ts)
			}
		}
	}
	return since, nil
}

// unread returns how far every channel has been read by all of its readers: pairs of a
// channel's id and a number, as JSON.
func (s *snapshot) unread(ctx context.Context) (string, error) {
	pairs := [][2]any{}
	err := sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var channel string
		var seq int64
		err := scan(&channel, &seq)
		pairs = append(pairs, [2]any{channel, seq})
		return err
	}, "SELECT channel, min(seq) FROM cursor GROUP BY channel")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(pairs)
	return string(text), err
}

// firstBehind returns the time of the oldest message of the file after one of the pairs.
func (s *snapshot) firstBehind(ctx context.Context, pairs string) (since int64, err error) {
	since = math.MaxInt64
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var ts int64
		err := scan(&ts)
		if ts > 0 {
			since = min(since, ts)
		}
		return err
	}, `WITH reader (channel, seq) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(?))
		SELECT coalesce((SELECT ts FROM event WHERE id = (
			SELECT m.event FROM message m WHERE m.channel = r.channel AND m.seq > r.seq ORDER BY m.seq LIMIT 1)), 0) FROM reader r
		UNION ALL SELECT coalesce(min(e.ts), 0) FROM event e JOIN reader r ON r.channel = e.channel AND e.seq > r.seq
			WHERE e.id > (SELECT through FROM indexed) AND e.`+isMessage, pairs)
	return since, err
}
