package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/report"
)

// Run runs the cases whose names match, each on creatures of its own. The error is only
// about ctx: an adapter that cannot be used makes the rest inconclusive, unless another
// can be started.
func Run(ctx context.Context, start func(ctx context.Context) (Adapter, error), cases []*Case) (*report.Report, error) {
	r := &runner{start: start}
	defer r.end(ctx)
	out := &report.Report{Subject: "host"}
	for _, c := range cases {
		out.Results = append(out.Results, r.run(ctx, c))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if r.hello != nil {
		out.Name = r.hello.Host + " " + r.hello.Version
	}
	return out, nil
}

// runner runs cases on an adapter, and starts another one when it is lost.
type runner struct {
	start   func(ctx context.Context) (Adapter, error)
	adapter Adapter // nil: none is running
	hello   *Response
	lost    int // adapters so far
	next    int64
}

// maxLost is how many adapters may be lost before the rest is not tried.
const maxLost = 8

func (r *runner) end(ctx context.Context) {
	if r.adapter != nil {
		_ = r.adapter.Close(context.WithoutCancel(ctx)) // the verdicts are known
		r.adapter = nil
	}
}

// ready starts an adapter unless one is running.
func (r *runner) ready(ctx context.Context) error {
	if r.adapter != nil {
		return nil
	}
	if r.lost >= maxLost {
		return &Trouble{Reason: report.AdapterLost, Text: fmt.Sprintf("the adapter was lost %d times; it is not started again", r.lost)}
	}
	a, err := r.start(ctx)
	if err != nil {
		r.lost = maxLost
		return &Trouble{Reason: report.AdapterLost, Text: "the adapter does not start: " + err.Error()}
	}
	r.adapter = a
	if r.hello, err = r.ask(ctx, &Request{Op: OpHello}); err != nil && r.adapter != nil {
		r.end(ctx) // it answered, but did not introduce itself
		r.lost++
	}
	return err
}

// ask sends a request. After an error of the adapter itself it is not used again.
func (r *runner) ask(ctx context.Context, q *Request) (*Response, error) {
	r.next++
	q.ID = r.next
	out, err := r.adapter.Do(ctx, q)
	if err != nil {
		r.end(ctx)
		r.lost++
		var known *Trouble
		if !errors.As(err, &known) {
			known = &Trouble{Reason: report.AdapterLost, Text: err.Error()}
		}
		return nil, known
	}
	switch {
	case out.Lacks != "":
		return nil, &Trouble{Reason: report.HostLacks, Text: out.Lacks}
	case out.Error != "":
		return nil, &Trouble{Reason: report.AdapterError, Text: fmt.Sprintf("%s: %.500s", q.Op, out.Error)}
	}
	return out, nil
}

// Trouble is why a check has no outcome.
type Trouble struct {
	Reason report.Reason
	Text   string
	during bool // it came while an attack was under way
}

func (t *Trouble) Error() string { return t.Text }

func (r *runner) run(ctx context.Context, c *Case) report.Result {
	out := report.Result{Check: c.Check, About: c.About, Rules: c.Proves, Verdict: report.Passed}
	seen, err := r.attempt(ctx, c)
	var trouble *Trouble
	switch {
	case errors.As(err, &trouble):
		out.Verdict, out.Reason, out.Seen = report.Inconclusive, trouble.Reason, []string{trouble.Text}
	case err != nil:
		out.Verdict, out.Reason, out.Seen = report.Inconclusive, report.SuiteError, []string{err.Error()}
	case len(seen) > 0:
		out.Verdict, out.Seen = report.Failed, seen
	}
	if out.Reason == report.LacksFeature {
		out.Verdict = report.NotApplicable
	}
	return out
}

// attempt runs a case and returns what is wrong.
func (r *runner) attempt(ctx context.Context, c *Case) ([]string, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	for _, f := range c.Needs {
		if !slices.Contains(r.hello.Features, f) {
			return nil, &Trouble{Reason: report.LacksFeature, Text: "the host does not have the feature " + f}
		}
	}
	if _, err := r.ask(ctx, &Request{Op: OpReset}); err != nil {
		return nil, err
	}
	vars := map[string]string{}
	loads := map[string]*Load{}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Load != nil {
			loads[s.On] = s.Load
		}
		q, err := s.request()
		if err != nil {
			return nil, err
		}
		got, err := r.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		if wrong := s.judge(got, loads, vars); len(wrong) > 0 {
			for n := range wrong {
				wrong[n] = fmt.Sprintf("step %d (%s): %s", i+1, q.Op, wrong[n])
			}
			return wrong, nil
		}
	}
	return nil, nil
}

