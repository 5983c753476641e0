package memory

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"pgregory.net/rapid"
)

// newMemory returns a memory for which wazero has requested min bytes.
func newMemory(t testing.TB, m Linear, min, max uint64) *Linear {
	t.Helper()
	if b := m.Allocate(min, max).Reallocate(min); b == nil {
		t.Fatalf("%d bytes are refused", min)
	}
	return &m
}

// Memory in the Go heap keeps its content, is zero beyond, and never allocates
// more than twice the requested size.
func TestHeapMemory(t *testing.T) {
	m := newMemory(t, Linear{Limit: 10_000}, 1000, 9_000)
	if len(m.Bytes) != 1000 || cap(m.Bytes) > 1100 {
		t.Fatalf("1000 bytes are %d of %d", len(m.Bytes), cap(m.Bytes))
	}
	m.Bytes[999] = 1
	for size := uint64(1100); size <= 9000; size += 100 {
		b := m.Reallocate(size)
		if uint64(len(b)) != size || uint64(cap(b)) > min(2*size, 9100) || b[999] != 1 || slices.Max(b[1000:]) != 0 {
			t.Fatalf("%d bytes are %d of %d", size, len(b), cap(b))
		}
	}
	if b := m.Reallocate(9001); b != nil {
		t.Error("the declared maximum is passed")
	}
	if m.Release(); m.Bytes != nil {
		t.Error("memory is kept after its release")
	}
}

func TestMemoryOfNoPages(t *testing.T) {
	m := newMemory(t, Linear{Limit: abi.PageBytes, Pool: NewPool()}, 0, abi.PageBytes)
	defer m.Release()
	if len(m.Bytes) != 0 {
		t.Fatalf("no page has %d bytes", len(m.Bytes))
	}
	if b := m.Reallocate(abi.PageBytes); len(b) != abi.PageBytes || b[abi.PageBytes-1] != 0 {
		t.Errorf("a page has %d bytes", len(b))
	}
}

// wazero frees the memory of every instance when a runtime closes. A guest that
// has not returned by then still needs it.
func TestFreeLeavesMemory(t *testing.T) {
	pool := NewPool()
	m := newMemory(t, Linear{Limit: 1 << 20, Pool: pool}, abi.PageBytes, 1<<20)
	view := m.Bytes
	view[1] = 7
	m.Free()
	pool.Close()
	if view[1] != 7 {
		t.Error("Free took the memory away")
	}
	m.Release()
	m.Release()
	if pool.bytes() != 0 {
		t.Errorf("after the release %d bytes are counted", pool.bytes())
	}
}

// Random memories are made, written, grown and released, against a model of
// plain slices. A new memory is zero or its image, whatever its region was
// used for before.
func TestMemoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := NewPool()
		defer pool.Close()
		images, contents := modelImages(t, pool)
		defer func() {
			for _, i := range images[1:] {
				i.Close()
			}
		}()
		type creature struct {
			memory *Linear
			model  []byte
		}
		var live []creature
		draw := func(what string, low, high int) int { return rapid.IntRange(low, high).Draw(t, what) }
		pick := func() int { return draw("creature", 0, len(live)-1) }
		spawn := func(t *rapid.T) {
			kind := draw("image", 0, len(images)-1)
			limit, pages := draw("limit", 4, 40), draw("pages", 0, 4)
			c := creature{memory: &Linear{Limit: uint64(limit) * abi.PageBytes, Pool: pool, Image: images[kind]}}
			c.memory.Allocate(0, 1<<32).Reallocate(uint64(pages) * abi.PageBytes)
			c.model = make([]byte, max(pages*abi.PageBytes, len(contents[kind])))
			copy(c.model, contents[kind])
			live = append(live, c)
		}
		with := func(f func(t *rapid.T, n int)) func(*rapid.T) {
			return func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("no instance is left")
				}
				f(t, pick())
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"spawn": spawn,
			"write": with(func(t *rapid.T, n int) {
				if c := live[n]; len(c.model) > 0 {
					at := draw("at", 0, len(c.model)-1)
					c.memory.Bytes[at], c.model[at] = byte(at)|1, byte(at)|1
				}
			}),
			"grow": with(func(t *rapid.T, n int) {
				c := &live[n]
				size := len(c.model) + draw("by", 0, 20)*abi.PageBytes
				got := c.memory.Reallocate(uint64(size))
				if uint64(size) > c.memory.Limit {
					if got != nil {
						t.Fatalf("%d bytes are given, the limit is %d", size, c.memory.Limit)
					}
					return
				}
				if len(got) != size || (cap(got) != size && c.memory.Region.Mapped()) {
					t.Fatalf("%d bytes are %d of %d", size, len(got), cap(got))
				}
				c.model = append(c.model, make([]byte, size-len(c.model))...)
			}),
			"release": with(func(t *rapid.T, n int) {
				live[n].memory.Release()
				live = slices.Delete(live, n, n+1)
			}),
			"": func(t *rapid.T) {
				var sum int64
				for n, c := range live {
					if !bytes.Equal(c.memory.Bytes, c.model) {
						t.Fatalf("memory %d differs from its model", n)
					}
					sum += int64(len(c.model))
				}
				if pool.bytes() != sum {
					t.Fatalf("the pool counts %d bytes, the creatures have %d", pool.bytes(), sum)
				}
			},
		})
		for _, c := range live {
			c.memory.Release()
		}
	})
}

