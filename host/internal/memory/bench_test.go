package memory

import (
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// BenchmarkLinearMemory makes a memory of two pages, touches one byte of each
// page, and releases the memory: from the Go heap, from the pool, and with an
// image of two megabytes that is mapped or, on the heap, copied.
func BenchmarkLinearMemory(b *testing.B) {
	pool := NewPool()
	defer pool.Close()
	image, err := NewImage(pool, make([]byte, 2<<20))
	if err != nil {
		b.Fatal(err)
	}
	defer image.Close()
	for _, c := range []struct {
		name  string
		pool  *Pool
		image *Image
	}{{"heap", nil, nil}, {"pool", pool, nil}, {"heap with image", nil, image}, {"pool with image", pool, image}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := Linear{Limit: uint64(abi.DefaultLimits.Memory), Pool: c.pool, Image: c.image}
				bytes := m.Reallocate(2 * abi.PageBytes)
				bytes[0], bytes[abi.PageBytes] = 1, 1
				m.Release()
			}
		})
	}
}

// BenchmarkMemoryGrowth grows page by page to 4 MiB and touches each page.
func BenchmarkMemoryGrowth(b *testing.B) {
	pool := NewPool()
	defer pool.Close()
	for _, c := range []struct {
		name string
		pool *Pool
	}{{"heap", nil}, {"pool", pool}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := Linear{Limit: uint64(abi.DefaultLimits.Memory), Pool: c.pool}
				for size := uint64(abi.PageBytes); size <= 4<<20; size += abi.PageBytes {
					m.Reallocate(size)[size-1] = 1
				}
				m.Release()
			}
		})
	}
}
