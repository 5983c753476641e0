package host

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
	"pgregory.net/rapid"
)

// For any layout of data, memory is the same as if its segments had been
// applied one after the other.
func TestJoinedData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const memory = 4000
		var chunks []chunk
		for range rapid.IntRange(0, 30).Draw(t, "segments") {
			bytes := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
			at := rapid.IntRange(0, memory-len(bytes)).Draw(t, "at")
			chunks = append(chunks, chunk{uint64(at), bytes})
		}
		want, got := make([]byte, memory), make([]byte, memory)
		(&static{data: chunks}).apply(want)
		join := joined(chunks)
		(&static{data: join}).apply(got)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d chunks do not have the effect of %d", len(join), len(chunks))
		}
		if len(join) > len(chunks) {
			t.Fatalf("%d chunks have become %d", len(chunks), len(join))
		}
	})
}

// Standard Go has tens of thousands of data segments.
func TestDataOfGoIsJoined(t *testing.T) {
	m, err := wasmbin.Read(buildGoGuest(t), wasmbin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	segments := len(m.Data)
	s := takeStatic(m)
	var held int64
	for _, c := range s.data {
		held += int64(len(c.bytes))
	}
	if len(s.data) > 100 || held > 2*s.bytes {
		t.Errorf("%d segments with %d bytes are %d chunks with %d", segments, s.bytes, len(s.data), held)
	}
	if m.Data != nil || m.DataCount != nil {
		t.Error("the module has data still")
	}
}

// Instructions see an active segment as empty, and a passive one unchanged.
func TestSegmentsThatInstructionsName(t *testing.T) {
	passive := wasmbin.Data{Mode: wasmbin.Passive, Bytes: []byte("passive")}
	active := wasmbin.Data{Offset: wasmbin.ConstExpr{Op: wasmbin.OpI32Const, Lo: 100}, Bytes: []byte("active")}
	build := func(segment uint32, length int64) []byte {
		return withInitializer(t, "echo", func(b *builder) {
			b.data(active, passive)
			b.i32(200, 0, length)
			b.op(wasmbin.OpMemoryInit, segment, 0)
		})
	}
	h := newHost(t, Options{})
	i := instantiate(t, compile(t, h, build(1, 7)), nil)
	if memory := i.call.memory.Bytes; string(memory[100:106]) != "active" || string(memory[200:207]) != "passive" {
		t.Errorf("the memory has %q and %q", memory[100:106], memory[200:207])
	}
	instantiate(t, compile(t, h, build(0, 0)), nil)
	_, err := compile(t, h, build(0, 1)).Instantiate(t.Context(), nil, &fakeTurn{})
	if abi.CodeOf(err) != abi.Trapped || !strings.Contains(err.Error(), "out of bounds memory access") {
		t.Errorf("reading an active segment: %v", err)
	}
}