// modelImages returns no image and two images, of one page and of three.
func modelImages(t *rapid.T, pool *Pool) (images []*Image, contents [][]byte) {
	images, contents = []*Image{nil}, [][]byte{nil}
	for pages := 1; pages <= 3; pages += 2 {
		content := make([]byte, pages*abi.PageBytes)
		content[0], content[len(content)-1] = 1, byte(pages)
		image, err := NewImage(pool, content)
		if err != nil {
			t.Fatal(err)
		}
		images, contents = append(images, image), append(contents, content)
	}
	return images, contents
}

// An image does not change when its original memory, or another that maps it,
// is written to; and memories that map it outlive its closing.
func TestMemoryImage(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	first := newMemory(t, Linear{Limit: 1 << 20, Pool: pool}, 2*abi.PageBytes, 1<<32)
	copy(first.Bytes[abi.PageBytes:], "initialized")
	image, err := NewImage(pool, first.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	copy(first.Bytes[abi.PageBytes:], "and changed")
	first.Release()
	shown := func(m *Linear) string { return string(m.Bytes[abi.PageBytes:][:11]) }
	for range 3 {
		m := newMemory(t, Linear{Limit: 1 << 20, Pool: pool, Image: image}, abi.PageBytes, 1<<32)
		if len(m.Bytes) != 2*abi.PageBytes || shown(m) != "initialized" {
			t.Fatalf("the memory has %d bytes and shows %q", len(m.Bytes), shown(m))
		}
		copy(m.Bytes[abi.PageBytes:], "overwritten")
		m.Release()
	}
	last := newMemory(t, Linear{Limit: 1 << 20, Pool: pool, Image: image}, abi.PageBytes, 1<<32)
	image.Close()
	image.Close()
	if shown(last) != "initialized" {
		t.Errorf("after the image is closed the memory shows %q", shown(last))
	}
	last.Release()
	if small := (&Linear{Limit: abi.PageBytes, Pool: pool, Image: image}); small.Reallocate(1) != nil {
		t.Error("a memory below the size of its image is provided")
	}
	if late := (&Linear{Limit: 1 << 20, Pool: pool, Image: image}); late.Reallocate(1) != nil {
		t.Error("a closed image is shown")
	}
}

// Memories on many goroutines share a pool and an image, but never a byte.
func TestMemoryConcurrently(t *testing.T) {
	pool := NewPool()
	content := bytes.Repeat([]byte{9}, abi.PageBytes)
	image, err := NewImage(pool, content)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for round := range 50 {
				m := Linear{Limit: abi.PageBytes << (round % 3), Pool: pool}
				if round%2 == 0 {
					m.Image = image
				}
				m.Reallocate(abi.PageBytes)
				if want := map[bool]byte{true: 9}[m.Image != nil]; slices.Min(m.Bytes) != want || slices.Max(m.Bytes) != want {
					t.Errorf("a new memory is not all %d", want)
				}
				for i := range m.Bytes {
					m.Bytes[i] = byte(n + 10)
				}
				if slices.Min(m.Bytes) != byte(n+10) {
					t.Error("another memory wrote here")
				}
				m.Release()
			}
		})
	}
	wg.Wait()
	image.Close()
	pool.Close()
	if pool.bytes() != 0 {
		t.Errorf("%d bytes are left", pool.bytes())
	}
}

// Bytes in the Go heap are counted separately from bytes reserved from the
// system.
func TestMemoryInTheHeapIsCounted(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	tooLarge := newMemory(t, Linear{Limit: 1 << 33, Pool: pool}, 2*abi.PageBytes, 1<<33) // for a region
	if got := pool.InHeap.Load(); got != 2*abi.PageBytes {
		t.Errorf("%d bytes are counted in the heap, want two pages", got)
	}
	reserved := newMemory(t, Linear{Limit: abi.PageBytes, Pool: pool}, abi.PageBytes, abi.PageBytes)
	want := int64(2 * abi.PageBytes)
	if !reserved.Region.Mapped() { // on this platform
		want += abi.PageBytes
	}
	if got := pool.InHeap.Load(); got != want {
		t.Errorf("%d bytes are counted in the heap, want %d", got, want)
	}
	tooLarge.Release()
	reserved.Release()
	if got := pool.InHeap.Load(); got != 0 {
		t.Errorf("after the release %d bytes are counted in the heap", got)
	}
}
