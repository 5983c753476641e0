// Package report describes the outcome of a conformance suite: a verdict for each check and
// for each requirement, compared with the failures that the tested project expects, and
// written in several formats.
package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/conformance/requirements"
)

// Verdict is the outcome of a check or of a requirement. It is stable.
type Verdict string

// The verdicts.
const (
	Passed        Verdict = "passed"
	Failed        Verdict = "failed"
	Inconclusive  Verdict = "inconclusive" // there was no outcome; see [Reason]
	NotApplicable Verdict = "not_applicable"
	NotScored     Verdict = "not_scored" // of a requirement that no check can prove
)

// Text returns the verdict for readers, with spaces.
func (v Verdict) Text() string { return strings.ReplaceAll(string(v), "_", " ") }

// Reason is why a check has no outcome. It is stable.
type Reason string

// The reasons.
const (
	AdapterLost        Reason = "adapter_lost"        // it ended, or did not start
	AdapterSilent      Reason = "adapter_silent"      // it did not answer in time
	AdapterNonsense    Reason = "adapter_nonsense"    // its answer is not one
	AdapterFlood       Reason = "adapter_flood"       // its answer is too long
	AdapterError       Reason = "adapter_error"       // it says that it could not do what was asked
	HostLacks          Reason = "host_lacks"          // the host cannot do what was asked
	LacksFeature       Reason = "lacks_feature"       // not applicable: an optional feature is missing
	NeedsConfiguration Reason = "needs_configuration" // the creature starts with none that the suite can make
	Unreached          Reason = "unreached"           // an earlier check has failed that this one needs
	StoreSilent        Reason = "store_silent"        // the store did not answer in time
	BoundReached       Reason = "bound_reached"       // there is more than the suite makes, such as timers of a case
	SuiteError         Reason = "suite_error"         // the suite itself failed
)

// Result is the outcome of a check.
type Result struct {
	Check   string   `json:"check"`
	Subject string   `json:"subject,omitempty"` // the module, where there are several
	About   string   `json:"about"`
	Rules   []string `json:"rules"`
	Verdict Verdict  `json:"verdict"`
	Reason  Reason   `json:"reason,omitempty"`
	Seen    []string `json:"seen,omitempty"`   // what was seen instead
	Repeat  string   `json:"repeat,omitempty"` // the command that repeats just this check
	// Expected says why the tested project expects the failure, if it does.
	Expected string `json:"expected,omitempty"`
}

// Outcome is the outcome of a requirement.
type Outcome struct {
	Rule    string   `json:"rule"`
	Words   string   `json:"words"`
	Verdict Verdict  `json:"verdict"`
	Checks  []string `json:"checks,omitempty"`
	Why     string   `json:"why,omitempty"` // it is not scored
}

// Report is the outcome of a suite.
type Report struct {
	Set          string    `json:"set"`      // of requirements, such as "terrarium ABI 1"
	Revision     string    `json:"revision"` // of the set, such as "2026-11"
	Subject      string    `json:"subject"`  // host, creature or store
	Name         string    `json:"name,omitempty"`
	Results      []Result  `json:"results"`
	Requirements []Outcome `json:"requirements"`
	// Stale lists the expected failures that did not occur.
	Stale    []string `json:"stale,omitempty"`
	Conforms bool     `json:"conforms"`
}

// Settle compares the results with the requirements and the expected failures, and decides
// whether the subject conforms. tried reports whether the run would have made a check if
// the subject had it. An expected failure that did not occur is stale only if its check was
// tried.
func (r *Report) Settle(set *requirements.Set, b *Baseline, tried func(check string) bool) {
	r.Set, r.Revision, r.Conforms = set.Name, set.Revision, true
	met := map[string]bool{}
	for i := range r.Results {
		x := &r.Results[i]
		failed := x.Verdict == Failed || x.Verdict == Inconclusive
		if why, listed := b.reason(x); listed {
			met[b.key(x)] = met[b.key(x)] || failed
			if failed {
				x.Expected = why
			}
		}
		if failed && x.Expected == "" {
			r.Conforms = false
		}
	}
	for _, e := range b.list() {
		ran, known := met[e.key()]
		if known && !ran || !known && tried(e.Check) {
			r.Stale, r.Conforms = append(r.Stale, e.key()), false
		}
	}
	for _, q := range set.Requirements {
		if o, concerned := r.outcome(&q); concerned {
			r.Requirements = append(r.Requirements, o)
		}
	}
}

// worst orders verdicts: that of a requirement is the worst of its checks.
var worst = map[Verdict]int{Failed: 4, Inconclusive: 3, Passed: 2, NotApplicable: 1}

func (r *Report) outcome(q *requirements.Requirement) (Outcome, bool) {
	o := Outcome{Rule: q.Rule, Words: q.Words, Why: q.NotScored, Verdict: NotScored}
	if q.NotScored != "" {
		return o, true
	}
	for i := range r.Results {
		x := &r.Results[i]
		if !slices.Contains(x.Rules, q.Rule) {
			continue
		}
		if !slices.Contains(o.Checks, x.Check) {
			o.Checks = append(o.Checks, x.Check)
		}
		if worst[x.Verdict] > worst[o.Verdict] {
			o.Verdict = x.Verdict
		}
	}
	return o, len(o.Checks) > 0
}

// Count returns how many results have a verdict. Expected failures count as such.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Results {
		if r.Results[i].Verdict == v {
			n++
		}
	}
	return n
}

// Score returns how many requirements are scored, and how many of them passed.
func (r *Report) Score() (passed, scored int) {
	for _, o := range r.Requirements {
		switch o.Verdict {
		case Passed:
			passed, scored = passed+1, scored+1
		case Failed, Inconclusive:
			scored++
		}
	}
	return passed, scored
}

// bad returns the results that are shown in full, unexpected ones first.
func (r *Report) bad() (out []*Result) {
	for i := range r.Results {
		if v := r.Results[i].Verdict; v == Failed || v == Inconclusive {
			out = append(out, &r.Results[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *Result) int {
		return cmp.Compare(min(len(a.Expected), 1), min(len(b.Expected), 1))
	})
	return out
}

// words returns the text of a rule.
func (r *Report) words(rule string) string {
	at := slices.IndexFunc(r.Requirements, func(o Outcome) bool { return o.Rule == rule })
	if at < 0 {
		return ""
	}
	return r.Requirements[at].Words
}
