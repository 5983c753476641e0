package engine

import (
	"context"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
)

// sharedModule is a module that several creatures have. The last who gives it up
// closes it; a template is the first to have it.
type sharedModule struct {
	abi.Module
	others atomic.Int64 // beside the first
}

// retain makes another reference.
func (m *sharedModule) retain() abi.Module {
	m.others.Add(1)
	return &moduleReference{sharedModule: m}
}

// Close implements [abi.Module].
func (m *sharedModule) Close(ctx context.Context) error {
	if m.others.Add(-1) >= 0 {
		return nil
	}
	return m.Module.Close(ctx)
}

// moduleReference is one creature's reference.
type moduleReference struct {
	*sharedModule
	closed atomic.Bool
}

// Close implements [abi.Module]. Calling it twice is harmless.
func (r *moduleReference) Close(ctx context.Context) error {
	if !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	return r.sharedModule.Close(ctx)
}
