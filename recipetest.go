package terrarium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/recipes"
)

// RecipeTest is the result of a test of a recipe. The test has passed if there are no
// findings.
type RecipeTest struct {
	Name     string              `json:"name"`
	Where    string              `json:"where"` // its place: "team.hcl:12"
	Passed   bool                `json:"passed"`
	Took     time.Duration       `json:"-"`
	Error    string              `json:"error,omitempty"` // why it could not finish
	Findings recipes.Diagnostics `json:"findings"`
}

// LoadTests loads the tests of a recipe, as [LoadRecipe] does the recipe.
func LoadTests(ctx context.Context, path string, o RecipeOptions) ([]*recipes.Test, Diagnostics) {
	var tests []*recipes.Test
	diags := inspecting(ctx, func(h *host.Host) (diags Diagnostics) {
		tests, diags = recipes.LoadTests(ctx, path, o.loading(h))
		return diags
	})
	return tests, diags
}

// RunTest runs a test of a recipe on an engine of its own, with a temporary session. o
// configures the engine; its Dir and its Clock are not used. Each step begins when
// everything before it has been handled. The result describes failures of the recipe; the
// error describes a failure to run the test.
//
// The clock of a test stands still, except for its own steps and for pauses before failed
// deliveries are tried again.
func RunTest(ctx context.Context, test *recipes.Test, o Options) (RecipeTest, error) {
	started := time.Now()
	out := RecipeTest{Name: test.Name, Where: test.Where, Findings: Diagnostics{}}
	outcome, err := runTest(ctx, test, o)
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	var failed *startFailure
	if errors.As(err, &failed) {
		return out, failed.error
	}
	out.Took = time.Since(started)
	if err != nil {
		out.Error = withoutRemedy(err)
		return out, nil
	}
	out.Findings = append(out.Findings, test.Check(outcome)...)
	out.Passed = len(out.Findings) == 0
	return out, nil
}

// startFailure is an error that says nothing about the recipe.
type startFailure struct{ error }

// runTest returns the outcome of a test. If its recipe could not be loaded, as expected,
// there is none.
func runTest(ctx context.Context, test *recipes.Test, o Options) (outcome recipes.TestOutcome, err error) {
	if test.Recipe == nil {
		return outcome, nil
	}
	o.Dir, o.Storage, o.Scratch, o.Clock = "", nil, true, NewManualClock(testStart)
	var kinds []capability.Kind
	for _, k := range withOwn(o.Capabilities) {
		kinds = append(kinds, capability.Offline(k))
	}
	o.Capabilities, o.NoConnectors = kinds, true
	t, err := New(ctx, o)
	if err != nil {
		return outcome, &startFailure{err}
	}
	defer func() { _ = t.Close(context.WithoutCancel(ctx)) }() // the session is temporary
	return (&testRun{t}).outcome(ctx, test)
}

// withoutRemedy returns the message of an error without its remedy.
func withoutRemedy(err error) string {
	var typed *abi.Error
	if !errors.As(err, &typed) {
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), "; "+typed.Remedy)
}

// testRun is the run of one test.
type testRun struct {
	*Terrarium
}

// outcome applies the recipe of a test, takes its steps and collects the results. The
// timeout of the test begins when its creatures have started: compiling their modules may
// take seconds on a small machine, and has bounds of its own.
func (t *testRun) outcome(ctx context.Context, test *recipes.Test) (recipes.TestOutcome, error) {
	w := watchTest(ctx, t.Terrarium)
	applied, err := t.ApplyDeployment(ctx, test.Recipe.Deployment())
	bounded, cancel := context.WithTimeoutCause(ctx, test.Timeout, &abi.Error{
		Code: abi.Deadline, Message: fmt.Sprintf("the test did not end within %v", test.Timeout), Remedy: "set a longer timeout in the test",
	})
	defer cancel()
	var denials []recipes.TestDenial
	if err == nil {
		denials, err = t.takeSteps(bounded, applied, test.Steps)
	}
	observed := w.collect()
	if cause := context.Cause(bounded); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return recipes.TestOutcome{}, err
	}
	outcome, err := t.sort(ctx, applied, observed)
	outcome.Denials = append(outcome.Denials, denials...)
	return outcome, err
}

// takeSteps sends the messages of a test, and moves its clock. It returns denials by
// policies, because a denied message from outside is not an event.
func (t *testRun) takeSteps(ctx context.Context, applied *Applied, steps []recipes.TestStep) (denials []recipes.TestDenial, err error) {
	err = t.settle(ctx)
	for _, step := range steps {
		switch {
		case err != nil:
			return denials, err
		case step.Advance > 0:
			err = t.Advance(ctx, step.Advance)
		case step.Decide != nil:
			err = t.decide(step.Decide)
		default:
			s := step.Send
			_, err = t.Send(ctx, applied.Channels[s.Channel], Outgoing{Payload: s.Payload, Headers: s.Headers})
			if refused := denialsOf(err, s.Channel); len(refused) > 0 {
				denials, err = append(denials, refused...), nil
			}
		}
		if err == nil {
			err = t.settle(ctx)
		}
	}
	return denials, err
}

// decide answers what waits for approval.
func (t *testRun) decide(d *recipes.TestDecision) error {
	waiting, err := t.Approvals()
	if err != nil {
		return err
	}
	some := false
	for i := range waiting {
		if d.Policy != "" && waiting[i].Policy != d.Policy {
			continue
		}
		some = true
		if _, err := t.Decide(waiting[i].ID, engine.Decision{Approve: d.Approve, Reason: d.Because}); err != nil {
			return err
		}
	}
	if !some {
		return &abi.Error{Code: abi.NotFound, Message: d.Where + ": nothing waits for approval", Remedy: "send what the policy asks about before the decide block"}
	}
	return nil
}

