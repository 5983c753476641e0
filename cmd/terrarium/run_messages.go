package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium/engine/journal"
)

// tellRemoved says what a saved session had and the recipe does not.
func (x *running) tellRemoved() {
	if x.f.quiet {
		return
	}
	for _, a := range x.applied {
		for _, r := range a.Removed {
			fmt.Fprintf(x.s.err, "%s is not in the recipe any more; its history stays", printable(r.Address))
			if r.Pending > 0 {
				fmt.Fprintf(x.s.err, ", and %d waiting messages became dead letters", r.Pending)
			}
			fmt.Fprintln(x.s.err)
		}
	}
}

// tellBacklog says what still waits for creatures that do not run: it is not in
// the way of a run being done, and would go unnoticed.
func (x *running) tellBacklog() {
	graphs, err := x.t.Status("")
	if err != nil {
		return // the engine is closed, and there is nothing to tell
	}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			waiting := uint64(0)
			for _, cursor := range c.Cursors {
				waiting += cursor.Pending
			}
			if waiting == 0 || (c.State != journal.Quarantined && c.State != journal.Stopped) {
				continue
			}
			fmt.Fprintln(x.s.err, printable(fmt.Sprintf("%s is %s, and has not handled %s; %s", c.Name, c.State, deliveries(waiting), x.whatBecomes())))
		}
	}
}

// whatBecomes says what becomes of deliveries that wait.
func (x *running) whatBecomes() string {
	if x.f.session == "" {
		return "with --session DIR a later run could go on with that"
	}
	return "the next run goes on with that"
}

// tellItGoesOn says that nothing more will be fed.
func (x *running) tellItGoesOn() {
	if !x.f.quiet {
		fmt.Fprintln(x.s.err, "All input is read; running on until Ctrl-C. With --exit-when-idle a run ends by itself.")
	}
}

// tellHowToGoOn says after an interruption what has been kept.
func (x *running) tellHowToGoOn() {
	if x.f.session == "" {
		fmt.Fprintln(x.s.err, "Interrupted. Nothing was kept; with --session DIR a later run goes on from here.")
		return
	}
	fmt.Fprintf(x.s.err, "Interrupted. Everything is kept; go on with: %s\n", strings.Join(quoteAll(os.Args), " "))
	for _, in := range x.inputs {
		if in.info == nil {
			fmt.Fprintln(x.s.err, "Feed it the same standard input again, from the beginning: what was taken in is left out.")
		}
	}
}

func becameDeadLetters(n int64) string {
	if n == 1 {
		return "1 delivery became a dead letter"
	}
	return deliveries(uint64(n)) + " became dead letters"
}

func deliveries(n uint64) string {
	if n == 1 {
		return "1 delivery"
	}
	return humanize.Comma(int64(n)) + " deliveries"
}

func (x *running) whereToLook() string {
	if x.f.session == "" {
		return "; run it with --session DIR to look at them afterwards"
	}
	return "; see them with: terrarium session dead-letters " + x.f.session
}

// quoteAll quotes words for a shell where they need it.
func quoteAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"$&|;<>()*?[]#~`\\!{}") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return out
}