func (s *Step) request() (*Request, error) {
	r := &Request{Creature: s.On}
	var err error
	switch {
	case s.Examine != "":
		r.Op, r.Creature = OpCheck, ""
		r.Module, err = module(s.Examine)
	case s.Load != nil:
		err = s.Load.request(r)
	case s.Send != nil:
		r.Op, r.Creature = OpSend, ""
		err = s.Send.request(r, s)
	case s.Advance != nil:
		r.Op, r.Creature, r.MS = OpAdvance, "", *s.Advance
	case s.Drop:
		r.Op = OpDrop
	case s.Stop:
		r.Op = OpStop
	default:
		r.Op = OpDeliver
		err = s.Deliver.request(r, s)
	}
	return r, err
}

// judge compares a response with the expectations of the step.
func (s *Step) judge(got *Response, loads map[string]*Load, vars map[string]string) (wrong []string) {
	switch {
	case s.Examine != "":
		return s.judgeProblems(got.Problems)
	case s.Advance != nil:
		return s.judgeTurns(got.Turns, loads, vars)
	case s.Send != nil, s.Drop:
		return nil
	}
	if len(got.Turns) != 1 {
		return []string{fmt.Sprintf("the adapter reported %d turns instead of one", len(got.Turns))}
	}
	t := &got.Turns[0]
	if !slices.Contains(strings.Split(s.Status, "|"), t.Status) {
		return []string{fmt.Sprintf("it ended with %s (%.300s) instead of %s", t.Status, t.Text, s.Status)}
	}
	if !strings.Contains(t.Text, s.Text) {
		wrong = append(wrong, fmt.Sprintf("the text of the failure is %q, which does not contain %q", t.Text, s.Text))
	}
	script := s.script
	switch {
	case s.Load != nil:
		script = s.Load.init
	case s.Stop:
		script = loads[s.On].stop
	case s.Calls == "":
		script = loads[s.On].handle
	}
	if s.ByStatus || t.Status != abi.OK.String() && len(script.calls) > 0 && s.Returns >= 0 {
		script = &scriptThatEnds // its report never came
	}
	logs, effects := logLines(t), effectLines(t.Effects)
	wrong = append(wrong, script.take(&logs, &effects, t, vars)...)
	if !slices.Equal(logs, s.Logs) {
		wrong = append(wrong, differ("the log lines", logs, s.Logs))
	}
	if !slices.Equal(effects, s.Effects) {
		wrong = append(wrong, differ("the effects", effects, s.Effects))
	}
	if s.Instances > 0 && got.Instances != s.Instances {
		wrong = append(wrong, fmt.Sprintf("%d instances were made so far instead of %d", got.Instances, s.Instances))
	}
	return wrong
}

// scriptThatEnds stands for a script that ended the guest before its report.
var scriptThatEnds = script{}

// take judges the report of the probe and removes it from the lines.
func (s *script) take(logs, effects *[]string, t *Turn, vars map[string]string) []string {
	if len(s.calls) == 0 {
		return nil
	}
	if s.byOutput {
		for i := range t.Effects {
			if e := &t.Effects[i]; e.Kind == EffectOutput {
				line := lineOf(e)
				at := slices.Index(*effects, line)
				*effects = slices.Delete(*effects, at, at+1)
				return s.judge(string(e.Payload), vars)
			}
		}
	} else if n := len(*logs); n > 0 && t.Logs[n-1][0] == "debug" {
		*logs = (*logs)[:n-1]
		return s.judge(t.Logs[n-1][1], vars)
	}
	return []string{"the probe's report is missing"}
}

