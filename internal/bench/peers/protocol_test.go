package peers

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

//go:embed testdata/protocol.wasm
var protocolEcho []byte

// protocol speaks the waPC protocol (https://wapc.io) with a guest, directly on wazero. The host
// calls __guest_call with the lengths of an operation and a payload. The guest asks for both, and
// gives the host a response, which the host copies. It does nothing else, so it shows the least that
// a host costs which offers this protocol.
type protocol struct {
	runtime  wazero.Runtime
	call     api.Function
	memory   api.Memory
	stack    [2]uint64
	payload  []byte
	response []byte
}

const operation = "echo"

var errRefused = errors.New("the guest refuses the call")

func newProtocol(b testing.TB) *protocol {
	b.Helper()
	ctx := context.Background()
	p := &protocol{runtime: wazero.NewRuntime(ctx)}
	b.Cleanup(func() {
		if err := p.runtime.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	two := []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}
	_, err := p.runtime.NewHostModuleBuilder("wapc").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(p.request), two, nil).Export("__guest_request").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(p.respond), two, nil).Export("__guest_response").
		Instantiate(ctx)
	if err != nil {
		b.Fatal(err)
	}
	guest, err := p.runtime.Instantiate(ctx, protocolEcho)
	if err != nil {
		b.Fatal(err)
	}
	p.call, p.memory = guest.ExportedFunction("__guest_call"), guest.Memory()
	return p
}

func (p *protocol) request(_ context.Context, _ api.Module, stack []uint64) {
	p.memory.WriteString(uint32(stack[0]), operation)
	p.memory.Write(uint32(stack[1]), p.payload)
}

func (p *protocol) respond(_ context.Context, _ api.Module, stack []uint64) {
	view, _ := p.memory.Read(uint32(stack[0]), uint32(stack[1]))
	p.response = append([]byte(nil), view...)
}

func (p *protocol) invoke(ctx context.Context, b testing.TB, payload []byte) []byte {
	p.payload, p.stack = payload, [2]uint64{uint64(len(operation)), uint64(len(payload))}
	err := p.call.CallWithStack(ctx, p.stack[:])
	if err == nil && p.stack[0] != 1 {
		err = errRefused
	}
	if err != nil {
		b.Fatal(err)
	}
	return p.response
}

// TestProtocolAnswers checks that the measured work happens.
func TestProtocolAnswers(t *testing.T) {
	p := newProtocol(t)
	for i := range 20 {
		payload := bytes.Repeat([]byte{byte(i)}, i*101)
		if reply := p.invoke(t.Context(), t, payload); !bytes.Equal(reply, payload) {
			t.Fatalf("a payload of %d bytes came back as %d", len(payload), len(reply))
		}
	}
}

// TestGuestsAreCurrent proves that the prebuilt guests match their sources.
func TestGuestsAreCurrent(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed; make toolchains installs it")
	}
	for name, guest := range map[string][]byte{"extism": extismEcho, "protocol": protocolEcho} {
		built := filepath.Join(t.TempDir(), name+".wasm")
		if out, err := exec.Command(tool, "testdata/"+name+".wat", "-o", built).CombinedOutput(); err != nil {
			t.Fatalf("wat2wasm: %v\n%s", err, out)
		}
		want, err := os.ReadFile(built)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(guest, want) {
			t.Errorf("testdata/%s.wasm is not what testdata/%s.wat says: build it again with wat2wasm", name, name)
		}
	}
}

func BenchmarkProtocol(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, size := range []int{100, 64 << 10} {
		payload := bytes.Repeat([]byte{1}, size)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			p := newProtocol(b)
			b.ReportAllocs()
			for b.Loop() {
				p.invoke(ctx, b, payload)
			}
		})
	}
	b.Run("row", func(b *testing.B) {
		payload := make([]byte, 100)
		row := []*protocol{newProtocol(b), newProtocol(b), newProtocol(b)}
		b.ReportAllocs()
		for b.Loop() {
			next := payload
			for _, p := range row {
				next = p.invoke(ctx, b, next)
			}
		}
	})
	payload := make([]byte, 100)
	b.Run("callers=64", func(b *testing.B) {
		guests := make([]*protocol, 64)
		for i := range guests {
			guests[i] = newProtocol(b)
		}
		var left atomic.Int64
		left.Store(int64(b.N))
		b.ReportAllocs()
		b.ResetTimer()
		var all sync.WaitGroup
		for _, p := range guests {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					p.invoke(ctx, b, payload)
				}
			})
		}
		all.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
	})
}
