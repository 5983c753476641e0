package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// policyFailures are the policies that failed to decide.
type policyFailures struct {
	mu     sync.Mutex
	counts map[string]*policyFailure // by name
}

type policyFailure struct {
	first deploy.Verdict
	count int
}

// heard counts policies that failed to decide.
func (e *core) heard(w *deploy.Words) {
	for _, list := range [][]deploy.Verdict{w.Denials, w.Warnings, w.Audits} {
		for _, v := range list {
			if v.Failed {
				e.failed.add(v)
			}
		}
	}
}

// add counts a failure.
func (f *policyFailures) add(v deploy.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = map[string]*policyFailure{}
	}
	if had := f.counts[v.Policy]; had != nil {
		had.count++
		return
	}
	f.counts[v.Policy] = &policyFailure{v, 1}
}

// PolicyFailures are the policies that have failed to decide since the engine was
// started, by name: scripts that threw or took too long. A denial is no failure, nor is
// what a policy ignores by itself. Each is an [abi.Error] with the ids policy, where, of
// the first failure, and failures, which is their number.
func (e *Engine) PolicyFailures() []error {
	e.core.failed.mu.Lock()
	defer e.core.failed.mu.Unlock()
	var list []*policyFailure
	for _, f := range e.core.failed.counts {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *policyFailure) int { return cmp.Compare(a.first.Policy, b.first.Policy) })
	var out []error
	for _, f := range list {
		times := "once"
		if f.count > 1 {
			times = fmt.Sprintf("%d times; the first time", f.count)
		}
		out = append(out, &abi.Error{
			Code: abi.Denied, Op: "judge", Message: fmt.Sprintf("policy %s (%s) has failed %s: %s", f.first.Policy, f.first.Where, times, f.first.Reason),
			Remedy: "correct the script at " + f.first.Where + "; what a failure amounts to is said by on_error",
			IDs:    map[string]string{"policy": f.first.Policy, "where": f.first.Where, "failures": strconv.Itoa(f.count)},
		})
	}
	return out
}
