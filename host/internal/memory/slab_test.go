//go:build linux && (amd64 || arm64)

package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		size  uint64
		class int
	}{{0, 0}, {1, 0}, {64 << 10, 0}, {64<<10 + 1, 1}, {128 << 10, 1}, {192 << 10, 2}, {64 << 20, 10}, {1<<32 - 1, 16}, {1 << 32, 16}} {
		if got := classOf(c.size); got != c.class || classBytes(got) < c.size {
			t.Errorf("a region for %d bytes is of class %d with %d", c.size, got, classBytes(got))
		}
	}
	if _, ok := NewPool().reserve(1<<32+1, nil); ok {
		t.Error("more than a memory can have is reserved")
	}
}

// Released regions are reused, so many memories one after the other need one
// slab; one unused slab is kept, but not a second one.
func TestSlabsComeAndGo(t *testing.T) {
	pool := NewPool()
	const size = 64 << 20
	var all []region
	for range 3 * slabBytes / size {
		r, ok := pool.reserve(size, nil)
		if !ok {
			t.Fatal("no room for a region")
		}
		all = append(all, r)
	}
	c := &pool.classes[classOf(size)]
	if len(c.open) != 0 {
		t.Errorf("%d slabs have a free region while all are in use", len(c.open))
	}
	for _, r := range all {
		pool.release(r, 0)
	}
	if len(c.open) != 1 || c.empty != 1 {
		t.Errorf("%d slabs are kept, %d of them unused", len(c.open), c.empty)
	}
	before := c.open[0]
	for range 1000 {
		r, _ := pool.reserve(size, nil)
		pool.release(r, 1<<16)
	}
	if len(c.open) != 1 || c.open[0] != before {
		t.Error("a region that came back was not used again")
	}
	late, _ := pool.reserve(size, nil)
	pool.Close()
	if len(c.open) != 1 {
		t.Error("a slab in use is unmapped")
	}
	if pool.release(late, 0); len(c.open) != 0 {
		t.Error("the last release leaves a slab behind")
	}
	if _, ok := pool.reserve(size, nil); ok {
		t.Error("a closed pool reserves")
	}
}

// shownImages counts the mappings of images in this process.
func shownImages(t *testing.T) int {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.Contains(s.Text(), "terrarium-image") {
			n++
		}
	}
	return n
}

// An image that was mapped into a region leaves no trace in it, neither in its
// bytes nor in the number of mappings of the process.
func TestImagesLeaveNoMapping(t *testing.T) {
	pool := NewPool()
	anchor, _ := pool.reserve(1<<20, nil)
	before := shownImages(t)
	image, err := NewImage(pool, make([]byte, 2*abi.PageBytes))
	if err != nil {
		t.Fatal(err)
	}
	var live []region
	for range 3 * maxIdle {
		r, ok := pool.reserve(1<<20, image)
		if !ok {
			t.Fatal("no room for an image")
		}
		live = append(live, r)
	}
	if got := shownImages(t) - before; got != len(live) {
		t.Errorf("%d memories show the image in %d mappings", len(live), got)
	}
	for _, r := range live {
		pool.release(r, 2*abi.PageBytes)
	}
	if got := shownImages(t) - before; got != maxIdle {
		t.Errorf("%d mappings are kept for the next instances, want %d", got, maxIdle)
	}
	image.Close()
	if got := shownImages(t) - before; got != 0 {
		t.Errorf("the closed image has %d mappings", got)
	}
	pool.release(anchor, 0)
	pool.Close()
}

// A sealed image cannot be changed, not even through its file.
func TestImageIsSealed(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	image, err := NewImage(pool, make([]byte, abi.PageBytes))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(image.file), os.O_RDWR, 0)
	if err != nil {
		return // it cannot even be opened for writing
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{1}, 0); err == nil {
		t.Error("the image was written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("the image was cut off")
	}
}
