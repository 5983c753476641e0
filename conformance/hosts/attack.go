package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/report"
)

// Attack is a module that attacks its host, and how it must end.
type Attack struct {
	Check  string // the name of its check
	About  string
	Module func() []byte
	Config string
	// Limits are those of the creature; zero ones are the defaults.
	Limits abi.Limits
	// Refused is whether no instance of the module may be made.
	Refused bool
	// Fails is whether it must fail: when it is loaded, handles a message, or is stopped.
	Fails bool
	Rules []string
}

// attackDeadline is the longest deadline of a turn of an attack: it must end the guest
// before the adapter counts as silent, even on a host without fuel.
const attackDeadline = 10 * time.Second

// AttackOptions say how long attacks may take. The zero value is for adapters with the
// default timeout.
type AttackOptions struct {
	// Timeout is how long the adapter may take for an answer; see [ProcessOptions]. The
	// deadline of a turn is at most a third of it, so that a late turn differs from an adapter
	// that hangs.
	Timeout time.Duration
	// Now tells the time; by default it is [time.Now].
	Now func() time.Time
}

// deadline returns the longest deadline of a turn. A turn may take half as long in addition
// before it counts as late, since machines are slow at times.
func (o *AttackOptions) deadline() time.Duration {
	return min(attackDeadline, cmp.Or(o.Timeout, defaultTimeout)/3)
}

// RunAttacks loads each module, lets it handle a message, stops it, and expects that it is refused or
// ends within its limits, and that the host then serves another creature. An adapter
// that ends or hangs fails the check, and so does one with a turn that ends long after
// its deadline. The error is only about ctx.
func RunAttacks(ctx context.Context, start func(ctx context.Context) (Adapter, error), attacks []Attack, o AttackOptions) (*report.Report, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &runner{start: start}
	defer r.end(ctx)
	out := &report.Report{Subject: "host"}
	for i := range attacks {
		a := &attacks[i]
		x := report.Result{Check: a.Check, About: a.About, Rules: a.Rules, Verdict: report.Passed}
		seen, err := r.attack(ctx, a, &o)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var trouble *Trouble
		switch {
		case errors.As(err, &trouble) && trouble.during && trouble.Reason != report.HostLacks && trouble.Reason != report.AdapterError:
			x.Verdict, x.Seen = report.Failed, []string{"the attack has ended the adapter: " + trouble.Text}
		case errors.As(err, &trouble):
			x.Verdict, x.Reason, x.Seen = report.Inconclusive, trouble.Reason, []string{trouble.Text}
		case err != nil:
			x.Verdict, x.Reason, x.Seen = report.Inconclusive, report.SuiteError, []string{err.Error()}
		case seen != "":
			x.Verdict, x.Seen = report.Failed, []string{seen}
		}
		out.Results = append(out.Results, x)
	}
	if r.hello != nil {
		out.Name = r.hello.Host + " " + r.hello.Version
	}
	return out, nil
}

// attack returns what is wrong with how a module ended.
func (r *runner) attack(ctx context.Context, a *Attack, o *AttackOptions) (string, error) {
	if err := r.ready(ctx); err != nil {
		return "", err
	}
	if _, err := r.ask(ctx, &Request{Op: OpReset}); err != nil {
		return "", err
	}
	deadline := cmp.Or(min(a.Limits.Deadline, o.deadline()), o.deadline())
	limits, err := plainLimits(a.Limits, deadline)
	if err != nil {
		return "", err
	}
	load := &Request{Op: OpLoad, Creature: subject, Module: a.Module(), Config: json.RawMessage(a.Config), Send: []Edge{{Alias: "loot", Channel: "loot"}}, Limits: &limits}
	wrong := ""
	status, err := r.during(ctx, load)
	switch {
	case err != nil:
		return "", err
	case status != abi.OK.String():
	case a.Refused:
		wrong = "the module is accepted"
	default:
		if wrong, err = r.suffer(ctx, a, o, deadline); err != nil {
			return "", err
		}
	}
	if wrong == "" {
		wrong, err = r.serves(ctx)
	}
	if err == nil { // removing the creature is the last that it could prevent
		_, err = r.ask(ctx, &Request{Op: OpReset})
		markDuring(err)
	}
	return wrong, err
}

// suffer lets a loaded attack handle a message and stops it, and returns what is wrong.
func (r *runner) suffer(ctx context.Context, a *Attack, o *AttackOptions, deadline time.Duration) (string, error) {
	status := abi.OK.String()
	for _, q := range []*Request{{Op: OpDeliver, Creature: subject, Kind: int32(abi.KindMessage)}, {Op: OpStop, Creature: subject}} {
		began := o.Now()
		var err error
		if status, err = r.during(ctx, q); err != nil {
			return "", err
		}
		if took := o.Now().Sub(began); took > deadline+o.deadline()/2 {
			return fmt.Sprintf("%s took %v, and the deadline of a turn is %v", q.Op, took.Round(time.Millisecond), deadline), nil
		}
		if status != abi.OK.String() {
			return "", nil // its instance is discarded, and has nothing to stop
		}
	}
	if a.Fails {
		return "it handles a message and stops, and nothing fails", nil
	}
	return "", nil
}

// markDuring notes that an attack was under way when an adapter was lost.
func markDuring(err error) {
	var trouble *Trouble
	if errors.As(err, &trouble) {
		trouble.during = true
	}
}

// during asks for something that an attack may prevent, and returns the status of the turn.
func (r *runner) during(ctx context.Context, q *Request) (string, error) {
	got, err := r.ask(ctx, q)
	if err != nil {
		markDuring(err)
		return "", err
	}
	if len(got.Turns) != 1 {
		return "", &Trouble{Reason: report.AdapterNonsense, Text: fmt.Sprintf("the adapter reported %d turns instead of one", len(got.Turns))}
	}
	return got.Turns[0].Status, nil
}

// serves checks that the host still runs a good creature.
func (r *runner) serves(ctx context.Context) (string, error) {
	const bystander = "bystander"
	good, err := module("plain")
	if err != nil {
		return "", err
	}
	for _, q := range []*Request{
		{Op: OpLoad, Creature: bystander, Module: good},
		{Op: OpDeliver, Creature: bystander, Kind: int32(abi.KindMessage), Payload: []byte("hello")},
	} {
		status, err := r.during(ctx, q)
		if err != nil {
			return "", err
		}
		if status != abi.OK.String() {
			return fmt.Sprintf("afterwards %s of a good creature ends with %s", q.Op, status), nil
		}
	}
	return "", nil
}

// plainLimits returns limits as an adapter gets them.
func plainLimits(l abi.Limits, deadline time.Duration) (Limits, error) {
	l.Deadline = 0
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	out := Limits{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	out["deadline"] = deadline.Milliseconds()
	return out, nil
}

// AttackChecks returns the rules of each attack by the name of its check, and the names in
// order.
func AttackChecks(attacks []Attack) (rules map[string][]string, names []string) {
	rules = map[string][]string{}
	for i := range attacks {
		rules[attacks[i].Check] = slices.Clone(attacks[i].Rules)
		names = append(names, attacks[i].Check)
	}
	return rules, names
}
