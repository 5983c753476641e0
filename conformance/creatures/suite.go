// Package creatures is the conformance suite for creatures. It needs nothing but the
// module: deliveries and configurations are drawn at random, from a fixed seed, in the
// shape of the module's manifest. Cases of the author's own can be added; see [ParseCases].
package creatures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/stage"
	"github.com/seed47132306/terrarium/host"
)

// Subject is a module to test.
type Subject struct {
	Name string // for the report
	Wasm []byte
	// Config is a configuration with which the creature starts; empty: one is made from
	// the manifest.
	Config string
	Cases  []*Case
}

// check is a check of a creature.
type check struct {
	name, about string
	rules       []string
	run         func(ctx context.Context, b *bench) ([]string, error)
}

// checks are all checks but the cases, in order. The first two come first: without them
// the others cannot be run.
var checks = []check{
	{
		"creature/contract", "The module has the form, the imports, the exports and the manifest that the contract demands.",
		[]string{"ABI-M1", "ABI-M3", "ABI-E1", "ABI-E2", "ABI-I1", "ABI-I3", "ABI-I4", "ABI-I5", "ABI-N1", "ABI-N2", "ABI-N4"}, contract,
	},
	{
		"creature/starts", "The creature starts, or refuses its configuration and says why.",
		[]string{"ABI-P5"}, starts,
	},
	{
		"creature/unknown-kinds", "The creature returns 0 or more for kinds of deliveries that it does not know.",
		[]string{"ABI-T5", "ABI-V2"}, unknownKinds,
	},
	{
		"creature/warm-is-fresh", "The same deliveries have the same effects with one instance and with a fresh one for every turn.",
		[]string{"ABI-P7", "ABI-P6"}, warmIsFresh,
	},
	{
		"creature/any-bytes", "Payloads and headers that are empty or not UTF-8 do not make the creature trap.",
		[]string{"ABI-R6", "ABI-R7"}, anyBytes,
	},
	{
		"creature/still-clock", "The creature does not wait for a clock, which stands still during a turn.",
		[]string{"ABI-F15", "ABI-T7"}, stillClock,
	},
	{
		"creature/other-limits", "With larger limits the effects are the same; with small ones every turn ends.",
		[]string{"ABI-L6"}, otherLimits,
	},
	{
		"creature/bad-configuration", "With a configuration that does not fit, the creature does not trap; if it refuses, it says why.",
		[]string{"ABI-P5", "ABI-C3"}, badConfiguration,
	},
	{
		"creature/start-reads-only", "The creature does not need effects before its first delivery.",
		[]string{"ABI-P3"}, startReadsOnly,
	},
}

// Checks returns the names of the checks and the rules that each proves.
func Checks() map[string][]string {
	out := map[string][]string{}
	for _, c := range checks {
		out[c.name] = c.rules
	}
	return out
}

// CasesCheck is the name of the checks that an author's own cases make, before a slash and
// the name of the case.
const CasesCheck = "case"

