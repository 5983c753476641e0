package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

var errUnsound = errors.New("the session is damaged")

func sessionVerifyCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "verify DIR [SESSION]",
		Short: "Check that a session is complete and in order",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args, format, func(v *sqlitestore.View, info journal.SessionInfo) error {
				report, err := v.Verify(cmd.Context(), info.Session)
				if err != nil {
					return failWith(exitSession, err)
				}
				return showReport(s, operations.NewVerifyResult(&report), format)
			})
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

// showReport prints a report. The command fails if the session is damaged.
func showReport(s streams, r *operations.VerifyResult, format string) error {
	var err error
	if format == "json" {
		err = printJSON(s, r)
	} else {
		err = failWith(exitFailed, printReport(s.text(), r))
	}
	if err == nil && !r.Sound() {
		return &exit{code: exitFailed, err: errUnsound, shown: true}
	}
	return err
}

func printReport(w io.Writer, r *operations.VerifyResult) error {
	if r.Sound() {
		_, err := fmt.Fprintf(w, "Session %s is intact: %s.\n", r.Session, count(r.Events, "event"))
		return errors.Join(err, printIncomplete(w, r))
	}
	_, err := fmt.Fprintf(w, "Session %s is damaged:\n", r.Session)
	for _, found := range []struct {
		what string
		list []string
	}{
		{"missing", r.Missing}, {"duplicate", r.Duplicate}, {"out of order", r.OutOfOrder}, {"damage", r.Damage},
	} {
		for _, text := range found.list {
			_, werr := fmt.Fprintf(w, "  %s: %s\n", found.what, text)
			err = errors.Join(err, werr)
		}
	}
	return errors.Join(err, printIncomplete(w, r))
}

// printIncomplete reports that part of the history is still in other files, which is
// not an error. After many cuts these are many; only JSON lists them.
func printIncomplete(w io.Writer, r *operations.VerifyResult) error {
	if len(r.IncompleteFrom) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "  Part of its history is still in the files of %s, and is copied in the background while a process uses the directory.\n", count(len(r.IncompleteFrom), "session"))
	return err
}
