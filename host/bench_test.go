package host

import (
	"context"
	"runtime"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/seed47132306/terrarium/abi"
)

// quietTurn answers without keeping anything.
type quietTurn struct {
	fakeTurn
	sent int
}

func (q *quietTurn) Source(abi.Source) ([]byte, abi.Code) { return q.payload, abi.OK }
func (q *quietTurn) Send(int32, []byte, []byte) int32     { q.sent++; return 1 }

var payload = []byte("a message of some forty bytes, or so, yes")

// BenchmarkBareCall is the floor: the same guest, the same read and the same
// send, on wazero alone.
func BenchmarkBareCall(b *testing.B) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	i32 := api.ValueTypeI32
	_, err := r.NewHostModuleBuilder(abi.ImportModule).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
		dst, _ := m.Memory().Read(uint32(s[2]), uint32(s[3]))
		s[0] = uint64(copy(dst, payload))
	}), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).Export("read").
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
		m.Memory().Read(uint32(s[1]), uint32(s[2]))
		s[0] = 1
	}), []api.ValueType{i32, i32, i32, i32, i32}, []api.ValueType{i32}).Export("send").
		Instantiate(ctx)
	if err != nil {
		b.Fatal(err)
	}
	m, err := r.Instantiate(ctx, readModule(b, "echo"))
	if err != nil {
		b.Fatal(err)
	}
	handle := m.ExportedFunction(abi.ExportHandle)
	var stack [2]uint64
	b.ReportAllocs()
	for b.Loop() {
		stack[0], stack[1] = uint64(abi.KindMessage), uint64(len(payload))
		if err := handle.CallWithStack(ctx, stack[:]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name string
		opts Options
		ctx  context.Context
	}{
		{"caller that never ends", Options{}, context.Background()},
		{"caller that may end", Options{}, cancellable},
	} {
		b.Run(c.name, func(b *testing.B) {
			i := instantiate(b, compile(b, newHost(b, c.opts), readModule(b, "echo")), nil)
			turn := &quietTurn{fakeTurn: fakeTurn{payload: payload}}
			b.ReportAllocs()
			for b.Loop() {
				if err := i.Handle(c.ctx, turn, abi.KindMessage, len(payload)); err != nil {
					b.Fatal(err)
				}
			}
			if turn.sent == 0 {
				b.Fatal("nothing was sent")
			}
		})
	}
}

// BenchmarkSpawn makes and closes an instance of a module that is compiled.
func BenchmarkSpawn(b *testing.B) {
	for _, c := range []struct {
		name string
		wasm func(testing.TB) []byte
	}{
		{"small", func(t testing.TB) []byte { return readModule(t, "echo") }},
		{"go", buildGoGuest},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := compile(b, newHost(b, Options{}), c.wasm(b))
			turn := &quietTurn{}
			b.ReportAllocs()
			for b.Loop() {
				i, err := m.Instantiate(b.Context(), nil, turn)
				if err != nil {
					b.Fatal(err)
				}
				if err := i.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory tells what a live instance keeps of the Go heap, its linear
// memory included.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name  string
		count int
		wasm  func(testing.TB) []byte
	}{
		{"small", 500, func(t testing.TB) []byte { return readModule(t, "echo") }},
		{"go", 20, buildGoGuest},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := compile(b, newHost(b, Options{}), c.wasm(b))
			heap := func() uint64 {
				runtime.GC()
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				return s.HeapAlloc
			}
			for b.Loop() {
				before := heap()
				instances := make([]abi.Instance, c.count)
				var linear int64
				for n := range instances {
					i, err := m.Instantiate(b.Context(), nil, &fakeTurn{})
					if err != nil {
						b.Fatal(err)
					}
					linear += i.MemoryBytes()
					instances[n] = i
				}
				b.ReportMetric(float64(heap()-before)/float64(c.count), "B/instance")
				b.ReportMetric(float64(linear)/float64(c.count), "linear-B/instance")
				for _, i := range instances {
					if err := i.Close(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
