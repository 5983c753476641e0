package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// searchFlags holds the flags of session search.
type searchFlags struct {
	session   string
	kinds     []string
	creatures []string
	channels  []string
	limit     int
	format    string
}

func sessionSearchCommand(s streams) *cobra.Command {
	f := &searchFlags{}
	cmd := &cobra.Command{
		Use:   "search DIR QUERY",
		Short: "Search the text of events, newest first",
		Long: `search looks for words in the events of a session directory: messages, outputs,
state, log lines, dead letters and all other text. Another process may be using the
directory. A query has these forms:

  words            all of them occur in the event, in any order
  "two words"      one directly after the other
  begin*           words with this beginning of at least three letters
  a OR b, a NOT b  one of them, or the first without the second
  (a OR b) c       parentheses

Case and accents do not matter. Punctuation separates words: 10.0.0.7 is the phrase "10 0 0 7".`,
		Example: `  terrarium session search S 'error "no route"'
  terrarium session search S 'timeout NOT retr*' --kind log --limit 5 -o json`,
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				return f.search(cmd.Context(), s, v, args[1])
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "", "search only the history of the `SESSION` with this id or graph id")
	fs.StringSliceVar(&f.kinds, "kind", nil, "only events of `KIND`; may be repeated")
	fs.StringArrayVar(&f.creatures, "creature", nil, "only events about the creature with this `NAME` or id; may be repeated")
	fs.StringArrayVar(&f.channels, "channel", nil, "only events of the channel with this `NAME` or id; may be repeated")
	fs.IntVar(&f.limit, "limit", sqlitestore.DefaultFound, "find at most `N` events")
	formatFlag(cmd, &f.format)
	return cmd
}

func (f *searchFlags) search(ctx context.Context, s streams, v *sqlitestore.View, query string) error {
	if f.limit < 1 || f.limit > sqlitestore.MostFound {
		return usage("--limit %d: use a number from 1 to %d", f.limit, sqlitestore.MostFound)
	}
	q := sqlitestore.SearchQuery{Text: query, Limit: f.limit}
	var err error
	if q.Kinds, err = operations.ParseKinds("session search", f.kinds); err != nil {
		return failWith(exitUsage, err)
	}
	list, err := v.Catalogue(ctx)
	if err != nil {
		return failWith(exitSession, err)
	}
	if f.session != "" {
		info, err := namedSession(list, f.session)
		if err != nil {
			return err
		}
		q.Session = info.Session
	}
	names, err := liveNames(ctx, v, list)
	if err != nil {
		return failWith(exitSession, err)
	}
	q.Creatures, q.Channels = idsOf(names.creatures, f.creatures), idsOf(names.channels, f.channels)
	found, err := v.Search(ctx, q)
	if err != nil {
		return searchExit(err)
	}
	if len(found.Found) == 0 && len(f.kinds)+len(f.creatures)+len(f.channels) > 0 {
		if err := names.tellNone(s, "event", f.creatures, f.channels); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return printJSON(s, operations.NewSearchResult(&found, list))
	}
	return failWith(exitFailed, f.print(s, names, &found))
}

func (f *searchFlags) print(s streams, names *names, r *sqlitestore.SearchResult) error {
	for i := range r.Found {
		if _, err := fmt.Fprint(s.text(), foundText(&r.Found[i], names)); err != nil {
			return err
		}
	}
	var notes []string
	if r.More {
		notes = append(notes, fmt.Sprintf("There are older events: raise --limit above %d, or narrow the search.", len(r.Found)))
	}
	if r.Problem != nil {
		problem := operations.NewErrorRecord(r.Problem)
		notes = append(notes, "Searched without the index: "+problem.Message)
		if problem.Remedy != "" {
			notes = append(notes, "  Remedy: "+problem.Remedy)
		}
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(s.err, printable(note)); err != nil {
			return err
		}
	}
	return nil
}

// foundText returns a found event as a line of text.
func foundText(f *sqlitestore.Found, names *names) string {
	line := fmt.Sprintf("%s  %-*s  %-14s  %-16s  %s", time.Unix(0, f.Time).UTC().Format(eventTime), widestKind, f.Kind,
		names.ofCreature(f.Creature), names.place(&f.Event), f.Snippet)
	return strings.TrimRight(oneLine(line), " ") + "\n"
}

// liveNames reads the names that are in use in the live sessions of a list.
func liveNames(ctx context.Context, v *sqlitestore.View, list []journal.SessionInfo) (*names, error) {
	n := newNames(journal.SavedGraph{})
	return n, n.readLive(ctx, v, list)
}

// idsOf returns the ids that belong to names. A text that is not a name is taken for
// an id.
func idsOf[T ~string](known map[T]string, wanted []string) (out []T) {
	for _, name := range wanted {
		found := false
		for id, has := range known {
			if has == name {
				out, found = append(out, id), true
			}
		}
		if !found {
			out = append(out, T(name))
		}
	}
	return out
}

// searchExit returns the exit code of an error, which may be about the query.
func searchExit(err error) error {
	if abi.CodeOf(err) == abi.InvalidArgument {
		return failWith(exitUsage, err)
	}
	return failWith(exitSession, err)
}
