package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

func sessionShowCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "show DIR [SESSION]",
		Short: "Show the creatures and channels of a session",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args, format, func(v *sqlitestore.View, info journal.SessionInfo) error {
				saved, err := v.Saved(cmd.Context(), info.Session)
				if err != nil {
					return failWith(exitSession, err)
				}
				return showSession(s, info, saved, format)
			})
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

func optional(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// shownSession is the JSON form of session show.
type shownSession struct {
	Session   operations.SessionRecord `json:"session"`
	Creatures []shownCreature          `json:"creatures"`
	Channels  []shownChannel           `json:"channels"`
	// RecipesStopped says which recipes of its members have stopped, as a condition holds.
	RecipesStopped []journal.RecipeStop `json:"recipes_stopped,omitempty"`
}

type shownCreature struct {
	ID      terrarium.CreatureID `json:"id"`
	Name    string               `json:"name"`
	Address string               `json:"address,omitempty"`
	Module  string               `json:"module"`
	Stopped bool                 `json:"stopped"`
	Paused  bool                 `json:"paused,omitempty"` // stopped, and to be resumed
	Root    bool                 `json:"root"`
	Pending uint64               `json:"pending"`
}

type shownChannel struct {
	ID          terrarium.ChannelID `json:"id"`
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Head        uint64              `json:"head"`
}

func showSession(s streams, info journal.SessionInfo, saved journal.SavedGraph, format string) error {
	shown := shownSession{Session: operations.NewSessionRecord(&info), Creatures: []shownCreature{}, Channels: []shownChannel{}}
	heads := map[journal.ChannelID]uint64{}
	for _, h := range saved.Heads {
		heads[h.Channel] = h.Seq
	}
	pending := map[journal.ReaderID]uint64{}
	for _, c := range saved.Cursors {
		end := heads[c.Channel]
		if c.Until != 0 {
			end = c.Until
		}
		if end > c.Seq {
			pending[c.Reader] += end - c.Seq
		}
	}
	states := statesOf(&saved)
	for _, c := range saved.Creatures {
		shown.Creatures = append(shown.Creatures, shownCreature{c.ID, c.Name, c.Address, c.Module, c.Stopped, states[c.ID] == journal.Paused, c.Root, pending[journal.ReaderID(c.ID)]})
	}
	stopped := saved.Stopped()
	for _, name := range slices.Sorted(maps.Keys(stopped)) {
		shown.RecipesStopped = append(shown.RecipesStopped, stopped[name])
	}
	for _, ch := range saved.Channels {
		if ch.Inbox == "" {
			shown.Channels = append(shown.Channels, shownChannel{ch.ID, ch.Name, ch.Description, heads[ch.ID]})
		}
	}
	if format == "json" {
		return printJSON(s, shown)
	}
	_, err := io.WriteString(s.text(), shown.text())
	return failWith(exitFailed, err)
}

func (shown *shownSession) text() string {
	var b strings.Builder
	r := shown.Session
	fmt.Fprintf(&b, "Session     %s\nGraph       %s\nStore       %s\nDurability  %s\nCreated     %s\n", r.Session, r.Graph, r.StorePath, r.Durability, r.Created)
	if r.Deployment != "" {
		fmt.Fprintf(&b, "Deployment  %s (%s)\n", r.Deployment, r.ConfigPath)
	}
	for _, p := range r.Parents {
		fmt.Fprintf(&b, "Parent      %s\n", p)
	}
	for i := range shown.RecipesStopped {
		fmt.Fprintf(&b, "Stopped     %s\n", oneLine(stopLine(&shown.RecipesStopped[i])))
	}
	fmt.Fprintln(&b)
	t := newTable()
	t.AppendHeader(table.Row{"creature", "id", "module", "state", "pending"})
	for _, c := range shown.Creatures {
		state := "running"
		switch {
		case c.Paused:
			state = "paused"
		case c.Stopped:
			state = "stopped"
		}
		if c.Root {
			state += ", root"
		}
		t.AppendRow(table.Row{printable(c.Name), c.ID, printable(c.Module), state, humanize.Comma(int64(c.Pending))})
	}
	fmt.Fprintf(&b, "%s\n\n", t.Render())
	t = newTable()
	t.AppendHeader(table.Row{"channel", "id", "messages", "description"})
	for _, ch := range shown.Channels {
		t.AppendRow(table.Row{printable(ch.Name), ch.ID, humanize.Comma(int64(ch.Head)), printable(ch.Description)})
	}
	fmt.Fprintln(&b, t.Render())
	return b.String()
}
