// Package modules provides compiled modules that several creatures share, and a placeholder
// for missing modules.
//
// A shared module is open until its first owner and all references have closed
// it; the last one closes the module. Closing a reference again has no effect.
package modules

import (
	"context"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
)

// Shared is a module shared by several creatures. Its maker holds the first
// reference.
type Shared struct {
	abi.Module
	others atomic.Int64 // references besides the first
}

// Retain makes another reference.
func (m *Shared) Retain() abi.Module {
	m.others.Add(1)
	return &reference{Shared: m}
}

// Close implements [abi.Module].
func (m *Shared) Close(ctx context.Context) error {
	if m.others.Add(-1) >= 0 {
		return nil
	}
	return m.Module.Close(ctx)
}

// reference is one creature's reference.
type reference struct {
	*Shared
	closed atomic.Bool
}

// Close implements [abi.Module]. Calling it twice is harmless.
func (r *reference) Close(ctx context.Context) error {
	if !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	return r.Shared.Close(ctx)
}

// Absent is a missing module; only its hash is known. It cannot be
// instantiated.
type Absent struct{ SHA256 string }

// Info implements [abi.Module].
func (m Absent) Info() *abi.ModuleInfo { return &abi.ModuleInfo{SHA256: m.SHA256} }

// Instantiate implements [abi.Module].
func (m Absent) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return nil, &abi.Error{Code: abi.Unavailable, Message: "the module of this creature is not loaded", Remedy: "make the module available and restore the session again"}
}

// Close implements [abi.Module].
func (m Absent) Close(context.Context) error { return nil }
