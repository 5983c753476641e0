package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

func addDespite(fs *pflag.FlagSet, despite *bool) {
	fs.BoolVar(despite, "despite-damage", false, "go on without stores that cannot be read: what was in them begins anew, and takes all its input again")
}

// refuseDamage shows which live stores of a directory cannot be read, and answers an
// error if there are any: a recipe would make anew what was in them, and handle all of
// its input again, which a supervisor would take for success. With despite it answers
// none.
func refuseDamage(s streams, dir string, problems []error, despite bool) error {
	unreadable := engine.Unreadable(problems)
	if despite || len(unreadable) == 0 {
		return nil
	}
	for _, p := range unreadable {
		showError(s.err, p)
	}
	return damaged(dir, len(unreadable))
}

// damaged says that so many live stores of a directory cannot be read.
func damaged(dir string, stores int) error {
	return failWith(exitSession, &abi.Error{
		Code: abi.Storage,
		Message: fmt.Sprintf("%s of %s cannot be read; without it, its creatures would begin anew and take all their input again, so nothing has been started",
			count(stores, "live store"), dir),
		Remedy: "put back what is missing or damaged, from a backup for example; if only the catalogue is wrong, make it again with terrarium session rebuild " + dir +
			"; to begin anew what cannot be read and keep the rest, repeat the command with --despite-damage",
		IDs: map[string]string{"path": dir},
	})
}
