package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// heldFlags holds the flags of session state and session dead-letters.
type heldFlags struct {
	creature string
	prefix   string
	format   string
}

func sessionStateCommand(s streams) *cobra.Command {
	f := &heldFlags{}
	cmd := &cobra.Command{
		Use:   "state DIR [SESSION]",
		Short: "Show the state of a session's creatures",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withSession(cmd.Context(), args, func(v *sqlitestore.View, g journal.SavedGraph) error {
				return f.showState(cmd.Context(), s, v, g)
			})
		},
	}
	cmd.Flags().StringVar(&f.creature, "creature", "", "only the state of the creature with this `NAME` or id")
	cmd.Flags().StringVar(&f.prefix, "prefix", "", "only keys that begin with `TEXT`")
	formatFlag(cmd, &f.format)
	return cmd
}

func sessionDeadLettersCommand(s streams) *cobra.Command {
	f := &heldFlags{}
	cmd := &cobra.Command{
		Use:   "dead-letters DIR [SESSION]",
		Short: "List the dead letters of a session, or of all live ones",
		Args:  arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				return f.showLetters(cmd.Context(), s, v, optional(args, 1))
			})
		},
	}
	cmd.Flags().StringVar(&f.creature, "creature", "", "only dead letters of the creature with this `NAME` or id")
	formatFlag(cmd, &f.format)
	return cmd
}

// withSession opens the session named by the arguments.
func (f *heldFlags) withSession(ctx context.Context, args []string, show func(*sqlitestore.View, journal.SavedGraph) error) error {
	return withSession(ctx, args, f.format, func(v *sqlitestore.View, info journal.SessionInfo) error {
		saved, err := v.Saved(ctx, info.Session)
		if err != nil {
			return failWith(exitSession, err)
		}
		return show(v, saved)
	})
}

func noCreature(name string) error {
	return failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "the session has no creature " + name, Remedy: "session show lists the creatures"})
}

// showState shows the state of one creature or of all, sorted by name.
func (f *heldFlags) showState(ctx context.Context, s streams, v *sqlitestore.View, g journal.SavedGraph) error {
	names := newNames(g)
	only, err := names.creature(f.creature)
	if err != nil {
		return err
	}
	if _, ok := names.creatures[only]; only != "" && !ok {
		return noCreature(f.creature)
	}
	all := map[string]map[string]operations.Payload{}
	for _, c := range g.Creatures {
		if only != "" && c.ID != only {
			continue
		}
		state, err := v.State(ctx, g.Session, c.ID)
		if err != nil {
			return failWith(exitSession, err)
		}
		shown := map[string]operations.Payload{}
		for k, value := range state {
			if strings.HasPrefix(k, f.prefix) {
				shown[k] = value
			}
		}
		all[c.Name] = shown
	}
	if f.format == "json" {
		return printJSON(s, map[string]any{"state": all})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, key := range slices.Sorted(maps.Keys(all[name])) {
			if _, err := fmt.Fprintf(s.text(), "%s  %s = %s\n", name, key, all[name][key]); err != nil {
				return failWith(exitFailed, err)
			}
		}
	}
	return nil
}

// showLetters lists the dead letters of a session or, without a name, of all live ones. It
// reads a page at a time.
func (f *heldFlags) showLetters(ctx context.Context, s streams, v *sqlitestore.View, session string) error {
	all, err := v.Sessions(ctx)
	if err != nil {
		return failWith(exitSession, err)
	}
	chosen := liveSessions(all)
	if session != "" || len(chosen) < 2 {
		one, err := choose(all, session)
		if err != nil {
			return err
		}
		chosen = []journal.SessionInfo{one}
	}
	names := newNames(journal.SavedGraph{})
	for _, i := range chosen {
		if err := names.read(ctx, v, i.Session); err != nil {
			return failWith(exitSession, err)
		}
	}
	only, err := names.creature(f.creature)
	if err != nil {
		return err
	}
	list := []operations.DeadLetterRecord{}
	for _, i := range chosen {
		for after := (journal.EventID{}); ; {
			page, err := v.DeadLetters(ctx, i.Session, only, after, pageSize)
			if err != nil {
				return failWith(exitSession, err)
			}
			for i := range page {
				list = append(list, operations.NewDeadLetterRecord(&page[i]))
			}
			if len(page) < pageSize {
				break
			}
			after = page[len(page)-1].ID
		}
	}
	if len(list) == 0 && f.creature != "" {
		if err := names.tellNone(s, "dead letter", []string{f.creature}, nil); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return printJSON(s, operations.DeadLettersResult{DeadLetters: list})
	}
	for _, l := range list {
		where := names.ofChannel(l.Channel)
		if l.Seq > 0 {
			where += fmt.Sprintf("#%d", l.Seq)
		}
		_, err := fmt.Fprintf(s.text(), "%s  %s  %s  %s  %s\n", l.ID, names.ofCreature(l.Creature), where, why(l), l.Payload)
		if err != nil {
			return failWith(exitFailed, err)
		}
	}
	return nil
}

// why returns the reason why a delivery is a dead letter. A delivery that waited for a
// removed creature has neither been tried nor failed.
func why(l operations.DeadLetterRecord) string {
	if l.Attempts == 0 && l.Error == "" {
		return string(l.Reason)
	}
	return fmt.Sprintf("%s after %s: %s", l.Reason, count(l.Attempts, "attempt"), l.Error)
}
