package main

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// lastEvent is an event and the session that wrote it.
type lastEvent struct {
	journal.Event
	session journal.SessionID
}

// last shows the newest requested events, oldest first.
func (h *savedHistory) last(ctx context.Context, limit int) error {
	if err := h.readNames(ctx); err != nil {
		return failWith(exitSession, err)
	}
	list, err := h.view.Catalogue(ctx)
	if err != nil {
		return failWith(exitSession, err)
	}
	var found []lastEvent
	for _, e := range byEnd(list) {
		if len(found) == limit && e.at <= found[0].Time {
			break // it ended before all the events that were found
		}
		if h.only != nil && !h.only(&e.SessionInfo) {
			continue
		}
		events, err := h.lastOf(ctx, e.Session, limit)
		if err != nil {
			return failWith(exitSession, err)
		}
		found = newestOf(append(found, events...), limit)
	}
	for i := range found {
		cursor := journal.EventCursor("")
		if h.w.f.format == "json" {
			cursor = journal.CursorBehind(list, found[i].session, &found[i].Event)
		}
		if _, err := h.w.write(&found[i].Event, cursor); err != nil {
			return err
		}
	}
	return nil
}

// lastOf reads the newest requested events of a session's own. It reads larger and
// larger pages until it has found limit of them or read everything.
func (h *savedHistory) lastOf(ctx context.Context, session journal.SessionID, limit int) ([]lastEvent, error) {
	for read := max(limit, pageSize); ; read *= 8 {
		q := journal.HistoryQuery{Own: true, Newest: true, Kinds: h.w.kinds, Limit: read}
		events, err := h.view.History(ctx, session, q)
		if err != nil {
			return nil, err
		}
		var wanted []lastEvent
		for i := range events {
			h.names.learn(&events[i])
			if h.wants(&events[i]) {
				wanted = append(wanted, lastEvent{events[i], session})
			}
		}
		if len(wanted) >= limit || len(events) < read {
			return wanted, nil
		}
	}
}

// newestOf sorts events and keeps the newest.
func newestOf(events []lastEvent, limit int) []lastEvent {
	slices.SortFunc(events, func(a, b lastEvent) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.ID.Origin[:], b.ID.Origin[:]), cmp.Compare(a.ID.Seq, b.ID.Seq))
	})
	return events[max(len(events)-limit, 0):]
}

// ended is a session with the latest time at which it can have ended.
type ended struct {
	journal.SessionInfo
	at int64
}

// byEnd sorts sessions by their end, latest first.
func byEnd(list []journal.SessionInfo) []ended {
	at := map[journal.SessionID]int64{}
	for _, i := range list {
		for _, p := range i.Parents {
			at[p] = i.Created
		}
	}
	out := make([]ended, len(list))
	for i, info := range list {
		out[i] = ended{info, cmp.Or(at[info.Session], math.MaxInt64)}
	}
	slices.SortStableFunc(out, func(a, b ended) int { return cmp.Compare(b.at, a.at) })
	return out
}
