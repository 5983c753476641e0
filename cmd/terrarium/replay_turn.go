package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/replay"
)

// oneTurn reads --turn, and refuses flags that select other turns.
func (f *replayFlags) oneTurn(given bool) (journal.EventID, error) {
	if !given {
		return journal.EventID{}, nil
	}
	for name, also := range map[string]bool{"--creature": len(f.creatures) > 0, "--from": f.from != "", "--all": f.all, "--fresh": f.fresh} {
		if also {
			return journal.EventID{}, usage("--turn and %s exclude each other: --turn names one turn", name)
		}
	}
	id, err := journal.ParseEventID(f.turn)
	if err != nil || id.IsZero() {
		return journal.EventID{}, usage("--turn %q is not the id of an event; session events shows the ids", f.turn)
	}
	return id, nil
}

func (f *replayFlags) replayTurn(ctx context.Context, s streams, dir string, turn journal.EventID, o terrarium.ReplayOptions) error {
	c, err := terrarium.ReplayTurn(ctx, dir, turn, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted(ctx)
	case abi.CodeOf(err) == abi.Storage:
		return failWith(exitSession, err)
	case err != nil:
		return operationExit(err)
	}
	if f.module != "" {
		c.Again.Module = f.module
	}
	if f.format == "json" {
		err = printJSON(s, operations.NewReplayTurnResult(c))
	} else {
		_, err = io.WriteString(s.out, comparisonText(c))
		err = failWith(exitFailed, err)
	}
	if err == nil && c.First >= 0 {
		return &exit{code: exitFailed, err: errDiffers, shown: true}
	}
	return err
}

// comparisonText shows both sides of a turn: how it ended, and the effects as in a diff.
func comparisonText(c *replay.Comparison) string {
	var b strings.Builder
	verdict := "does the same again"
	if c.First >= 0 {
		verdict = "differs"
	}
	fmt.Fprintf(&b, "Turn %s of %s %s.\n", c.Turn, printable(c.Name), verdict)
	fmt.Fprintf(&b, "  handled   %s\n", printable(handled(&c.Delivery)))
	if !c.Delivery.Message.IsZero() {
		fmt.Fprintf(&b, "  message   %s\n", c.Delivery.Message)
	}
	if c.Attempt > 1 {
		fmt.Fprintf(&b, "  attempt   %d\n", c.Attempt)
	}
	fmt.Fprintf(&b, "  then      %s\n", performedText(&c.Then))
	fmt.Fprintf(&b, "  again     %s\n", performedText(&c.Again))
	changes := c.Diff()
	if len(changes) == 0 {
		b.WriteString("  It had no effects, and has none again.\n")
		return b.String()
	}
	b.WriteString("  - then, + again\n")
	for _, change := range changes {
		fmt.Fprintf(&b, "    %c %s\n", change.Sign, printable(change.Effect.String()))
	}
	return b.String()
}

// performedText says in a line how a turn ended.
func performedText(p *replay.Performed) string {
	fuel := ""
	if p.Fuel >= 0 {
		fuel = ", fuel " + humanize.Comma(p.Fuel)
	}
	ended := "done"
	if p.Code != "" {
		ended = "failed, " + p.Code + ": " + p.Error
	}
	return printable(oneLine(fmt.Sprintf("%s %.12s%s: %s", cmp.Or(p.Module, "module"), p.SHA256, fuel, ended)))
}