func (s *Step) judgeProblems(got []Problem) (wrong []string) {
	if len(s.Problems) == 0 && len(got) > 0 {
		return []string{fmt.Sprintf("a module that conforms is refused: %s: %.300s", got[0].Code, got[0].Text)}
	}
	if len(s.Problems) > 0 && len(got) == 0 {
		return []string{"the module is accepted"}
	}
	for _, want := range s.Problems {
		if !slices.ContainsFunc(got, func(p Problem) bool { return strings.Contains(p.Text, want) }) {
			var texts []string
			for _, p := range got {
				texts = append(texts, p.Text)
			}
			wrong = append(wrong, fmt.Sprintf("no problem mentions %s: %.500q", want, texts))
		}
	}
	return wrong
}

// judgeTurns compares the turns of an advance: one line for each, followed by its effects.
// Scripts of the creatures are judged as well.
func (s *Step) judgeTurns(got []Turn, loads map[string]*Load, vars map[string]string) (wrong []string) {
	var lines []string
	for i := range got {
		t := &got[i]
		title, logs, effects := turnTitle(t), logLines(t), effectLines(t.Effects)
		if n := len(lines); n < len(s.Turns) {
			if prefix, any := strings.CutSuffix(s.Turns[n], "*"); any && strings.HasPrefix(title, prefix) {
				title = s.Turns[n]
			}
		}
		if l := loads[t.Creature]; l != nil && t.Status == abi.OK.String() && !isScript(t.Payload) {
			wrong = append(wrong, l.handle.take(&logs, &effects, t, vars)...)
		}
		lines = append(append(lines, title), effects...)
	}
	if !slices.Equal(lines, s.Turns) {
		wrong = append(wrong, differ("the turns", lines, s.Turns))
	}
	return wrong
}

func isScript(payload []byte) bool { return strings.HasPrefix(string(payload), "TPRB") }

func turnTitle(t *Turn) string {
	kind := strconv.Itoa(int(t.Kind))
	if at := int(t.Kind) - 1; at >= 0 && at < len(abi.Kinds) {
		kind = abi.Kinds[at].Name
	}
	title := "> " + t.Creature + " " + kind
	if t.Alias != "" {
		title += " " + t.Alias
	}
	if !isScript(t.Payload) {
		title += " " + strconv.Quote(string(t.Payload))
	}
	if t.Status != abi.OK.String() {
		title += " " + t.Status
	}
	return title
}

func differ(what string, got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("%s: number %d is %.300s instead of %.300s", what, i+1, g, w)
		}
	}
	return ""
}

func logLines(t *Turn) (out []string) {
	for _, l := range t.Logs {
		out = append(out, l[0]+" "+l[1])
	}
	return out
}

// rank is the place of a kind of effect in a transcript.
var rank = map[EffectKind]int{
	EffectSend: 0, EffectSendTo: 0, EffectRequest: 0, EffectReply: 1, EffectOutput: 2, EffectState: 3, EffectDelete: 3, EffectTimer: 4, EffectCancel: 4,
}

// effectLines returns effects in the order of a transcript: messages in the order of the
// calls, the reply, the output, state by key, timers by name.
func effectLines(list []Effect) (out []string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Effect) int {
		if c := cmp.Compare(rank[a.Kind], rank[b.Kind]); c != 0 || rank[a.Kind] < 3 {
			return c
		}
		return strings.Compare(a.To, b.To)
	})
	for i := range list {
		out = append(out, lineOf(&list[i]))
	}
	return out
}

func lineOf(e *Effect) string {
	out := string(e.Kind)
	if e.To != "" {
		out += " " + e.To
	}
	switch e.Kind {
	case EffectDelete, EffectCancel:
		return out
	}
	out += " " + strconv.Quote(string(e.Payload))
	slices.SortFunc(e.Headers, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	for _, h := range e.Headers {
		out += " [" + h[0] + ": " + h[1] + "]"
	}
	switch e.Kind {
	case EffectRequest:
		out += fmt.Sprintf(" within %d ms, tag %d", e.MS, e.Tag)
	case EffectTimer:
		out += fmt.Sprintf(" in %d ms", e.MS)
		if e.Period > 0 {
			out += fmt.Sprintf(", every %d ms", e.Period)
		}
	}
	return out
}
