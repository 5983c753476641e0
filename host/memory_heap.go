//go:build !linux || !(amd64 || arm64)

package host

import (
	"bytes"
	"sync/atomic"
)

// slabs would reserve addresses. On this platform linear memories lie in the Go
// heap.
type slabs struct{}

func (slabs) reserve(uint64, *memoryImage) (region, bool) { return region{}, false }

func (slabs) release(region, uint64) {}

func (slabs) close() {}

// region is a reserved range of addresses, of which there are none here.
type region struct{ base []byte }

func (region) mapped() bool { return false }

func (region) adopt(*memoryImage) bool { return false }

// memoryImage is the contents that memories begin with. All methods may be called
// from any goroutine.
type memoryImage struct {
	length uint64
	bytes  atomic.Pointer[[]byte] // nil when it is closed
}

// newMemoryImage keeps a copy of memory.
func newMemoryImage(_ *memoryPool, memory []byte) (*memoryImage, error) {
	m := &memoryImage{length: uint64(len(memory))}
	kept := bytes.Clone(memory)
	m.bytes.Store(&kept)
	return m, nil
}

// size is the length of the image in bytes.
func (m *memoryImage) size() uint64 { return m.length }

func (m *memoryImage) copyTo(memory []byte) bool {
	kept := m.bytes.Load()
	if kept == nil {
		return false
	}
	copy(memory, *kept)
	return true
}

func (m *memoryImage) close() { m.bytes.Store(nil) }
