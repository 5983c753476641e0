package cronsource

import (
	"time"

	"github.com/robfig/cron/v3"
)

// calendar computes the ticks of a schedule in a time zone: the seconds at which the clock on the
// wall shows what the fields ask for.
//
// Between two changes of the zone's offset, the clock on the wall runs evenly. So the search goes
// from one such change to the next, and in between it counts as in UTC. It thus needs no rules for
// hours or days that a zone leaves out or has twice, nor for changes of half an hour.
type calendar struct {
	*cron.SpecSchedule
	zone *time.Location
}

// horizon bounds the search for a tick, so that it always ends. A day that exists in leap years
// only comes within eight years, as from 2096 to 2104.
const horizon = 40 * 366 * 24 * time.Hour

// after returns the first tick after a time. If there is none within the horizon, found is false,
// and at is the end of the search.
func (c *calendar) after(t time.Time) (at time.Time, found bool) {
	from := t.Unix() + 1
	limit := from + int64(horizon/time.Second)
	for from <= limit {
		to, offset := c.evenly(from, limit)
		if wall, ok := c.find(from+offset, to+offset); ok {
			return time.Unix(wall-offset, 0), true
		}
		from = to + 1
	}
	return time.Unix(limit, 0), false
}

// before returns the last tick at or before a time, but none before first.
func (c *calendar) before(t, first time.Time) (at time.Time, found bool) {
	type stretch struct{ from, to, offset int64 }
	const most = 30 * 24 * 60 * 60 // with few changes of the offset
	for to, bound := t.Unix(), first.Unix(); to >= bound; {
		start := max(bound, to-most)
		var list []stretch
		for from := start; from <= to; {
			end, offset := c.evenly(from, to)
			list = append(list, stretch{from, end, offset})
			from = end + 1
		}
		for i := len(list) - 1; i >= 0; i-- {
			if wall, ok := c.find(list[i].to+list[i].offset, list[i].from+list[i].offset); ok {
				return time.Unix(wall-list[i].offset, 0), true
			}
		}
		to = start - 1
	}
	return time.Time{}, false
}

// evenly returns the offset of the zone at a time, and up to when it certainly stays the same.
func (c *calendar) evenly(from, limit int64) (to, offset int64) {
	t := time.Unix(from, 0).In(c.zone)
	_, seconds := t.Zone()
	// The start that ZoneBounds returns may be too early for a zone whose rules have changed. And
	// after the last change that the database lists, it ends each year after 365 days, so that
	// the last day of a leap year is beyond the end.
	_, end := t.ZoneBounds()
	switch {
	case end.IsZero():
		return limit, int64(seconds)
	case end.After(t):
		return min(limit, end.Unix()-1), int64(seconds)
	}
	return min(limit, t.UTC().Truncate(24*time.Hour).Unix()+24*60*60-1), int64(seconds)
}

// find returns the first second of the wall clock that matches, on the way from one to another;
// both count. If to is before from, the search goes back.
func (c *calendar) find(from, to int64) (wall int64, ok bool) {
	for at := from; min(from, to) <= at && at <= max(from, to); {
		t := time.Unix(at, 0).UTC()
		var begin, next int64 // of the month, day, hour, minute or second that does not match, and after it
		switch {
		case !has(c.Month, int(t.Month())):
			begin = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).Unix()
			next = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC).Unix()
		case !c.onDay(t):
			begin = at - int64(t.Hour()*60*60+t.Minute()*60+t.Second())
			next = begin + 24*60*60
		case !has(c.Hour, t.Hour()):
			begin = at - int64(t.Minute()*60+t.Second())
			next = begin + 60*60
		case !has(c.Minute, t.Minute()):
			begin = at - int64(t.Second())
			next = begin + 60
		case !has(c.Second, t.Second()):
			begin, next = at, at+1
		default:
			return at, true
		}
		if at = next; to < from {
			at = begin - 1
		}
	}
	return 0, false
}

// onDay reports whether the day of the month and the day of the week match. If both are restricted,
// one of them suffices, as in every cron.
func (c *calendar) onDay(t time.Time) bool {
	const star = 63 // the bit that the parser sets for a field that restricts nothing
	month, week := has(c.Dom, t.Day()), has(c.Dow, int(t.Weekday()))
	if has(c.Dom, star) || has(c.Dow, star) {
		return month && week
	}
	return month || week
}

func has(field uint64, n int) bool { return field&(1<<n) != 0 }
