//go:build linux && (amd64 || arm64)

package memory

import (
	"bytes"
	"slices"
	"sync"
	"unsafe"

	"github.com/seed47132306/terrarium/abi"
	"golang.org/x/sys/unix"
)

// Image is the initial content of memories: the result of a module's data
// segments and its initializer, the same for all of its instances. It is a
// sealed file in memory that is mapped copy-on-write, so an instance costs
// only the pages that it writes. All methods may be called from any goroutine.
type Image struct {
	length uint64
	slabs  *slabs // finally takes back idle regions

	mu   sync.Mutex
	file int      // -1 once closed, because the number may then belong to another file
	idle []region // regions that map the image unchanged
}

// maxIdle is how many regions an image keeps mapped for the next instances.
// They use addresses but no pages.
const maxIdle = 16

// NewImage keeps a copy of memory, whose length is a multiple of the size of a
// Wasm page. Regions that map the image come from pool.
func NewImage(pool *Pool, memory []byte) (*Image, error) {
	file, err := unix.MemfdCreate("terrarium-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, imageError(err)
	}
	if err := fillImage(file, memory); err != nil {
		_ = unix.Close(file)
		return nil, imageError(err)
	}
	return &Image{file: file, length: uint64(len(memory)), slabs: &pool.slabs}, nil
}

// fillImage leaves holes for zeroes, which cost nothing. The seals ensure that
// every instance sees the same image as the first.
func fillImage(file int, memory []byte) error {
	if err := unix.Ftruncate(file, int64(len(memory))); err != nil {
		return err
	}
	var zero [4 << 10]byte
	for at := 0; at < len(memory); {
		chunk := memory[at:min(at+len(zero), len(memory))]
		n := len(chunk)
		if !bytes.Equal(chunk, zero[:n]) {
			var err error
			if n, err = unix.Pwrite(file, chunk, int64(at)); err != nil {
				return err
			}
		}
		at += n
	}
	_, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS,
		unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

func imageError(err error) *abi.Error {
	return &abi.Error{Code: abi.Unavailable, Op: "keep memory image", Message: "the system provides no file in memory", Err: err}
}

// Size returns the length of the image in bytes.
func (m *Image) Size() uint64 { return m.length }

// Closed reports whether the image is closed; memories that map it stay valid.
func (m *Image) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.file < 0
}

// copyTo is for memories that cannot be mapped. If the image cannot be read,
// it leaves memory unchanged and returns false.
func (m *Image) copyTo(memory []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := 0; at < int(m.length); {
		n, err := unix.Pread(m.file, memory[at:m.length], int64(at))
		if err != nil || n == 0 {
			return false
		}
		at += n
	}
	return true
}

// mapOver maps the image at the start of base.
func (m *Image) mapOver(base []byte) bool {
	if m.length == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := unix.MmapPtr(m.file, 0, unsafe.Pointer(unsafe.SliceData(base)), uintptr(m.length),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err == nil
}

// unmapImage replaces the first length bytes of a mapped image with zeroes.
func unmapImage(base []byte, length uint64) bool {
	if length == 0 {
		return true
	}
	_, err := mapAnonymous(base, uintptr(length))
	return err == nil
}

// takeIdle returns an idle region of the class that maps the image, if there
// is one.
func (m *Image) takeIdle(class int) (region, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.idle) - 1; i >= 0; i-- {
		if r := m.idle[i]; r.slab.class == class {
			m.idle = slices.Delete(m.idle, i, i+1)
			return r, true
		}
	}
	return region{}, false
}

// keepIdle keeps a region that maps the image unchanged. It returns false if
// there are enough, or if the image is closed.
func (m *Image) keepIdle(r region) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file < 0 || len(m.idle) == maxIdle {
		return false
	}
	m.idle = append(m.idle, r)
	return true
}

// Close releases the file and the idle regions. Memories that map the image
// stay valid. Calling Close twice is harmless.
func (m *Image) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file < 0 {
		return
	}
	_ = unix.Close(m.file)
	m.file = -1
	for _, r := range m.idle {
		if unmapImage(r.base, m.length) {
			r.image = nil
			m.slabs.putBack(r)
		}
	}
	m.idle = nil
}
