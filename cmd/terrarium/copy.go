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
	cmd := copyCommand(s, "export DIR SESSION FILE", "Export a session to a single file",
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
			return operations.ExportResult{Session: of, Path: path}, fmt.Sprintf("Exported session %s to %s.", of, path), nil
		})
	cmd.Long = `export writes a session to a single, self-contained file: a SQLite database or, if
the file's name ends in .jsonl, the history as JSON lines. If FILE is -, the lines
are printed to standard output.`
	cmd.Flags().BoolVar(&lines, "jsonl", false, "write JSON lines, even if the file's name does not end in .jsonl")
	return cmd
}

func sessionForkCommand(s streams) *cobra.Command {
	var at string
	var cmd *cobra.Command
	cmd = copyCommand(s, "fork DIR SESSION NEWDIR", "Continue a copy of a session in a new session directory",
		func(ctx context.Context, from *sqlitestore.View, of journal.SessionID, dir string) (any, string, error) {
			if cmd.Flags().Changed("at") {
				return forkAt(ctx, from, of, journal.EventCursor(at), dir)
			}
			child, err := from.Fork(ctx, of, dir)
			if err != nil {
				return nil, "", err
			}
			return operations.ForkResult{Session: child, Parent: of, Dir: dir}, fmt.Sprintf("Forked session %s: it continues as %s in %s.", of, child, dir), nil
		})
	cmd.Flags().StringVar(&at, "at", "", "fork the session as it was at the event with this `CURSOR`, rather than as it is now")
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
		fmt.Sprintf("Forked session %s at event %s: it continues as %s in %s.", of, last, child, dir), nil
}

// copyCommand returns a command that copies a session. The function copied makes the
// copy and returns the result, as a value for JSON and as text.
func copyCommand(s streams, use, short string, copied func(ctx context.Context, from *sqlitestore.View, of journal.SessionID, to string) (any, string, error)) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: arguments(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[2] == "" {
				return usage("the last argument is empty: name the file or directory to write")
			}
			return withSession(cmd.Context(), args, format, func(v *sqlitestore.View, info journal.SessionInfo) error {
				result, words, err := copied(cmd.Context(), v, info.Session, args[2])
				if err != nil {
					return failWith(exitSession, err)
				}
				if result == nil {
					return nil // already printed
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
