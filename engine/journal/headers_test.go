package journal

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	_ "github.com/seed47132306/terrarium/internal/seeded"
	"pgregory.net/rapid"
)

// TestHeadersAreEncodedAsThePageSays compares EncodeHeaders with the sentence that describes it:
// name NUL value NUL, repeated, sorted by name; not ok if a name is empty or NUL occurs.
// DecodeHeaders and EachHeader give back what was encoded.
func TestHeadersAreEncodedAsThePageSays(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\u00e4.-\x00")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.MapOfN(text, text, 0, 24).Draw(t, "headers")
		want, valid := "", true
		for _, name := range slices.Sorted(maps.Keys(h)) {
			valid = valid && name != "" && !strings.Contains(name+h[name], "\x00")
			want += name + "\x00" + h[name] + "\x00"
		}
		got, ok := EncodeHeaders(h)
		if ok != valid || ok && string(got) != want || !ok && got != nil {
			t.Fatalf("%q becomes %q, %v; want %q, %v", h, got, ok, want, valid)
		}
		if !ok {
			return
		}
		if back := DecodeHeaders(got); !maps.Equal(back, h) {
			t.Fatalf("%q is read as %q", got, back)
		}
		if !ValidHeaders(got) || cap(got) != len(got) {
			t.Fatalf("%q has room for %d bytes more, or is not valid", got, cap(got)-len(got))
		}
	})
}

// TestEachHeaderStopsAtDamage reads headers that end early, and those of a caller that stops.
func TestEachHeaderStopsAtDamage(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "a\x00": 0, "a\x00b": 0, "a\x00b\x00": 1, "a\x00b\x00c\x00d": 1, "a\x00b\x00a\x00\x00": 2} {
		n := 0
		for name, value := range EachHeader([]byte(text)) {
			if n++; !bytes.Equal(name, []byte("a")) {
				t.Errorf("%q has the header %q, %q", text, name, value)
			}
		}
		if n != want {
			t.Errorf("%q has %d headers, want %d", text, n, want)
		}
	}
	for range EachHeader([]byte("a\x00b\x00c\x00d\x00")) {
		return
	}
	t.Error("there was no header")
}
