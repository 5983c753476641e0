package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
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
their ids, which session dead-letters shows, or by the ids of their messages. If no
process runs the directory, the creatures get the messages when the session is resumed.`,
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

func (r *redelivery) run(ctx context.Context, s streams, dir string) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	h, err := holderOf(ctx, s, dir, holding{paused: true, despite: r.despite})
	if err != nil {
		return err
	}
	done, err := r.deliver(ctx, h)
	if cerr := h.close(ctx); cerr != nil {
		return errors.Join(err, cerr)
	}
	if err != nil && len(done) == 0 {
		return err
	}
	return errors.Join(r.printDelivered(s, done, h.running), err)
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
func (r *redelivery) deliver(ctx context.Context, h *holder) (done []redelivered, err error) {
	found, err := r.findLetters(ctx, h)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, l := range found {
		var sent operations.SendResult
		if err := h.do(ctx, "redeliver", operations.RedeliverArgs{Graph: string(l.Graph), Message: l.Letter}, &sent); err != nil {
			failures = append(failures, fmt.Errorf("dead letter %s: %w", l.Letter, err))
			continue
		}
		l.Message, l.Seq = sent.Message, sent.Seq
		done = append(done, l)
	}
	return done, failWith(exitFailed, errors.Join(failures...))
}

// findLetters looks for the requested dead letters in all graphs.
func (r *redelivery) findLetters(ctx context.Context, h *holder) (found []redelivered, err error) {
	var status operations.StatusResult
	if err := h.do(ctx, "status", operations.StatusArgs{}, &status); err != nil {
		return nil, failWith(exitFailed, err)
	}
	hits := make([]int, len(r.letters))
	known := false // whether a creature has the name in --creature
	for i := range status.Graphs {
		g := &status.Graphs[i]
		names := map[terrarium.CreatureID]string{}
		for k := range g.Creatures {
			c := &g.Creatures[k]
			names[c.ID] = c.Name
			known = known || r.creature == c.Name || r.creature == string(c.ID)
		}
		err := eachLetter(ctx, h, g.ID, func(l *operations.DeadLetterRecord) {
			name := cmp.Or(names[l.Creature], string(l.Creature))
			mine := r.all && (r.creature == "" || r.creature == name || r.creature == string(l.Creature))
			for i, want := range r.letters {
				if want == l.ID || want == l.Message {
					hits[i]++
					mine = true
				}
			}
			if mine {
				found = append(found, redelivered{Letter: l.ID, Graph: g.ID, Creature: name})
			}
		})
		if err != nil {
			return nil, failWith(exitSession, err)
		}
	}
	if r.creature != "" && !known && len(found) == 0 {
		return nil, noCreature(r.creature)
	}
	return found, r.checkHits(hits)
}

// checkHits returns an error unless each requested dead letter was found once.
func (r *redelivery) checkHits(hits []int) error {
	for i, n := range hits {
		switch {
		case n == 0:
			return failWith(exitSession, &abi.Error{Code: abi.NotFound, Message: "there is no dead letter " + r.letters[i], Remedy: "session dead-letters lists the dead letters"})
		case n > 1:
			return failWith(exitSession, &abi.Error{
				Code: abi.Ambiguous, Message: "several creatures have a dead letter of message " + r.letters[i],
				Remedy: "name the dead letters by their own ids",
			})
		}
	}
	return nil
}

// eachLetter calls f for the dead letters of a graph.
func eachLetter(ctx context.Context, h *holder, g terrarium.GraphID, f func(*operations.DeadLetterRecord)) error {
	for after := ""; ; {
		var page operations.DeadLettersResult
		if err := h.do(ctx, "dead_letters", operations.DeadLettersArgs{Graph: string(g), After: after, Limit: pageSize}, &page); err != nil {
			return err
		}
		for i := range page.DeadLetters {
			f(&page.DeadLetters[i])
		}
		if len(page.DeadLetters) < pageSize {
			return nil
		}
		after = page.DeadLetters[len(page.DeadLetters)-1].ID
	}
}

func (r *redelivery) printDelivered(s streams, done []redelivered, running bool) error {
	if r.format == "json" {
		if done == nil {
			done = []redelivered{}
		}
		return printJSON(s, map[string]any{"redelivered": done})
	}
	when := ", to be delivered when the session is resumed"
	if running {
		when = ""
	}
	_, err := fmt.Fprintf(s.out, "Put back %s%s.\n", count(len(done), "dead letter"), when)
	return failWith(exitFailed, err)
}
