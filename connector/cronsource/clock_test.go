package cronsource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector"
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

// TestClockAheadForAMoment sets the clock a year ahead and back, while the source waits for the
// next tick.
func TestClockAheadForAMoment(t *testing.T) {
	for missed, want := range map[string]struct{ sent, refused int }{"last": {2, 1}, "all": {1001, 2}, "none": {3, 0}} {
		b := newBench(t, "2026-03-02T10:00:00Z")
		stop := b.start(`{"schedule": "*/20 * * * *", "missed": "` + missed + `"}`)
		b.advance("2026-03-02T10:20:00Z")
		b.jump("2027-03-02T10:30:00Z")
		b.jump("2026-03-02T10:30:00Z")
		b.advance("2026-03-02T11:00:00Z")
		v := b.port.Seen()
		if len(v.Sent) != want.sent || len(v.Refused) != want.refused {
			t.Errorf("missed = %s: %d ticks and the problems %v", missed, len(v.Sent), v.Refused)
		}
		if n := len(v.Refused); n > 0 && !strings.Contains(v.Refused[n-1].Error(), "2027-03-02T10:20:00Z, in the future") {
			t.Errorf("missed = %s: the last problem is %v", missed, v.Refused[n-1])
		}
		stop()
	}
}

// TestClockAheadForATick corrects the clock while a tick of the future is being sent.
func TestClockAheadForATick(t *testing.T) {
	b := newBench(t, "2026-03-02T10:00:00Z")
	b.port.Refuse = func(m connector.Message) error {
		if !m.Mark {
			b.set("2026-03-02T10:00:10Z")
		}
		return nil
	}
	stop := b.start(`{"schedule": "*/20 * * * *"}`)
	b.jump("2027-03-02T10:30:00Z")
	stop()
	if v := b.port.Seen(); len(v.Sent) != 1 || len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Error(), "in the future") {
		t.Errorf("%d ticks and the problems %v", len(v.Sent), v.Refused)
	}
}

// TestClockSetBackALittle neither reports nor repeats anything.
func TestClockSetBackALittle(t *testing.T) {
	b := newBench(t, "2026-03-02T10:00:00Z")
	stop := b.start(`{"schedule": "* * * * *"}`)
	b.advance("2026-03-02T10:02:00Z")
	b.jump("2026-03-02T10:00:30Z")
	b.advance("2026-03-02T10:03:00Z")
	stop()
	b.check("2026-03-02T10:01:00Z", "2026-03-02T10:02:00Z", "2026-03-02T10:03:00Z")
	if v := b.port.Seen(); len(v.Refused) > 0 || v.Repeated > 0 {
		t.Errorf("problems: %v, repeated: %d", v.Refused, v.Repeated)
	}
}

// TestStartAhead begins while the clock is ahead.
func TestStartAhead(t *testing.T) {
	b := newBench(t, "2027-03-02T10:00:00Z")
	stop := b.start(`{"schedule": "@hourly"}`)
	b.jump("2026-03-02T10:00:00Z")
	stop()
	v := b.port.Seen()
	if len(v.Sent) > 0 || len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Error(), "the start of the schedule is at 2027-03-02T10:00:00Z") {
		t.Errorf("%d ticks, and the problems %v", len(v.Sent), v.Refused)
	}
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
