package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/spf13/cobra"
)

// redelivery holds the arguments and flags of session redeliver.
type redelivery struct {
	letters  []string // ids of dead letters or of their messages
	all      bool
	creature string
	format   string
	despite  bool
}

func sessionRedeliverCommand(s streams) *cobra.Command {
	r := &redelivery{}
	cmd := &cobra.Command{
		Use:   "redeliver DIR [LETTER...]",
		Short: "Put dead letters back for delivery",
		Long: `redeliver puts dead letters back into the inboxes of their creatures. Name them by
their ids, which session dead-letters shows, or by the ids of their messages. Nothing
runs: the creatures get the messages when the session is resumed. The directory must
not be in use; in a running session, use the operation redeliver.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("an argument is missing; usage: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.letters = args[1:]
			return r.run(cmd.Context(), s, args[0])
		},
	}
	cmd.Flags().BoolVar(&r.all, "all", false, "every dead letter, or with --creature every one of a creature")
	cmd.Flags().StringVar(&r.creature, "creature", "", "with --all, only dead letters of the creature with this `NAME` or id")
	addDespite(cmd.Flags(), &r.despite)
	formatFlag(cmd, &r.format)
	return cmd
}

func (r *redelivery) checkFlags() error {
	switch {
	case r.all == (len(r.letters) > 0):
		return usage("name the dead letters, or use --all")
	case r.creature != "" && !r.all:
		return usage("--creature %s: use it with --all", r.creature)
	}
	for _, l := range r.letters {
		if id, err := journal.ParseEventID(l); err != nil || id.IsZero() {
			return usage("%s is not the id of a dead letter; session dead-letters shows the ids", l)
		}
	}
	return checkFormat(r.format)
}

func (r *redelivery) run(ctx context.Context, s streams, dir string) (err error) {
	if err := r.checkFlags(); err != nil {
		return err
	}
	if err := mustExist(dir); err != nil {
		return err
	}
	t, err := terrarium.New(ctx, terrarium.Options{Dir: dir, Paused: true, Log: verbosity(s.err, false)})
	if err != nil {
		return sessionExit(err)
	}
	var done []redelivered
	if err = refuseDamage(s, dir, t.Problems(), r.despite); err == nil {
		done, err = r.deliver(ctx, t)
	}
	if cerr := t.Close(context.WithoutCancel(ctx)); cerr != nil {
		return errors.Join(err, failWith(exitSession, fmt.Errorf("closing the session: %w", cerr)))
	}
	if err != nil && len(done) == 0 {
		return err
	}
	return errors.Join(r.printDelivered(s, done), err)
}

// redelivered is a dead letter that has been put back.
type redelivered struct {
	Letter   string            `json:"letter"`
	Graph    terrarium.GraphID `json:"graph"`
	Creature string            `json:"creature"`
	Message  string            `json:"message"` // its new id
	Seq      uint64            `json:"seq"`
}

// deliver redelivers the requested dead letters, as far as possible.
func (r *redelivery) deliver(ctx context.Context, t *terrarium.Terrarium) (done []redelivered, err error) {
	graphs, _, err := t.Restore(ctx)
	if err != nil {
		return nil, sessionExit(err)
	}
	found, err := r.findLetters(ctx, t, graphs)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, l := range found {
		id, err := journal.ParseEventID(l.Letter)
		if err != nil {
			return done, failWith(exitFailed, err)
		}
		sent, err := t.Redeliver(ctx, l.Graph, id)
		if err != nil {
			failures = append(failures, fmt.Errorf("dead letter %s: %w", l.Letter, err))
			continue
		}
		l.Message, l.Seq = sent.Message.String(), sent.Seq
		done = append(done, l)
	}
	return done, failWith(exitFailed, errors.Join(failures...))
}

// findLetters looks for the requested dead letters in all graphs.
func (r *redelivery) findLetters(ctx context.Context, t *terrarium.Terrarium, graphs []journal.GraphID) (found []redelivered, err error) {
	hits := make([]int, len(r.letters))
	known := false // whether a creature has the name in --creature
	for _, g := range graphs {
		names, err := namesIn(t, g)
		if err != nil {
			return nil, failWith(exitFailed, err)
		}
		err = eachLetter(ctx, t, g, func(l *journal.DeadLetterRow) {
			name := names[l.Creature]
			if name == "" {
				name = string(l.Creature)
			}
			mine := r.all && (r.creature == "" || r.creature == name || r.creature == string(l.Creature))
			for i, want := range r.letters {
				if want == l.ID.String() || want == l.Message.String() {
					hits[i]++
					mine = true
				}
			}
			if mine {
				found = append(found, redelivered{Letter: l.ID.String(), Graph: g, Creature: name})
			}
		})
		if err != nil {
			return nil, failWith(exitSession, err)
		}
		for id, name := range names {
			known = known || r.creature == name || r.creature == string(id)
		}
	}
	if r.creature != "" && !known && len(found) == 0 {
		return nil, noCreature(r.creature)
	}
	for i, n := range hits {
		switch {
		case n == 0:
			return nil, failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "there is no dead letter " + r.letters[i], Remedy: "session dead-letters lists the dead letters"})
		case n > 1:
			return nil, failWith(exitSession, &abi.Error{
				Code: abi.Ambiguous, Message: "several creatures have a dead letter of message " + r.letters[i],
				Remedy: "name the dead letters by their own ids",
			})
		}
	}
	return found, nil
}

// namesIn returns the names of the creatures of a graph.
func namesIn(t *terrarium.Terrarium, g journal.GraphID) (map[journal.CreatureID]string, error) {
	status, err := t.Status(g)
	if err != nil {
		return nil, err
	}
	names := map[journal.CreatureID]string{}
	for _, s := range status {
		for _, c := range s.Creatures {
			names[c.ID] = c.Name
		}
	}
	return names, nil
}

// eachLetter calls f for the dead letters of a graph.
func eachLetter(ctx context.Context, t *terrarium.Terrarium, g journal.GraphID, f func(*journal.DeadLetterRow)) error {
	for after := (journal.EventID{}); ; {
		page, err := t.DeadLetters(ctx, g, "", after, pageSize)
		if err != nil {
			return err
		}
		for i := range page {
			f(&page[i])
		}
		if len(page) < pageSize {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

func (r *redelivery) printDelivered(s streams, done []redelivered) error {
	if r.format == "json" {
		if done == nil {
			done = []redelivered{}
		}
		return printJSON(s, map[string]any{"redelivered": done})
	}
	_, err := fmt.Fprintf(s.out, "Put back %s, to be delivered when the session is resumed.\n", count(len(done), "dead letter"))
	return failWith(exitFailed, err)
}
