package main

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
)

// History that is still in other files is told, and is no fault.
func TestReportOfAnIncompleteSession(t *testing.T) {
	for want, r := range map[string]operations.VerifyResult{
		"Session s is sound: 2 events.\n": {Events: 2},
		"Session s is sound: 2 events.\n  A part of its history is still in the files of 2 sessions; it moves while the directory is in use.\n": {
			Events: 2, IncompleteFrom: []terrarium.SessionID{"p", "q"},
		},
		"Session s is not sound:\n  missing: e-1\n  A part of its history is still in the files of 1 session; it moves while the directory is in use.\n": {
			Events: 2, Missing: []string{"e-1"}, IncompleteFrom: []terrarium.SessionID{"p"},
		},
		"Session s is not sound:\n  damage: value \\xff\\x1b[2J\n": {Damage: []string{"value \xff\x1b[2J"}},
	} {
		r.Session = "s"
		var out strings.Builder
		if err := printReport(printableWriter{&out}, &r); err != nil || out.String() != want {
			t.Errorf("printed\n%s%v, want\n%s", &out, err, want)
		}
	}
}
