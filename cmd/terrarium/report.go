package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"golang.org/x/term"
)

// reporter reports a run on standard error: its progress when it takes long, warnings
// and errors that creatures log, and a summary.
type reporter struct {
	x        *running
	w        io.Writer
	terminal bool
	started  time.Time
	failures int

	mu     sync.Mutex // inputs report too; guards the rest
	names  map[journal.CreatureID]string
	onLine bool // the terminal shows a progress line without a newline
}

func newReporter(x *running) *reporter {
	r := &reporter{x: x, w: x.s.err, started: time.Now(), names: map[journal.CreatureID]string{}}
	if f, ok := x.s.err.(*os.File); ok {
		r.terminal = term.IsTerminal(int(f.Fd()))
	}
	return r
}

const (
	progressAfter    = 2 * time.Second  // a run that takes less shows none
	progressEvery    = time.Second      // on a terminal, where the line is rewritten
	progressEveryLog = 10 * time.Second // elsewhere
	maxFailuresShown = 10
)

// start begins to report. It returns a function that stops reporting and waits until
// everything has been reported.
func (r *reporter) start(ctx context.Context) (stop func()) {
	sub := r.x.t.Subscribe(engine.Filter{Kinds: []journal.EventKind{
		journal.EventLog, journal.EventTurnFailed, journal.EventDeadLetter, journal.EventQuarantined, journal.EventPolicyDenied,
		journal.EventApprovalAsked,
	}}, 0)
	for _, a := range r.x.applied {
		r.learn(a)
	}
	events := make(chan journal.Event)
	done := make(chan struct{})
	read := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(read)
		defer close(events)
		for ob := range sub.All(ctx) {
			events <- ob.Event
		}
	}()
	go func() {
		defer close(done)
		r.loop(events)
	}()
	return func() {
		sub.Close() // events that it holds are still reported
		<-done
		cancel()
		<-read
	}
}

// learn takes over the names of creatures.
func (r *reporter) learn(a *terrarium.Applied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, id := range a.Creatures {
		r.names[id] = strings.TrimPrefix(address, "creature.")
	}
}

func (r *reporter) nameOf(id journal.CreatureID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[id]
}

func (r *reporter) loop(events <-chan journal.Event) {
	every := progressEveryLog
	if r.terminal {
		every = progressEvery
	}
	first := time.NewTimer(progressAfter)
	defer first.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	slow := false
	for {
		select {
		case ev, ok := <-events:
			if !ok {
				r.write("")
				return
			}
			r.event(&ev)
		case <-first.C:
			slow = true
			r.progress()
		case <-tick.C:
			if slow {
				r.progress()
			}
		}
	}
}

// event shows an event that the operator should see at once.
func (r *reporter) event(ev *journal.Event) {
	var p struct {
		Level, Text, Error, Reason string
		Effect                     journal.PolicyEffect
	}
	if err := json.Unmarshal(ev.Payload, &p); err != nil {
		return
	}
	name := r.nameOf(ev.Creature)
	switch ev.Kind {
	case journal.EventLog:
		if p.Level == "warn" || p.Level == "error" || r.x.f.verbose {
			r.say("%s: %s: %s", name, p.Level, p.Text)
		}
	case journal.EventTurnFailed:
		r.failures++
		if r.failures <= maxFailuresShown || r.x.f.verbose {
			r.say("%s failed on message %d, attempt %d: %s", name, ev.Seq, ev.Attempt, p.Error)
		}
		if r.failures == maxFailuresShown && !r.x.f.verbose {
			r.say("further failures are not shown; --verbose shows them all")
		}
	case journal.EventQuarantined:
		r.say("%s was quarantined after too many failures: %s", name, p.Error)
	case journal.EventDeadLetter:
		if r.x.f.verbose {
			r.say("a message for %s became a dead letter: %s", name, p.Reason)
		}
	case journal.EventApprovalAsked:
		r.say("%s", askedLine(ev, name))
	case journal.EventPolicyDenied:
		if r.x.f.verbose || p.Effect == journal.PolicyWarning {
			r.say("%s", policyLine(ev.Payload, name))
		}
	}
}

// policyLine describes a policy's verdict on an action of the creature called name, or
// of a caller outside if name is empty.
func policyLine(payload []byte, name string) string {
	var p journal.PolicyPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return ""
	}
	what := string(p.Event)
	if name != "" {
		what += " of " + name
	}
	line := fmt.Sprintf("policy %s (%s) on %s: %s", p.Policy, p.Where, what, p.Effect)
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	return line
}

// askedLine describes a question of a policy about the turn of a creature.
func askedLine(ev *journal.Event, name string) string {
	var p journal.ApprovalAskedPayload
	if err := json.Unmarshal(ev.Payload, &p); err != nil {
		return ""
	}
	return fmt.Sprintf("%s waits for approval of %s: policy %s (%s): %s", name, p.Subject, p.Policy, p.Where, p.Grounds)
}

func (r *reporter) say(format string, args ...any) {
	r.write(printable(fmt.Sprintf(format, args...)) + "\n")
}

// write writes a text, in place of the progress line if there is one.
func (r *reporter) write(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.onLine {
		text = "\r\x1b[K" + text
		r.onLine = false
	}
	fmt.Fprint(r.w, text)
}

// progress shows how far the run is.
func (r *reporter) progress() {
	if r.x.f.quiet {
		return
	}
	line := fmt.Sprintf("%s: %s", time.Since(r.started).Round(time.Second), r.counts())
	if !r.terminal {
		r.write(line + "\n")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "\r\x1b[K%s", line)
	r.onLine = true
}

// counts describes how much has been read and printed.
func (r *reporter) counts() string {
	var parts []string
	for _, in := range r.x.inputs {
		part := fmt.Sprintf("%s read for %s", count(in.Read.Load(), "line"), in.channel)
		if n := in.Skipped.Load(); n > 0 {
			part += fmt.Sprintf(" (%s of them by an earlier run)", humanize.Comma(n))
		}
		if n := in.denied.Load(); n > 0 {
			part += fmt.Sprintf(" (%s of them denied by policies)", humanize.Comma(n))
		}
		parts = append(parts, part)
	}
	for _, out := range r.x.printer.readers {
		parts = append(parts, fmt.Sprintf("%s printed from %s", humanize.Comma(out.printed.Load()), out.channel))
	}
	if n := r.x.deadLetters(); n > 0 {
		parts = append(parts, count(n, "dead letter"))
	}
	if len(parts) == 0 {
		return "running"
	}
	return strings.Join(parts, ", ")
}

// summary reports the totals after a word for how the run ended.
func (r *reporter) summary(word string) {
	if r.x.f.quiet || (len(r.x.inputs) == 0 && len(r.x.printer.readers) == 0) {
		return
	}
	line := fmt.Sprintf("%s in %s: %s.", word, time.Since(r.started).Round(time.Millisecond), r.counts())
	if s := r.x.f.session; s != "" {
		line += " Session: " + s
		if d := r.x.t.Directory(); d != nil && r.x.f.verbose {
			wear := d.Wear()
			line += fmt.Sprintf(". Its logs: %s and %s written", count(wear.Syncs, "sync"), size(wear.WrittenBytes))
		}
	}
	fmt.Fprintln(r.w, line)
}