// settle waits until everything has been handled. It moves the clock to the ends of pauses,
// such as those before a failed delivery is tried again.
func (t *testRun) settle(ctx context.Context) error {
	for {
		if err := t.WaitIdle(ctx); err != nil {
			return err
		}
		wait, ok := t.engine.NextPause()
		if !ok {
			return nil
		}
		if err := t.advance(ctx, t.clock.Now().Add(wait)); err != nil {
			return err
		}
	}
}

// denialsOf returns the denials by policies in an error of [engine.Engine.Send].
func denialsOf(err error, channel string) (out []recipes.TestDenial) {
	var refused *deploy.RefusedMessage
	if errors.As(err, &refused) {
		for _, v := range refused.By {
			out = append(out, recipes.TestDenial{Policy: v.Policy, Channel: channel, Effect: refused.Effect, Reason: v.Reason})
		}
	}
	return out
}

// testWatch collects events of a test.
type testWatch struct {
	sub    *engine.Subscription
	done   sync.WaitGroup
	events []Event
	size   int64 // of the events, in bytes
	missed uint64
}

func watchTest(ctx context.Context, t *Terrarium) *testWatch {
	ctx = context.WithoutCancel(ctx) // closing the subscription ends it
	w := &testWatch{sub: t.Subscribe(engine.Filter{Kinds: []journal.EventKind{
		journal.EventChannelMessage, journal.EventOutput, journal.EventDeadLetter, journal.EventPolicyDenied, journal.EventApprovalAsked, journal.EventApprovalDecided,
	}}, engine.MaxSubscriptionBuffer)}
	w.done.Go(func() {
		for {
			o, err := w.sub.Next(ctx)
			if err != nil {
				return
			}
			w.missed += o.Missed
			if o.Missed == 0 {
				w.observe(o.Event)
			}
		}
	})
	return w
}

// mostObserved bounds the size of the events of one test, in bytes. What exceeds it counts
// as missed.
const mostObserved = 64 << 20

func (w *testWatch) observe(ev Event) {
	if w.size += ev.Size(); w.size > mostObserved {
		w.missed++
		return
	}
	w.events = append(w.events, ev)
}

func (w *testWatch) collect() *testWatch {
	w.sub.Close()
	w.done.Wait()
	return w
}

// sort sorts the observed events by the addresses of the recipe.
func (t *Terrarium) sort(ctx context.Context, applied *Applied, w *testWatch) (recipes.TestOutcome, error) {
	o := recipes.TestOutcome{Messages: map[string][]recipes.TestMessage{}, Outputs: map[string][][]byte{}, State: map[string]map[string][]byte{}}
	if w.missed > 0 {
		return o, &abi.Error{Code: abi.LimitExceeded, Message: fmt.Sprintf("the test caused too many events; %d of them were missed", w.missed), Remedy: "send fewer messages"}
	}
	channels, creatures := map[ChannelID]string{}, map[CreatureID]string{}
	for address, id := range applied.Channels {
		channels[id] = address
	}
	for address, id := range applied.Creatures {
		creatures[id] = address
		entries, err := t.State(ctx, id, "")
		if err != nil {
			return o, err
		}
		o.State[address] = map[string][]byte{}
		for _, e := range entries {
			o.State[address][e.Key] = e.Value
		}
	}
	var errs []error
	for _, e := range w.events {
		errs = append(errs, addEvent(&o, e, channels[e.Channel], creatures))
	}
	return o, errors.Join(errs...)
}

// addEvent adds one event to an outcome.
func addEvent(o *recipes.TestOutcome, e Event, channel string, creatures map[CreatureID]string) error {
	who := creatures[e.Creature]
	switch e.Kind {
	case journal.EventChannelMessage:
		o.Messages[channel] = append(o.Messages[channel], recipes.TestMessage{Payload: e.Payload, Headers: journal.DecodeHeaders(e.Headers), Sender: who})
	case journal.EventOutput:
		o.Outputs[who] = append(o.Outputs[who], e.Payload)
	case journal.EventDeadLetter:
		var p journal.DeadLetterPayload
		err := json.Unmarshal(e.Payload, &p)
		o.DeadLetters = append(o.DeadLetters, recipes.TestDeadLetter{Creature: creatures[p.Creature], Reason: p.Reason, Error: p.Error})
		return err
	case journal.EventApprovalAsked:
		var p journal.ApprovalAskedPayload
		err := json.Unmarshal(e.Payload, &p)
		o.Approvals = append(o.Approvals, recipes.TestApproval{ID: e.ID, Policy: p.Policy, Subject: p.Subject, Because: p.Grounds, Creature: who})
		return err
	case journal.EventApprovalDecided:
		var p journal.ApprovalDecidedPayload
		err := json.Unmarshal(e.Payload, &p)
		for i := range o.Approvals {
			if o.Approvals[i].ID == p.Approval {
				o.Approvals[i].Decision = p.Decision
			}
		}
		return err
	case journal.EventPolicyDenied:
		var p journal.PolicyPayload
		err := json.Unmarshal(e.Payload, &p)
		if p.Effect == journal.PolicyChanged {
			return err // no policy has objected
		}
		o.Denials = append(o.Denials, recipes.TestDenial{Policy: p.Policy, Effect: p.Effect, Reason: p.Reason, Channel: channel, Sender: who})
		return err
	}
	return nil
}