// Run runs the checks for whose names selected returns true, and the cases. The error is
// only about ctx.
func Run(ctx context.Context, h *host.Host, s *Subject, selected func(check string) bool) ([]report.Result, error) {
	b := &bench{host: h, subject: s}
	defer b.close(context.WithoutCancel(ctx))
	var out []report.Result
	broken := ""
	for i := range checks {
		c := &checks[i]
		essential := i < 2
		if !essential && !selected(c.name) {
			continue
		}
		r := report.Result{Check: c.name, Subject: s.Name, About: c.about, Rules: c.rules}
		if broken != "" {
			r.Verdict, r.Reason, r.Seen = report.Inconclusive, report.Unreached, []string{broken + " did not pass"}
		} else {
			judge(&r, func() ([]string, error) { return c.run(ctx, b) })
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if essential && r.Verdict != report.Passed && broken == "" {
			broken = c.name
		}
		if selected(c.name) {
			out = append(out, r)
		}
	}
	for _, c := range s.Cases {
		name := CasesCheck + "/" + c.Name
		if !selected(name) {
			continue
		}
		r := report.Result{Check: name, Subject: s.Name, About: fmt.Sprintf("%s:%d has the expected effects, warm and fresh.", c.File, c.Line), Rules: []string{"ABI-P7"}}
		if b.module == nil {
			r.Verdict, r.Reason, r.Seen = report.Inconclusive, report.Unreached, []string{broken + " did not pass"}
		} else {
			judge(&r, func() ([]string, error) { return c.run(ctx, b) })
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, r)
	}
	return out, nil
}

// undecided is why a check has no outcome.
type undecided struct {
	reason report.Reason
	text   string
}

func (u *undecided) Error() string { return u.text }

func judge(r *report.Result, run func() ([]string, error)) {
	seen, err := run()
	var u *undecided
	switch {
	case errors.As(err, &u):
		r.Verdict, r.Reason, r.Seen = report.Inconclusive, u.reason, []string{u.text}
	case err != nil:
		r.Verdict, r.Reason, r.Seen = report.Inconclusive, report.SuiteError, []string{err.Error()}
	case len(seen) > 0:
		r.Verdict, r.Seen = report.Failed, seen
	default:
		r.Verdict = report.Passed
	}
}

// contract proves the form of the module without running it, and compiles it.
func contract(ctx context.Context, b *bench) ([]string, error) {
	x, err := b.host.Examine(ctx, b.subject.Wasm)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, p := range x.Problems {
		wrong = append(wrong, p.Error())
	}
	if len(wrong) > 0 {
		return wrong, nil
	}
	if b.module, err = b.host.Compile(ctx, b.subject.Wasm); err != nil {
		return []string{err.Error()}, nil
	}
	b.draw(b.module.Info())
	return nil, nil
}

// starts looks for a configuration with which the creature starts.
func starts(ctx context.Context, b *bench) ([]string, error) {
	var refusals []string
	for _, config := range b.configs() {
		c, err := b.creature(config, nil)
		if err != nil {
			return nil, err
		}
		_, err = c.Start(ctx)
		c.Close(ctx)
		if err == nil {
			b.config, b.started = config, true
			return nil, ctx.Err()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if why := unfit(err); why != "" {
			return []string{fmt.Sprintf("with the configuration %s: %s", clip(config), why)}, nil
		}
		refusals = append(refusals, err.Error())
	}
	return nil, &undecided{report.NeedsConfiguration, "it refuses every configuration that was tried; give one with --config: " + refusals[len(refusals)-1]}
}

// unfit returns why a refusal to start is a breach of the contract, or "".
func unfit(err error) string {
	var known *abi.Error
	if !errors.As(err, &known) {
		return err.Error()
	}
	switch {
	case slices.Contains([]abi.Code{abi.Trapped, abi.OutOfFuel, abi.Deadline, abi.LimitExceeded}, known.Code):
		return err.Error()
	case !strings.Contains(known.Message, ": "):
		return "creature_init fails without having logged why: " + known.Message
	}
	return ""
}

func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// strangeKinds are numbers of kinds that no version has.
var strangeKinds = []abi.Kind{0x7fffffff, 99, abi.Kind(len(abi.Kinds) + 1), -1, 0}

func unknownKinds(ctx context.Context, b *bench) (wrong []string, err error) {
	for _, kind := range strangeKinds {
		if kind == 0 {
			continue // deliveries without a number are messages
		}
		for _, payload := range []string{"", "x"} {
			rec, err := b.deliverAlone(ctx, &stage.Delivery{Number: kind, Payload: []byte(payload)})
			if err != nil {
				return nil, err
			}
			if rec.Error != nil {
				wrong = append(wrong, fmt.Sprintf("a delivery of the kind %d with %d bytes ended with %s: %s", kind, len(payload), rec.Status, clip(rec.Error.Message)))
			}
		}
	}
	return wrong, nil
}

// Names returns the names of the checks, in order.
func Names() (out []string) {
	for i := range checks {
		out = append(out, checks[i].name)
	}
	return out
}
