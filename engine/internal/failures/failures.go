// Package failures counts policies that failed to decide.
package failures

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

// Policies are those that failed to decide.
type Policies struct {
	mu     sync.Mutex
	counts map[string]*failure // by name
}

type failure struct {
	first deploy.Verdict
	count int
}

// Heard counts the failures among the verdicts of policies.
func (f *Policies) Heard(w *deploy.Words) {
	for _, list := range [][]deploy.Verdict{w.Denials, w.Warnings, w.Audits} {
		for _, v := range list {
			if v.Failed {
				f.add(v)
			}
		}
	}
}

// add counts a failure.
func (f *Policies) add(v deploy.Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = map[string]*failure{}
	}
	if had := f.counts[v.Policy]; had != nil {
		had.count++
		return
	}
	f.counts[v.Policy] = &failure{v, 1}
}

// List are the failures by policy, as errors.
func (f *Policies) List() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*failure
	for _, had := range f.counts {
		list = append(list, had)
	}
	slices.SortFunc(list, func(a, b *failure) int { return cmp.Compare(a.first.Policy, b.first.Policy) })
	var out []error
	for _, f := range list {
		times := "once"
		if f.count > 1 {
			times = fmt.Sprintf("%d times; the first time", f.count)
		}
		out = append(out, &abi.Error{
			Code: abi.Denied, Message: fmt.Sprintf("policy %s (%s) has failed %s: %s", f.first.Policy, f.first.Where, times, strings.TrimPrefix(f.first.Reason, "Error: ")),
			Remedy: "correct the script at " + f.first.Where + "; on_error says what happens when the script fails",
			IDs:    map[string]string{"policy": f.first.Policy, "where": f.first.Where, "failures": strconv.Itoa(f.count)},
		})
	}
	return out
}
