package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

func sessionExportCommand(s streams) *cobra.Command {
	var lines bool
	cmd := copyCommand(s, "export DIR SESSION FILE", "Write a session to a file that stands alone",
		func(ctx context.Context, from *sqlitestore.View, of journal.SessionID, path string) (any, string, error) {
			if path == "-" {
				return nil, "", operations.WriteHistory(ctx, s.out, from, of)
			}
			write := from.Export
			if lines || strings.EqualFold(filepath.Ext(path), operations.LinesSuffix) {
				write = func(ctx context.Context, of journal.SessionID, path string) error {
					return operations.ExportLines(ctx, from, of, path)
				}
			}
			if err := write(ctx, of, path); err != nil {
				return nil, "", err
			}
			return operations.ExportResult{Session: of, Path: path}, fmt.Sprintf("Session %s is in %s.", of, path), nil
		})
	cmd.Long = `export writes a session to a file that stands alone: a SQLite database or, if the
name of the file ends in .jsonl, its history as JSON lines. With - for a file, the
lines are printed.`
	cmd.Flags().BoolVar(&lines, "jsonl", false, "write JSON lines, whatever the name of the file")
	return cmd
}

func sessionForkCommand(s streams) *cobra.Command {
	var at string
	var cmd *cobra.Command
	cmd = copyCommand(s, "fork DIR SESSION NEWDIR", "Let a session go on by itself in a new session directory",
		func(ctx context.Context, from *sqlitestore.View, of journal.SessionID, dir string) (any, string, error) {
			if cmd.Flags().Changed("at") {
				return forkAt(ctx, from, of, journal.EventCursor(at), dir)
			}
			child, err := from.Fork(ctx, of, dir)
			if err != nil {
				return nil, "", err
			}
			return operations.ForkResult{Session: child, Parent: of, Dir: dir}, fmt.Sprintf("Session %s goes on as %s in %s.", of, child, dir), nil
		})
	cmd.Flags().StringVar(&at, "at", "", "go on from where the session was at this `CURSOR` of an event")
	return cmd
}

func forkAt(ctx context.Context, from *sqlitestore.View, of journal.SessionID, at journal.EventCursor, dir string) (any, string, error) {
	list, err := from.Catalogue(ctx)
	if err != nil {
		return nil, "", err
	}
	mark, err := at.In(list, of)
	if err != nil {
		return nil, "", err
	}
	child, last, err := from.ForkAt(ctx, of, mark, dir)
	if err != nil {
		return nil, "", err
	}
	return operations.ForkResult{Session: child, Parent: of, Dir: dir, Last: last.String()},
		fmt.Sprintf("Session %s goes on from the event %s as %s in %s.", of, last, child, dir), nil
}

// copyCommand makes a command that copies a session: copied does so and answers
// what there is to tell, as JSON and in words.
func copyCommand(s streams, use, short string, copied func(ctx context.Context, from *sqlitestore.View, of journal.SessionID, to string) (any, string, error)) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: arguments(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[2] == "" {
				return usage("the name of what is to be written is empty")
			}
			return withSession(cmd.Context(), args, format, func(v *sqlitestore.View, info journal.SessionInfo) error {
				result, words, err := copied(cmd.Context(), v, info.Session, args[2])
				if err != nil {
					return failWith(exitSession, err)
				}
				if result == nil {
					return nil // it has been printed
				}
				if format == "json" {
					return printJSON(s, result)
				}
				_, err = fmt.Fprintln(s.text(), words)
				return failWith(exitFailed, err)
			})
		},
	}
	formatFlag(cmd, &format)
	return cmd
}
