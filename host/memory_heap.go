//go:build !linux || !(amd64 || arm64)

package host

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

// memoryImage is the contents that memories begin with.
type memoryImage struct{ bytes []byte }

// newMemoryImage keeps a copy of memory.
func newMemoryImage(_ *memoryPool, memory []byte) (*memoryImage, error) {
	return &memoryImage{bytes: append([]byte(nil), memory...)}, nil
}

// size is the length of the image in bytes.
func (m *memoryImage) size() uint64 { return uint64(len(m.bytes)) }

func (m *memoryImage) copyTo(memory []byte) bool {
	copy(memory, m.bytes)
	return true
}

func (m *memoryImage) close() {}
