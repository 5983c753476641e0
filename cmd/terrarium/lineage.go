package main

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

func sessionLineageCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "lineage DIR [SESSION]",
		Short: "Show the ancestors of a session, or of every live one",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			draw, known := lineageFormats[format]
			if !known {
				return usage("-o %s: use text, json, dot or mermaid", format)
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				f, err := readFamily(cmd.Context(), v, optional(args, 1))
				if err != nil {
					return err
				}
				return draw(s, f)
			})
		},
	}
	cmd.Flags().StringVarP(&format, "format", "o", "text", "text, json, dot or mermaid")
	return cmd
}

// lineageFormats lists the formats in which a family is drawn.
var lineageFormats = map[string]func(streams, *family) error{
	"text":    drawing((*family).text),
	"dot":     drawing((*family).dot),
	"mermaid": drawing((*family).mermaid),
	"json": func(s streams, f *family) error {
		return printJSON(s, operations.LineageResult{Lineage: records(f.members)})
	},
}

func drawing(draw func(*family) string) func(streams, *family) error {
	return func(s streams, f *family) error {
		_, err := io.WriteString(s.text(), draw(f))
		return failWith(exitFailed, err)
	}
}

// family is a set of sessions with all their ancestors.
type family struct {
	heads   []journal.SessionID   // the sessions whose ancestors are shown
	members []journal.SessionInfo // each once: heads first, then generation by generation
	index   map[journal.SessionID]int
}

// readFamily reads the family of a session or, without a name, of all live sessions.
func readFamily(ctx context.Context, v *sqlitestore.View, name string) (*family, error) {
	list, err := v.Sessions(ctx)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	heads := liveSessions(list)
	if name != "" || len(heads) == 0 {
		head, err := choose(list, name)
		if err != nil {
			return nil, err
		}
		heads = []journal.SessionInfo{head}
	}
	return newFamily(list, heads), nil
}

// newFamily finds the ancestors of heads in the sessions of a directory.
func newFamily(list, heads []journal.SessionInfo) *family {
	known := map[journal.SessionID]journal.SessionInfo{}
	for _, i := range list {
		known[i.Session] = i
	}
	f := &family{index: map[journal.SessionID]int{}}
	for _, h := range heads {
		f.heads = append(f.heads, h.Session)
	}
	for queue := slices.Clone(f.heads); len(queue) > 0; queue = queue[1:] {
		i, known := known[queue[0]]
		if _, taken := f.index[queue[0]]; known && !taken {
			f.index[i.Session] = len(f.members)
			f.members = append(f.members, i)
			queue = append(queue, i.Parents...)
		}
	}
	return f
}

// member returns a session of the family, or nil for a parent that is not in
// the directory.
func (f *family) member(id journal.SessionID) *journal.SessionInfo {
	at, known := f.index[id]
	if !known {
		return nil
	}
	return &f.members[at]
}

// volatileParent stands for a parent graph that had no store.
const volatileParent = "volatile"

// strangerName describes a parent that is not in the directory.
func strangerName(id journal.SessionID) string {
	if id == volatileParent {
		return "a graph without a store"
	}
	return string(id) + " (not in this directory)"
}

// madeBy says how a session was created.
func madeBy(i *journal.SessionInfo) string {
	switch {
	case i.MadeBy == journal.CutFork:
		return "fork"
	case i.MergedAt != 0 && i.SplitAt != 0:
		return "merge, split"
	case i.MergedAt != 0:
		return "merge"
	case i.SplitAt != 0:
		return "split"
	case slices.ContainsFunc(i.Parents, func(p journal.SessionID) bool { return p != volatileParent }):
		return "change" // for example by an edited recipe: another graph continues the history
	}
	return "start"
}

func stateOf(i *journal.SessionInfo) string {
	if i.Live {
		return "live"
	}
	return "ended"
}

// bornAt returns the time when a session was created, in the layout of event times.
func bornAt(i *journal.SessionInfo) string {
	return time.Unix(0, i.Created).UTC().Format("2006-01-02T15:04:05.000Z")
}

func eventCount(i *journal.SessionInfo) string {
	if i.Events < 0 {
		return "-"
	}
	return humanize.Comma(i.Events)
}

// sizeOf returns the size of a session's file. A session whose history is only in
// other sessions' files no longer has a file.
func sizeOf(i *journal.SessionInfo) string {
	if i.Bytes <= 0 {
		return "-"
	}
	return humanize.IBytes(uint64(i.Bytes))
}
