//go:build !linux || !(amd64 || arm64)

package memory

import (
	"bytes"
	"sync/atomic"
)

// slabs is empty: on this platform linear memories lie in the Go heap.
type slabs struct{}

func (slabs) reserve(uint64, *Image) (region, bool) { return region{}, false }

func (slabs) release(region, uint64) {}

func (slabs) close() {}

// region is a reserved range of addresses; this platform has none.
type region struct{ base []byte }

func (region) Mapped() bool { return false }

func (region) adopt(*Image) bool { return false }

// Image is the initial content of memories. All methods may be called from any
// goroutine.
type Image struct {
	length uint64
	bytes  atomic.Pointer[[]byte] // nil once closed
}

// NewImage keeps a copy of memory.
func NewImage(_ *Pool, memory []byte) (*Image, error) {
	m := &Image{length: uint64(len(memory))}
	kept := bytes.Clone(memory)
	m.bytes.Store(&kept)
	return m, nil
}

// Size returns the length of the image in bytes.
func (m *Image) Size() uint64 { return m.length }

func (m *Image) copyTo(memory []byte) bool {
	kept := m.bytes.Load()
	if kept == nil {
		return false
	}
	copy(memory, *kept)
	return true
}

// Closed reports whether the image is closed.
func (m *Image) Closed() bool { return m.bytes.Load() == nil }

func (m *Image) Close() { m.bytes.Store(nil) }
