// Package samehost is for tests: it runs every guest in several engines at once, and
// compares all that can be observed of it. The first engine acts on the turn. The others get
// the answers that the first one got, and have to ask the same in the same order.
package samehost

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// An Engine is a host with the name that differences are reported under.
type Engine struct {
	Name string
	Host abi.Host
}

// Host is a host of several engines. Differences are reported by the function Report, which
// any goroutine may call.
//
// The place at which a guest runs out of fuel depends on its slices, which depend on the time.
// Whether it runs out, and how much it has used, does not. If Strict is set, the place is
// compared too: it is the same if the limit is smaller than the first slice.
type Host struct {
	Engines []Engine
	Strict  bool
	Report  func(difference string)
}

var _ abi.Host = (*Host)(nil)

// Compile implements [abi.Host].
func (h *Host) Compile(ctx context.Context, wasm []byte) (abi.Module, error) {
	m := &module{host: h}
	var first error
	for n, e := range h.Engines {
		compiled, err := e.Host.Compile(ctx, wasm)
		if n == 0 {
			first = err
		}
		h.same(n, "compile", first, err)
		if err == nil {
			m.engines = append(m.engines, compiled)
		}
	}
	if len(m.engines) < len(h.Engines) {
		return nil, incomplete(first, "compile", m.Close(ctx))
	}
	return m, nil
}

// Close implements [abi.Host].
func (h *Host) Close(ctx context.Context) error {
	return each(h.Engines, func(e Engine) error { return e.Host.Close(ctx) })
}

// each calls all and returns the first error.
func each[T any](all []T, do func(T) error) (first error) {
	for _, one := range all {
		if err := do(one); first == nil {
			first = err
		}
	}
	return first
}

// differ reports a difference of the nth engine.
func (h *Host) differ(n int, format string, args ...any) {
	h.Report(fmt.Sprintf("%s and %s differ: ", h.Engines[0].Name, h.Engines[n].Name) + fmt.Sprintf(format, args...))
}

// same compares the error of the first engine with that of the nth.
func (h *Host) same(n int, what string, first, err error) {
	if want, got := h.outcome(first), h.outcome(err); want != got {
		h.differ(n, "%s ends with\n%s\nand\n%s", what, want, got)
	}
}

// outcome is what has to be the same of an error.
func (h *Host) outcome(err error) string {
	if err == nil {
		return "success"
	}
	text := err.Error()
	if h.untimely(err) {
		text, _, _ = strings.Cut(text, " (in ")
	}
	return text
}

// untimely reports whether a guest was ended at a place that depends on the time.
func (h *Host) untimely(err error) bool {
	code := abi.CodeOf(err)
	return code == abi.OutOfFuel && !h.Strict || code == abi.Deadline
}

type module struct {
	host    *Host
	engines []abi.Module
}

// Info implements [abi.Module].
func (m *module) Info() *abi.ModuleInfo { return m.engines[0].Info() }

// Close implements [abi.Module].
func (m *module) Close(ctx context.Context) error {
	return each(m.engines, func(e abi.Module) error { return e.Close(ctx) })
}

// Instantiate implements [abi.Module].
func (m *module) Instantiate(ctx context.Context, limits *abi.Limits, init abi.Turn) (abi.Instance, error) {
	i := &instance{host: m.host}
	err := i.run("instantiate", init, func(n int, t abi.Turn) error {
		made, err := m.engines[n].Instantiate(ctx, limits, t)
		if err == nil {
			i.engines = append(i.engines, made)
		}
		return err
	})
	if err != nil || len(i.engines) < len(m.engines) {
		return nil, incomplete(err, "instantiate", i.Close(ctx))
	}
	return i, nil
}

// incomplete is the error of a call after which not all engines can continue: the error of the
// first engine or, if it has none, one that says that the others differ from it.
func incomplete(first error, what string, closing error) error {
	if first != nil {
		return first
	}
	return errors.Join(&abi.Error{Code: abi.Internal, Message: "only some engines can " + what, Remedy: "see the reported difference"}, closing)
}

type instance struct {
	host    *Host
	engines []abi.Instance
}

// run makes a call in all engines and compares the calls of the turn, the errors, the fuel
// and the memory.
func (i *instance) run(what string, t abi.Turn, call func(n int, t abi.Turn) error) error {
	log := &turn{real: t}
	first := call(0, log)
	for n := 1; n < len(i.host.Engines); n++ {
		r := &turn{log: log.log}
		err := call(n, r)
		i.host.same(n, what, first, err)
		if r.at < len(r.log) {
			r.differ("after %d calls, only one calls %s", r.at, r.log[r.at].call)
		}
		if r.difference != "" && !i.host.untimely(first) {
			i.host.differ(n, "%s: %s", what, r.difference)
		}
		if len(i.engines) <= n {
			continue
		}
		if a, b := i.engines[0].FuelUsed(), i.engines[n].FuelUsed(); a != b && abi.CodeOf(first) != abi.Deadline {
			i.host.differ(n, "%s uses the fuel %d and %d", what, a, b)
		}
		if a, b := i.engines[0].MemoryBytes(), i.engines[n].MemoryBytes(); a != b && first == nil {
			i.host.differ(n, "%s leaves a memory of %d and %d bytes", what, a, b)
		}
	}
	return first
}

// Handle implements [abi.Instance].
func (i *instance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	return i.run("handle", t, func(n int, t abi.Turn) error { return i.engines[n].Handle(ctx, t, kind, size) })
}

// Stop implements [abi.Instance].
func (i *instance) Stop(ctx context.Context, t abi.Turn) error {
	return i.run("stop", t, func(n int, t abi.Turn) error { return i.engines[n].Stop(ctx, t) })
}

// MemoryBytes implements [abi.Instance].
func (i *instance) MemoryBytes() int64 { return i.engines[0].MemoryBytes() }

// FuelUsed implements [abi.Instance].
func (i *instance) FuelUsed() int64 { return i.engines[0].FuelUsed() }

// Close implements [abi.Instance].
func (i *instance) Close(ctx context.Context) error {
	return each(i.engines, func(e abi.Instance) error { return e.Close(ctx) })
}
