package peers

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	extism "github.com/extism/go-sdk"
)

//go:embed testdata/extism.wasm
var extismEcho []byte

func newExtism(b testing.TB) *extism.Plugin {
	b.Helper()
	ctx := context.Background()
	p, err := extism.NewPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: extismEcho}}}, extism.PluginConfig{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return p
}

func callExtism(ctx context.Context, b testing.TB, p *extism.Plugin, payload []byte) []byte {
	_, reply, err := p.CallWithContext(ctx, "echo", payload)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// TestExtismAnswers checks that the measured work happens.
func TestExtismAnswers(t *testing.T) {
	p := newExtism(t)
	for i := range 20 {
		payload := bytes.Repeat([]byte{byte(i)}, i*101)
		if reply := callExtism(t.Context(), t, p, payload); !bytes.Equal(reply, payload) {
			t.Fatalf("a payload of %d bytes came back as %d", len(payload), len(reply))
		}
	}
}

func BenchmarkExtism(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, size := range []int{100, 64 << 10} {
		payload := bytes.Repeat([]byte{1}, size)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			p := newExtism(b)
			b.ReportAllocs()
			for b.Loop() {
				callExtism(ctx, b, p, payload)
			}
		})
	}
	payload := make([]byte, 100)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			plugins := make([]*extism.Plugin, callers)
			for i := range plugins {
				plugins[i] = newExtism(b)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for _, p := range plugins {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						callExtism(ctx, b, p, payload)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		})
	}
}
