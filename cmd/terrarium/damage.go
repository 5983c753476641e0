package main

import (
	"errors"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/spf13/pflag"
)

func addDespite(fs *pflag.FlagSet, despite *bool) {
	fs.BoolVar(despite, "despite-damage", false, "continue although stores are damaged: creatures whose data is lost start over, and get their input again")
}

// refuseDamage prints the live stores of a directory that are unreadable or cut short,
// and the files that may be stores missing from the catalogue. It returns an error if
// there are any. Without it, the recipe would recreate the lost creatures and handle
// their input again, and a supervisor would take that for success. With despite it
// prints nothing and returns nil.
func refuseDamage(s streams, dir string, problems []error, despite bool) error {
	if despite {
		return nil
	}
	for _, p := range journal.Damaged(problems) {
		showError(s.err, p)
	}
	return damaged(dir, problems)
}

// damaged returns an error that counts the live stores of a directory that are
// unreadable or cut short, and the files that may be stores missing from the
// catalogue. It returns nil if there are none.
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
		what = append(what, count(unreadable, "live store")+" in "+dir+" cannot be read")
		without = append(without, "without it, its creatures would start over and take all their input again")
	}
	if cut > 0 {
		what = append(what, count(cut, "live store")+" in "+dir+" lost acknowledged events")
		without = append(without, "its creatures would continue from before the loss and handle some of their input again")
	}
	if left > 0 {
		what = append(what, count(left, "file")+" in "+dir+" may be a store that is missing from the catalogue")
		without = append(without, "its creatures would start over and take all their input again")
	}
	if len(what) == 0 {
		return nil
	}
	return failWith(exitSession, &abi.Error{
		Code:    abi.Storage,
		Message: strings.Join(what, ", and ") + "; " + strings.Join(without, "; ") + "; nothing was started",
		Remedy: "restore what is missing or damaged, for example from a backup; if only the catalogue is wrong, run terrarium session rebuild " + dir +
			"; to continue without what is lost and keep the rest, add --despite-damage to this command, and to later ones as long as something is missing",
		IDs: map[string]string{"path": dir},
	})
}
