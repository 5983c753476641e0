package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// tellRemoved reports what was removed because the recipe no longer has it.
func (x *running) tellRemoved() {
	if x.f.quiet {
		return
	}
	for _, a := range x.applied {
		for _, r := range a.Removed {
			fmt.Fprintf(x.s.err, "Removed %s, which is no longer in the recipe; its history is kept", printable(r.Address))
			if r.Pending > 0 {
				fmt.Fprintf(x.s.err, ", and its waiting messages became dead letters (%d)", r.Pending)
			}
			fmt.Fprintln(x.s.err)
		}
	}
}

// tellOutputs shows the outputs of a recipe that has been applied, without the values that
// are sensitive.
func (f *runFlags) tellOutputs(s streams, d *deploy.Deployment) {
	if f.quiet || d == nil {
		return
	}
	for i := range d.Declared {
		if name, ok := strings.CutPrefix(d.Declared[i].Address, "output."); ok {
			fmt.Fprintln(s.err, printable(fmt.Sprintf("Output %s = %s", name, d.Declared[i].Settings["value"].Text)))
		}
	}
}

// tellBacklog reports messages that wait for stopped and quarantined creatures. A run
// can be done in spite of them, so they would go unnoticed.
func (x *running) tellBacklog() {
	graphs, err := x.t.Status("")
	if err != nil {
		return // the engine is closed
	}
	for _, g := range graphs {
		for _, c := range g.Creatures {
			waiting := uint64(0)
			for _, cursor := range c.Cursors {
				waiting += cursor.Pending
			}
			if waiting == 0 || !stands(c.State) {
				continue
			}
			fmt.Fprintln(x.s.err, printable(fmt.Sprintf("%s is %s and has not handled %s; %s", c.Name, strings.ReplaceAll(string(c.State), "_", " "), deliveries(waiting), x.whatBecomes(waiting))))
		}
	}
}

// stands reports whether a creature in a state does not handle what waits for it until an
// operator acts.
func stands(state journal.CreatureState) bool {
	return state == journal.Quarantined || state == journal.Stopped || state == journal.Paused || state == journal.AwaitingApproval
}

// whatBecomes says what will happen, or has happened, to waiting deliveries.
func (x *running) whatBecomes(waiting uint64) string {
	one, temporary := waiting == 1, x.f.session == ""
	switch {
	case one && temporary:
		return "it was discarded with the temporary session; use --session DIR to keep it"
	case temporary:
		return "they were discarded with the temporary session; use --session DIR to keep them"
	case one:
		return "it is kept for the next run"
	}
	return "they are kept for the next run"
}

// tellItGoesOn says that all input has been read.
func (x *running) tellItGoesOn() {
	if !x.f.quiet {
		fmt.Fprintln(x.s.err, "All input has been read. Still running: press Ctrl-C to stop, or use --exit-when-idle the next time.")
	}
}

// tellHowToGoOn says after an interruption what was kept and how to resume.
func (x *running) tellHowToGoOn() {
	if x.f.session == "" {
		fmt.Fprintln(x.s.err, "Interrupted. Nothing was kept; use --session DIR to be able to resume.")
		return
	}
	fmt.Fprintf(x.s.err, "Interrupted. Everything was kept; resume with: %s\n", strings.Join(quoteAll(os.Args), " "))
	for _, in := range x.inputs {
		if in.info == nil {
			fmt.Fprintln(x.s.err, "Pass the same standard input again, from the beginning; lines that were already read are skipped.")
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
		return "; run with --session DIR to look at them afterwards"
	}
	return "; see them with: terrarium session dead-letters " + x.f.session
}

// quoteAll quotes words for a shell where necessary.
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
