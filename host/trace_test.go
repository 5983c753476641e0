package host

import (
	"slices"
	"strings"
	"testing"
)

// A stack is shown whole as long as it fits.
func TestStacksAreCut(t *testing.T) {
	for frames, want := range map[int]string{
		maxFrames - 1: strings.Repeat("f < ", maxFrames-2) + "f", maxFrames: strings.Repeat("f < ", maxFrames-1) + "f",
		maxFrames + 1: strings.Repeat("f < ", maxFrames) + "…",
	} {
		if got := list(slices.Repeat([]string{"f"}, frames)); got != want {
			t.Errorf("%d frames are shown as %q, want %q", frames, got, want)
		}
	}
}
