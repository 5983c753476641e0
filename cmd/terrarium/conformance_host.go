package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hostile"
	"github.com/seed47132306/terrarium/conformance/hosts"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/host"
)

// hostFlags holds the flags of the suite for hosts.
type hostFlags struct {
	adapter string
	timeout time.Duration
	hostile bool
}

// attacks returns the gallery of hostile modules. Modules that use group tools need a graph,
// which an adapter does not have.
func attacks() (out []hosts.Attack) {
	for _, m := range hostile.Modules() {
		if m.Privileged || m.Config != "" {
			continue
		}
		for i := range m.Ends {
			end := &m.Ends[i]
			a := hosts.Attack{Check: "hostile/" + m.Name, About: m.Attacks, Module: m.Build, Limits: end.Limits, Rules: []string{"ABI-L4"}}
			if end.By != "" {
				a.Check += "-" + end.By
			}
			a.Fails = end.Code != abi.OK
			if end.In == hostile.InCompile || end.In == hostile.InInstantiate {
				a.Refused, a.Rules = true, []string{"ABI-M4"}
			}
			out = append(out, a)
		}
	}
	return out
}

func (f *suiteFlags) host(ctx context.Context, s streams, h *hostFlags) error {
	cases, err := hosts.Cases()
	if err != nil {
		return failWith(exitFailed, err)
	}
	rules := map[string][]string{}
	var names []string
	for _, c := range cases {
		rules[c.Check] = c.Proves
		names = append(names, c.Check)
	}
	var hostiles []hosts.Attack
	if h.hostile {
		hostiles = attacks()
		rules, names = hosts.AttackChecks(hostiles)
	}
	if f.list {
		return f.show(s, names, rules)
	}
	b, err := f.prepare("abi-1", rules)
	if err != nil {
		return err
	}
	start := func(ctx context.Context) (hosts.Adapter, error) {
		return hosts.NewOwn(ctx, host.Options{Compiler: compiler(), Translations: translations()})
	}
	repeat := "terrarium conformance host"
	if h.hostile {
		repeat += " --hostile"
	}
	if h.adapter != "" {
		command := strings.Fields(h.adapter)
		if len(command) == 0 {
			return usage("--adapter: name a command")
		}
		start = func(ctx context.Context) (hosts.Adapter, error) {
			return hosts.Start(ctx, command, hosts.ProcessOptions{Timeout: h.timeout, Errors: s.err})
		}
		repeat += " --adapter " + shellWord(h.adapter)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	var r *report.Report
	if h.hostile {
		r, err = hosts.RunAttacks(ctx, start, slices.DeleteFunc(hostiles, func(a hosts.Attack) bool { return !f.selected(a.Check) }), hosts.AttackOptions{Timeout: h.timeout})
	} else {
		r, err = hosts.Run(ctx, start, slices.DeleteFunc(cases, func(c *hosts.Case) bool { return !f.selected(c.Check) }))
	}
	if err != nil {
		return interrupted(ctx)
	}
	for i := range r.Results {
		r.Results[i].Repeat = repeat + " --check " + shellWord(r.Results[i].Check)
	}
	return f.finish(s, r, b)
}
