package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// awareHost is nopHost with creatures that read sources in every turn before
// they act like hop.
type awareHost struct{ sources []abi.Source }

func (h awareHost) Compile(context.Context, []byte) (abi.Module, error) {
	return awareModule{sources: h.sources}, nil
}
func (awareHost) Close(context.Context) error { return nil }

type awareModule struct {
	nopModule
	sources []abi.Source
}

func (m awareModule) Instantiate(context.Context, *abi.Limits, abi.Turn) (abi.Instance, error) {
	return &awareInstance{sources: m.sources}, nil
}

type awareInstance struct {
	nopInstance
	sources []abi.Source
}

func (i *awareInstance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, size int) error {
	for _, s := range i.sources {
		if _, code := t.Source(s); code != abi.OK {
			return &abi.Error{Code: code, Message: t.LastError()}
		}
	}
	return i.nopInstance.Handle(ctx, t, kind, size)
}

// BenchmarkRingAware is the ring of BenchmarkRing with creatures that read their
// awareness document in every turn, or do not.
func BenchmarkRingAware(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("nothing/%d", n), func(b *testing.B) { ring(b, awareHost{}, n) })
		b.Run(fmt.Sprintf("revision/%d", n), func(b *testing.B) {
			ring(b, awareHost{[]abi.Source{abi.SourceAwarenessRevision}}, n)
		})
		b.Run(fmt.Sprintf("json/%d", n), func(b *testing.B) {
			ring(b, awareHost{[]abi.Source{abi.SourceAwarenessJSON}}, n)
		})
	}
}
