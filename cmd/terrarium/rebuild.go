package main

import (
	"fmt"
	"io"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

func sessionRebuildCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "rebuild DIR",
		Short: "Rebuild the catalogue of a directory from its stores",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if err := mustExist(args[0]); err != nil {
				return err
			}
			report, err := sqlitestore.Rebuild(cmd.Context(), args[0])
			if err != nil {
				return failWith(exitSession, err)
			}
			result := newRebuildResult(&report)
			if format == "json" {
				return printJSON(s, result)
			}
			return failWith(exitFailed, result.print(s.text(), args[0]))
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

// rebuildResult is the printed form of a [sqlitestore.RebuildReport].
type rebuildResult struct {
	Sessions   []journal.SessionID `json:"sessions"`
	Live       []journal.SessionID `json:"live"`
	Unreadable []unreadableFile    `json:"unreadable"`
	Aside      []string            `json:"aside"`
	Missing    []journal.SessionID `json:"missing"`
	Unknown    []journal.SessionID `json:"unknown"`
	Kept       string              `json:"kept,omitempty"`
}

type unreadableFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

func newRebuildResult(r *sqlitestore.RebuildReport) *rebuildResult {
	out := &rebuildResult{
		Sessions: listed(r.Sessions), Live: listed(r.Live), Unreadable: []unreadableFile{}, Aside: listed(r.Aside),
		Missing: listed(r.Missing), Unknown: listed(r.Unknown), Kept: r.Kept,
	}
	for _, f := range r.Unreadable {
		out.Unreadable = append(out.Unreadable, unreadableFile{f.Path, f.Err.Error()})
	}
	return out
}

// listed turns nil into an empty list, which JSON shows as [].
func listed[T any](list []T) []T { return append([]T{}, list...) }

// liveOf tells how many of some sessions are live.
func liveOf(live, all int) string {
	switch {
	case live == 0:
		return "none live"
	case all == 1:
		return "which is live"
	}
	return fmt.Sprintf("%d of them live", live)
}

func (r *rebuildResult) print(w io.Writer, dir string) error {
	lines := []string{fmt.Sprintf("Rebuilt the catalogue of %s: %s, %s.", dir, count(len(r.Sessions), "session"), liveOf(len(r.Live), len(r.Sessions)))}
	if r.Kept != "" {
		lines = append(lines, "The previous catalogue is kept as "+r.Kept+".")
	}
	for _, f := range r.Unreadable {
		lines = append(lines, "  unreadable: "+f.Error, "    run and resume refuse to start without it, unless they get --despite-damage")
	}
	for _, path := range r.Aside {
		lines = append(lines, "  not needed: "+path+"; the next start moves it aside")
	}
	for _, session := range r.Missing {
		lines = append(lines, fmt.Sprintf("  missing: the file of session %s; its events cannot be read until the file is restored", session))
	}
	for _, session := range r.Unknown {
		lines = append(lines, fmt.Sprintf("  cannot be separated: the events of session %s; they are in the histories of its successors", session))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
