package cronsource

import (
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

func calendarOf(t *testing.T, schedule, zone string) *calendar {
	t.Helper()
	spec, err := parse(schedule)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Skipf("the machine has no time zone %s", zone)
	}
	return &calendar{spec, loc}
}

// matches compares a schedule without seconds with what the clock on the wall shows, as a person
// would. It uses nothing of the calendar.
func matches(s *cron.SpecSchedule, t time.Time) bool {
	in := func(field uint64, n int) bool { return field>>n&1 == 1 }
	month, week := in(s.Dom, t.Day()), in(s.Dow, int(t.Weekday()))
	day := month || week
	if in(s.Dom, 63) || in(s.Dow, 63) {
		day = month && week
	}
	return day && in(s.Month, int(t.Month())) && in(s.Hour, t.Hour()) && in(s.Minute, t.Minute())
}

// changes are the days between two years on which a zone's offset changes, the days that it
// leaves out, and the ends of the years.
func changes(zone *time.Location, first, last int) (days []time.Time) {
	at := time.Date(first, 1, 1, 0, 0, 0, 0, time.UTC)
	_, former := at.In(zone).Zone()
	for ; at.Year() <= last; at = at.AddDate(0, 0, 1) {
		_, offset := at.In(zone).Zone()
		if offset != former || at.YearDay() == 1 {
			days = append(days, at)
		}
		former = offset
	}
	return days
}

// TestEveryFewMinutes compares the ticks around each change of several zones with those that a look at
// the clock every five minutes finds, forwards and backwards.
func TestEveryFewMinutes(t *testing.T) {
	schedules := []string{
		"30 1 * * *", "0 0 * * *", "0 2 * * *", "30 2 * * *", "*/15 * * * *", "45 23 * * SUN", "0 0 1 * *", "10 1,2 28-31 3,10 *",
		"0 0 30 12 *", "55 23 31 12 *", "5 0 */2 * MON", "0 3 * 4,10,11 SUN",
	}
	for _, zone := range []string{
		"Australia/Lord_Howe", "America/St_Johns", "Asia/Gaza", "Pacific/Apia", "Europe/Berlin", "America/New_York", "Asia/Kathmandu",
		"Africa/Casablanca", "America/Sao_Paulo", "Antarctica/Troll", "Europe/Dublin", "UTC",
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			var calendars []*calendar
			for _, schedule := range schedules {
				calendars = append(calendars, calendarOf(t, schedule, zone))
			}
			loc := calendars[0].zone
			days := changes(loc, 2011, 2012)
			for _, years := range [][2]int{{2018, 2018}, {2024, 2025}, {2048, 2049}} {
				days = append(days, changes(loc, years[0], years[1])...)
			}
			for _, day := range days {
				start, end := day.AddDate(0, 0, -2), day.AddDate(0, 0, 2)
				var minutes []time.Time
				for at := start; !at.After(end); at = at.Add(5 * time.Minute) { // all schedules ask for such minutes
					minutes = append(minutes, at.In(loc))
				}
				for i, schedule := range schedules {
					compare(t, calendars[i], schedule, minutes)
				}
			}
		})
	}
}

func compare(t *testing.T, c *calendar, schedule string, minutes []time.Time) {
	t.Helper()
	start, end := minutes[0], minutes[len(minutes)-1]
	var want, forth, back []int64
	for _, at := range minutes {
		if matches(c.SpecSchedule, at) {
			want = append(want, at.Unix())
		}
	}
	for at, ok := c.after(start.Add(-1)); ok && !at.After(end); at, ok = c.after(at) {
		forth = append(forth, at.Unix())
	}
	for at, ok := c.before(end, start); ok; at, ok = c.before(at.Add(-1), start) {
		back = append(back, at.Unix())
	}
	slices.Reverse(back)
	if !slices.Equal(forth, want) || !slices.Equal(back, want) {
		t.Errorf("%s after %v: the ticks are\n%v, and backwards\n%v, want\n%v", schedule, start, forth, back, want)
	}
}

// TestRareTicks asks for ticks that are years away, and for one that never comes.
func TestRareTicks(t *testing.T) {
	from := time.Date(2097, 6, 1, 0, 0, 0, 0, time.UTC)
	leap := calendarOf(t, "0 0 29 2 *", "UTC")
	if at, found := leap.after(from); !found || at.UTC().Format(time.DateOnly) != "2104-02-29" {
		t.Errorf("the next 29th of February is %v, %v", at, found)
	}
	if at, found := leap.before(from.AddDate(7, 0, -200), from.AddDate(-40, 0, 0)); !found || at.UTC().Format(time.DateOnly) != "2096-02-29" {
		t.Errorf("the last 29th of February is %v, %v", at, found)
	}
	never := calendarOf(t, "0 0 30 2 *", "Europe/Berlin")
	if at, found := never.after(from); found || at.Sub(from) < horizon {
		t.Errorf("the next 30th of February is %v, %v", at, found)
	}
	if at, found := never.before(from, from.AddDate(-40, 0, 0)); found {
		t.Errorf("the last 30th of February is %v", at)
	}
	seconds := calendarOf(t, "*/7 59 23 * * *", "UTC")
	at, found := seconds.before(from, from.AddDate(0, 0, -2))
	if !found || at.UTC().Format(time.RFC3339) != "2097-05-31T23:59:56Z" {
		t.Errorf("the last tick of the day is %v, %v", at, found)
	}
	if next, found := seconds.after(at); !found || next.UTC().Format(time.RFC3339) != "2097-06-01T23:59:00Z" {
		t.Errorf("the first tick of the next day is %v, %v", next, found)
	}
}
