package main

import (
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
)

// History that is still in other files is reported, but it is not damage.
func TestReportOfAnIncompleteSession(t *testing.T) {
	for want, r := range map[string]operations.VerifyResult{
		"Session s is intact: 2 events.\n": {Events: 2},
		"Session s is intact: 2 events.\n  Part of its history is still in the files of 2 sessions, and is copied in the background while a process uses the directory.\n": {
			Events: 2, IncompleteFrom: []terrarium.SessionID{"p", "q"},
		},
		"Session s is damaged:\n  missing: e-1\n  Part of its history is still in the files of 1 session, and is copied in the background while a process uses the directory.\n": {
			Events: 2, Missing: []string{"e-1"}, IncompleteFrom: []terrarium.SessionID{"p"},
		},
		"Session s is damaged:\n  damage: value \\xff\\x1b[2J\n": {Damage: []string{"value \xff\x1b[2J"}},
	} {
		r.Session = "s"
		var out strings.Builder
		if err := printReport(printableWriter{&out}, &r); err != nil || out.String() != want {
			t.Errorf("printed\n%s%v, want\n%s", &out, err, want)
		}
	}
}
