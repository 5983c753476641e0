package memory

import (
	"math/bits"
	"testing"
)

// Three memories of 1.5 GiB are more than 32 bits can address: one of them at least is
// refused, without harm to the process, and what is released can be had again. No page is
// touched.
func TestTooFewAddresses(t *testing.T) {
	const size = 1536 << 20
	pool := NewPool()
	defer pool.Close()
	for round := range 3 {
		refused := 0
		var all []*Linear
		for range 3 {
			m := newMemory(t, Linear{Limit: 1 << 32, Pool: pool}, 1<<16, 1<<32)
			m.Bytes[7] = 7
			if b := m.Reallocate(size); b == nil {
				refused++
				b = m.Bytes
				if !m.Refused || !m.NoRoom || len(b) != 1<<16 {
					t.Errorf("a refused memory has %d bytes, refused %v, no room %v", len(b), m.Refused, m.NoRoom)
				}
			} else if len(b) != size || b[size-1] != 0 {
				t.Errorf("a memory has %d bytes", len(b))
			}
			if m.Bytes[7] != 7 {
				t.Error("the content is lost")
			}
			all = append(all, m)
		}
		if few := bits.UintSize == 32; few != (refused > 0) || refused == len(all) {
			t.Errorf("round %d: %d of %d memories are refused", round, refused, len(all))
		}
		for _, m := range all {
			m.Release()
		}
	}
	if n, inHeap := pool.bytes(), pool.InHeap.Load(); n != 0 || inHeap != 0 {
		t.Errorf("after the release %d bytes are counted, %d in the heap", n, inHeap)
	}
}
