package host

import (
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/seed47132306/terrarium/abi"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// quietTurn returns success and keeps nothing.
type quietTurn struct {
	fakeTurn
	sent int
}

func (q *quietTurn) Source(abi.Source) ([]byte, abi.Code) { return q.payload, abi.OK }
func (q *quietTurn) Send(int32, []byte, []byte) int32     { q.sent++; return 1 }

var payload = []byte("a message of some forty bytes, or so, yes")

// BenchmarkBareCall measures the least possible cost: the same guest, read and send on
// wazero alone.
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

// BenchmarkSpawn makes and closes an instance of a compiled module.
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

// BenchmarkMemory measures the memory of a live instance: its part of the Go
// heap, and the private pages of its linear memory. It measures after
// creation, after a turn, and after two seconds of rest. Memory shared by all
// instances of a module is not counted, nor is the first instance, which
// exists before.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name  string
		count int
		wasm  func(testing.TB) []byte
	}{
		{"small", 500, func(t testing.TB) []byte { return readModule(t, "echo") }},
		{"c", 500, func(t testing.TB) []byte { return readFile(t, "../plugins/relay/relay.wasm") }},
		{"go", 20, buildGoGuest},
	} {
		wasm := c.wasm(b)
		for _, after := range []string{"made", "one turn", "at rest"} {
			b.Run(c.name+"/"+after, func(b *testing.B) {
				h := newHost(b, Options{})
				m := compile(b, h, wasm)
				instantiate(b, m, nil)
				for b.Loop() {
					before := heapBytes()
					instances := make([]*Instance, c.count)
					for n := range instances {
						instances[n] = instantiated(b, m, after != "made")
					}
					if after == "at rest" {
						h.handles.sweep()
						h.handles.sweep()
					}
					heap := float64(heapBytes()-before) / float64(c.count)
					var own float64
					for _, i := range instances {
						own += float64(ownBytes(b, i.call.memory.Bytes)) / float64(c.count)
						if err := i.Close(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(heap, "heap-B/instance")
					b.ReportMetric(own, "pages-B/instance")
					b.ReportMetric(heap+own, "B/instance")
				}
			})
		}
	}
}

func instantiated(b *testing.B, m abi.Module, turn bool) *Instance {
	i, err := m.Instantiate(b.Context(), nil, &quietTurn{})
	if err == nil && turn {
		err = i.Handle(b.Context(), &quietTurn{fakeTurn: fakeTurn{payload: payload}}, abi.KindMessage, len(payload))
	}
	if err != nil {
		b.Fatal(err)
	}
	return i.(*Instance)
}

// heapBytes returns the bytes of the Go heap in use.
func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// ownBytes returns the bytes of a mapped memory in private pages: those that
// were written to. The system describes every page in 8 bytes; on systems that
// do not, the result is 0.
func ownBytes(t testing.TB, memory []byte) int {
	const entry, present, shared = 8, 1 << 63, 1 << 61
	file, err := os.Open("/proc/self/pagemap")
	if err != nil || len(memory) == 0 {
		return 0
	}
	defer file.Close()
	page := os.Getpagesize()
	pages := make([]byte, entry*(len(memory)/page))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / uintptr(page)
	if _, err := file.ReadAt(pages, entry*int64(at)); err != nil {
		t.Fatal(err)
	}
	own := 0
	for ; len(pages) > 0; pages = pages[entry:] {
		if p := binary.LittleEndian.Uint64(pages); p&present != 0 && p&shared == 0 {
			own += page
		}
	}
	return own
}
