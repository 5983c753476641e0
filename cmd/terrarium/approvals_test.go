package main

import (
	"testing"
	"time"

	"github.com/seed47132306/terrarium/operations"
)

// TestAnswerByDeadline lists a question before and after its deadline.
func TestAnswerByDeadline(t *testing.T) {
	deadline := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	a := &operations.ApprovalRecord{Otherwise: "denied", Deadline: deadline.Format(time.RFC3339Nano)}
	for _, c := range []struct {
		late    time.Duration
		running bool
		want    string
	}{
		{-time.Nanosecond, false, "denied at 2026-03-02T10:00:00Z unless you decide"},
		{-time.Nanosecond, true, "denied at 2026-03-02T10:00:00Z unless you decide"},
		{0, false, "the deadline has passed at 2026-03-02T10:00:00Z: it is denied when the session is resumed"},
		{time.Hour, true, "denied at 2026-03-02T10:00:00Z unless you decide"}, // by the clock of that process
	} {
		if got := answerByDeadline(a, deadline.Add(c.late), c.running); got != c.want {
			t.Errorf("%v after the deadline, running = %v: %q, want %q", c.late, c.running, got, c.want)
		}
	}
}
