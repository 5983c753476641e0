//go:build linux && (amd64 || arm64)

package host

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

// The image of a module is removed with the last instance that uses its code, or with the
// host.
func TestImagesEnd(t *testing.T) {
	before := shownImages(t)
	h, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.imageFrom = 0
	closed := func(image *startImage) bool { return image.memory.Closed() }
	spawn := func(m abi.Module) abi.Instance {
		i, err := m.Instantiate(t.Context(), nil, &fakeTurn{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	m, err := h.Compile(t.Context(), busyGuest(t))
	if err != nil {
		t.Fatal(err)
	}
	first, second := spawn(m), spawn(m)
	image := imageOf(m)
	if got := shownImages(t) - before; image == nil || got != 2 {
		t.Fatalf("two instances show the image %p in %d mappings", image, got)
	}
	m.Close(t.Context())
	first.Close(t.Context())
	if closed(image) {
		t.Error("the image is closed while an instance may be made")
	}
	second.Close(t.Context())
	if !closed(image) {
		t.Error("the last instance leaves the image")
	}
	if m, err = h.Compile(t.Context(), busyGuest(t)); err != nil {
		t.Fatal(err)
	}
	last := spawn(m)
	image = imageOf(m)
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !closed(image) {
		t.Error("the host leaves the image")
	}
	last.Close(t.Context())
	if got := shownImages(t) - before; got != 0 {
		t.Errorf("%d mappings are left", got)
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
