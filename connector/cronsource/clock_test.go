package cronsource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// jump sets the clock while the source waits, and waits until the source waits again.
func (b *bench) jump(to string) {
	b.t.Helper()
	b.set(to)
	b.clock.Fire(time.Minute)
}

// TestClockWithoutBattery starts in 1970, as a device does that has no clock of its own. Then the
// clock is set.
func TestClockWithoutBattery(t *testing.T) {
	const now = "2026-03-02T10:10:07Z"
	for _, c := range []struct {
		schedule, zone, missed string
		sent                   int
		first, last            string
		problem                string
	}{
		{"*/2 * * * * *", "UTC", "last", 1, "2026-03-02T10:10:06Z", "2026-03-02T10:10:06Z", ""},
		{"*/2 * * * * *", "UTC", "none", 1, "2026-03-02T10:10:06Z", "2026-03-02T10:10:06Z", ""},
		{"*/2 * * * * *", "UTC", "all", 1000, "2026-03-02T09:36:48Z", "2026-03-02T10:10:06Z", "more than 10000 missed ticks"},
		{"0 * * * *", "UTC", "none", 0, "", "", ""},
		{"0 * * * *", "Pacific/Apia", "last", 1, "2026-03-02T23:00:00+13:00", "2026-03-02T23:00:00+13:00", ""},
		{"0 0 1 1 *", "Australia/Lord_Howe", "all", 56, "1971-01-01T00:00:00+10:00", "2026-01-01T00:00:00+11:00", ""},
		{"0 0 * * *", "Europe/Berlin", "all", 1000, "2023-06-07T00:00:00+02:00", "2026-03-02T00:00:00+01:00", "more than 10000 missed ticks"},
	} {
		b := newBench(t, "1970-01-01T00:05:00Z")
		stop := b.start(fmt.Sprintf(`{"schedule": %q, "time_zone": %q, "missed": %q}`, c.schedule, c.zone, c.missed))
		b.jump(now)
		stop()
		ticks := b.ticks()
		if len(ticks) != c.sent || c.sent > 0 && (ticks[0] != c.first || ticks[len(ticks)-1] != c.last) {
			t.Errorf("%s, %s, missed = %s: %d ticks: %.100q", c.schedule, c.zone, c.missed, len(ticks), ticks)
		}
		if got := fmt.Sprint(b.port.Seen().Refused); c.problem == "" && got != "[]" || !strings.Contains(got, c.problem) {
			t.Errorf("%s, %s, missed = %s: the problems are %s, want %q", c.schedule, c.zone, c.missed, got, c.problem)
		}
	}
}

// TestClockBefore1970 has no ticks until offsets begin.
func TestClockBefore1970(t *testing.T) {
	b := newBench(t, "1969-12-31T23:00:00Z")
	stop := b.start(`{"schedule": "*/20 * * * *"}`)
	b.advance("1970-01-01T00:20:00Z")
	stop()
	b.check("1970-01-01T00:20:00Z")
}

// TestLeapDays waits for a day that comes in eight years, and for a day that a zone left out.
func TestLeapDays(t *testing.T) {
	b := newBench(t, "2097-06-01T00:00:00Z")
	stop := b.start(`{"schedule": "0 0 29 2 *"}`)
	b.advance("2104-03-01T00:00:00Z")
	stop()
	b.check("2104-02-29T00:00:00Z")

	b = newBench(t, "2011-12-20T00:00:00Z")
	stop = b.start(`{"schedule": "0 12 30 12 *", "time_zone": "Pacific/Apia"}`)
	b.advance("2013-01-01T00:00:00Z")
	stop()
	b.check("2012-12-30T12:00:00+14:00")
}

// TestHalfAnHour has a zone whose summer time is half an hour.
func TestHalfAnHour(t *testing.T) {
	b := newBench(t, "2026-04-04T00:00:00Z") // until 2026-04-04T15:00:00Z it is summer
	stop := b.start(`{"schedule": "30 1 * * *", "time_zone": "Australia/Lord_Howe"}`)
	b.advance("2026-04-06T00:00:00Z")
	stop()
	b.check("2026-04-05T01:30:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-06T01:30:00+10:30")

	b = newBench(t, "2026-10-02T12:00:00Z") // summer begins at 2026-10-03T15:30:00Z
	stop = b.start(`{"schedule": "0 0 * * *", "time_zone": "Australia/Lord_Howe"}`)
	b.advance("2026-10-05T12:00:00Z")
	stop()
	b.check("2026-10-03T00:00:00+10:30", "2026-10-04T00:00:00+10:30", "2026-10-05T00:00:00+11:00")
}
