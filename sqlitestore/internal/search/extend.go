package search

import (
	"context"
	"errors"
	"math"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

const (
	// batchEvents and batchBytes bound what is read before it is written to the index in
	// one transaction. Larger batches leave less to merge in the index later.
	batchEvents = 4096
	batchBytes  = 4 << 20
)

// extension adds to an index the events that it lacks.
type extension struct {
	ix     *index // nil: a temporary one is made if there is anything
	from   journal.Chronicle
	until  int64 // reading stops after an event of this time
	pacing Pacing
}

// Pacing lets other work go first. Its functions are called now and then, and may wait.
type Pacing struct {
	Rest    func() // while nothing is held
	GiveWay func() // while other processes wait to index
}

// Hurry is the pacing while a caller waits.
var Hurry = Pacing{func() {}, func() {}}

// Everything is a time after all events.
const Everything = math.MaxInt64

// run reads until nothing is left. Several goroutines or processes may do so at once:
// each event is added by one of them.
func (x *extension) run(ctx context.Context) error {
	for {
		if err := x.ix.read(); err != nil {
			return err
		}
		err := x.follow(ctx, x.ix.cursor)
		switch code := abi.CodeOf(err); {
		case errors.Is(err, errOvertaken):
		case code == abi.NotFound || code == abi.InvalidArgument: // it is the index of another directory
			bad := x.ix.cursor
			if bad == journal.FromStart {
				return err
			}
			if err := x.ix.reset(func() bool { return x.ix.cursor != bad }); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// follow continues to read after a cursor.
func (x *extension) follow(ctx context.Context, cursor journal.EventCursor) error {
	replay, err := journal.NewReplay(ctx, x.from, cursor, nil)
	if err != nil {
		return err
	}
	for more := true; more; {
		var events []textEvent
		if events, more, err = x.gather(ctx, replay); err != nil || len(events) == 0 {
			return err
		}
		if x.ix == nil {
			if x.ix, err = temporaryIndex(ctx, cursor); err != nil {
				return err
			}
		}
		next := replay.Cursor()
		if err := x.ix.add(cursor, events, next, x.pacing.GiveWay); err != nil {
			return err
		}
		cursor = next
		x.pacing.Rest()
	}
	return nil
}

// gather reads some events. It reports whether there may be more.
func (x *extension) gather(ctx context.Context, replay *journal.Replay) (events []textEvent, more bool, err error) {
	for room := batchBytes; room > 0 && len(events) < batchEvents; {
		ev, session, found, err := replay.Next(ctx)
		if err != nil || !found {
			return events, false, err
		}
		e := textEvent{ev.ID, session, tagged(&ev)}
		events, room = append(events, e), room-len(ev.Payload)
		if ev.Time > x.until {
			return events, false, nil
		}
		if len(events)%paceEvery == 0 {
			x.pacing.Rest()
		}
	}
	return events, true, nil
}

// Extend brings the index at a path up to date, and makes it if need be.
func Extend(ctx context.Context, path string, from journal.Chronicle, until int64, pace Pacing) (err error) {
	ix, err := openIndex(ctx, path, sqlite.ReadWrite)
	if err != nil {
		return explained(path, err)
	}
	defer func() { err = explained(path, errors.Join(err, ix.close())) }()
	x := &extension{ix, from, until, pace}
	return x.run(ctx)
}
