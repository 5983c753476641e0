package storemeta

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// LastTime is the time of the last event of a store. New events must be later, even if
// the clock has been set back.
func LastTime(ctx context.Context, s journal.Store) (int64, error) {
	events, err := s.History(ctx, journal.HistoryQuery{Newest: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Time, nil
}
