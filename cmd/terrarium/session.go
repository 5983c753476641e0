package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

func sessionCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Inspect and maintain a session directory",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command session %s: use list, show, events, search, lineage, state, dead-letters, redeliver, verify, rebuild, export, prune or fork", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(sessionListCommand(s), sessionShowCommand(s), sessionEventsCommand(s), sessionSearchCommand(s), sessionLineageCommand(s), sessionStateCommand(s), sessionDeadLettersCommand(s),
		sessionRedeliverCommand(s), sessionVerifyCommand(s), sessionRebuildCommand(s), sessionExportCommand(s), sessionPruneCommand(s), sessionForkCommand(s))
	return cmd
}

// mustExist returns an error for a directory that holds no session or is missing. Opening
// would make it a session directory.
func mustExist(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case abi.TooManyFiles(err) != nil:
		return failWith(exitSession, abi.TooManyFiles(err))
	case err != nil:
		return failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "there is no session directory " + dir, Remedy: "name the directory that was given to --session", Err: err})
	case !info.IsDir():
		return failWith(exitSession, &abi.Error{
			Code: abi.InvalidArgument, Message: dir + " is a file, not a session directory",
			Remedy: "name the directory that was given to --session; for an exported session, use sqlite3 or terrarium resume",
		})
	}
	for _, name := range sessionFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return failWith(exitSession, &abi.Error{
		Code: abi.NotFound, Message: dir + " is not a session directory: it holds no session", IDs: map[string]string{"path": dir},
		Remedy: "name the directory that was given to --session, or start a session there with terrarium run RECIPE --session " + dir,
	})
}

// sessionFiles are the first names in a session directory, or what is left of a damaged one.
var sessionFiles = []string{"catalog.db", "lock", "stores"}

// withView opens a session directory for reading.
func withView(ctx context.Context, dir string, f func(v *sqlitestore.View) error) (err error) {
	if err := mustExist(dir); err != nil {
		return err
	}
	v, err := sqlitestore.OpenReadOnly(ctx, dir)
	if err != nil {
		return failWith(exitSession, err)
	}
	defer func() { err = errors.Join(err, failWith(exitSession, v.Close())) }()
	return f(v)
}

// upToDate migrates a directory of an older version. A directory of the current
// version is only read.
func upToDate(ctx context.Context, dir string) error {
	if err := mustExist(dir); err != nil {
		return err
	}
	return failWith(exitSession, sqlitestore.Upgrade(ctx, dir))
}

// pick selects the session of a command: by its id, by any id of its graph or, without
// a name, the only live session.
func pick(ctx context.Context, v *sqlitestore.View, name string) (journal.SessionInfo, error) {
	list, err := v.Sessions(ctx)
	if err != nil {
		return journal.SessionInfo{}, failWith(exitSession, err)
	}
	return choose(list, name)
}

func choose(list []journal.SessionInfo, name string) (journal.SessionInfo, error) {
	if name != "" {
		return namedSession(list, name)
	}
	live := liveSessions(list)
	switch len(live) {
	case 1:
		return live[0], nil
	case 0:
		if len(list) == 0 {
			return journal.SessionInfo{}, failWith(exitSession, &abi.Error{
				Code: abi.NotFound, Message: "the directory has no session yet",
				Remedy: "start one with terrarium run RECIPE --session DIR",
			})
		}
		return journal.SessionInfo{}, failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "the directory has no live session", Remedy: "name a session; session list shows them"})
	}
	return journal.SessionInfo{}, usage("the directory has %d live sessions: name one of them; session list shows them", len(live))
}

func namedSession(list []journal.SessionInfo, name string) (journal.SessionInfo, error) {
	for _, i := range list {
		if string(i.Session) == name {
			return i, nil
		}
	}
	if successor, found := terrarium.Successor(list, journal.GraphID(name)); found {
		return successor, nil
	}
	return journal.SessionInfo{}, failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "there is no session " + name, Remedy: "session list shows the sessions"})
}

func liveSessions(list []journal.SessionInfo) []journal.SessionInfo {
	return slices.DeleteFunc(slices.Clone(list), func(i journal.SessionInfo) bool { return !i.Live })
}

// withSession opens the session named by a command's arguments DIR [SESSION].
func withSession(ctx context.Context, args []string, format string, f func(v *sqlitestore.View, info journal.SessionInfo) error) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	return withView(ctx, args[0], func(v *sqlitestore.View) error {
		info, err := pick(ctx, v, optional(args, 1))
		if err != nil {
			return err
		}
		return f(v, info)
	})
}

func formatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "format", "o", "text", "text or json")
}

func checkFormat(format string) error {
	if format != "text" && format != "json" {
		return usage("-o %s: use text or json", format)
	}
	return nil
}

func sessionListCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "list DIR",
		Short: "List the sessions of a directory, oldest first",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				list, err := v.Sessions(cmd.Context())
				if err != nil {
					return failWith(exitSession, err)
				}
				return listSessions(s, list, format)
			})
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

func listSessions(s streams, list []journal.SessionInfo, format string) error {
	if format == "json" {
		return printJSON(s, operations.SessionsResult{Sessions: records(list)})
	}
	t := newTable()
	t.AppendHeader(table.Row{"session", "graph", "state", "deployment", "created", "size", "events"})
	for _, i := range list {
		t.AppendRow(table.Row{
			i.Session, i.Graph, stateOf(&i), strings.Join(engine.DeploymentsIn(i.Meta), ", "),
			time.Unix(0, i.Created).Format(time.DateTime), sizeOf(&i), eventCount(&i),
		})
	}
	_, err := fmt.Fprintln(s.text(), t.Render())
	return failWith(exitFailed, err)
}

func records(list []journal.SessionInfo) []operations.SessionRecord {
	out := []operations.SessionRecord{}
	for i := range list {
		out = append(out, operations.NewSessionRecord(&list[i]))
	}
	return out
}

func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.Options{SeparateHeader: true}
	return t
}

func printJSON(s streams, v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return failWith(exitFailed, enc.Encode(v))
}
