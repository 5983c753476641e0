package main

import (
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/spf13/pflag"
)

func addDespite(fs *pflag.FlagSet, despite *bool) {
	fs.BoolVar(despite, "despite-damage", false, "go on without what stores have lost: it begins anew, and takes its input again")
}

// refuseDamage shows which live stores of a directory cannot be read, lack the end of
// their logs, or may be among files that no session has, and answers an error if there are any: a recipe would make anew what was in
// them, and handle its input again, which a supervisor would take for success. With
// despite it answers none.
func refuseDamage(s streams, dir string, problems []error, despite bool) error {
	if despite {
		return nil
	}
	for _, p := range journal.Damaged(problems) {
		showError(s.err, p)
	}
	return damaged(dir, problems)
}

// damaged says how many live stores of a directory cannot be read, lack their ends, or may
// be among files that no session has, and answers none if there is no such store.
func damaged(dir string, problems []error) error {
	unreadable, cut, left := 0, 0, 0
	for _, p := range journal.Damaged(problems) {
		var typed *abi.Error
		switch {
		case errors.As(p, &typed) && typed.IDs[journal.CutShortID] != "":
			cut++
		case typed != nil && typed.IDs[journal.LeftOutID] != "":
			left++
		default:
			unreadable++
		}
	}
	var what, without []string
	if unreadable > 0 {
		what = append(what, count(unreadable, "live store")+" of "+dir+" cannot be read")
		without = append(without, "without it, its creatures would begin anew and take all their input again")
	}
	if cut > 0 {
		what = append(what, count(cut, "live store")+" of "+dir+" lost acknowledged events")
		without = append(without, "its creatures would go on from before the loss, and take input again that they had handled")
	}
	if left > 0 {
		what = append(what, count(left, "file")+" of "+dir+" may be a store that the catalogue does not have")
		without = append(without, "creatures that were in it would begin anew and take all their input again")
	}
	if len(what) == 0 {
		return nil
	}
	return failWith(exitSession, &abi.Error{
		Code:    abi.Storage,
		Message: strings.Join(what, ", and ") + "; " + strings.Join(without, "; ") + ", so nothing has been started",
		Remedy: "put back what is missing or damaged, from a backup for example; if only the catalogue is wrong, make it again with terrarium session rebuild " + dir +
			"; to go on without what is lost and keep the rest, repeat the command with --despite-damage",
		IDs: map[string]string{"path": dir},
	})
}
