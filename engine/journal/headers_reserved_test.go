package journal

import (
	"testing"
)

// Only the engine writes headers that creatures may trust.
func TestReservedHeaders(t *testing.T) {
	for text, reserved := range map[string]bool{
		"": false, "a\x00b\x00": false, "a\x00terrarium-report\x00": false, "terrarium\x00x\x00": false,
		"terrarium-report\x00x\x00": true, "a\x00b\x00Terrarium-Code\x00\x00": true, "TERRARIUM-\x00\x00": true,
	} {
		if got := HasReservedHeader([]byte(text)); got != reserved {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A message that a creature passes on loses the headers that the engine wrote. A forged
// header stays, and the message is refused.
func TestHeadersThatArePassedOn(t *testing.T) {
	const delivery = "a\x00b\x00terrarium-wire\x00w1\x00"
	for text, want := range map[string]string{
		"": "", delivery: "a\x00b\x00", "terrarium-wire\x00w2\x00": "terrarium-wire\x00w2\x00", "terrarium-report\x00x\x00c\x00d\x00": "terrarium-report\x00x\x00c\x00d\x00",
		"terrarium-wire": "terrarium-wire",
	} {
		if got := WithoutReserved([]byte(text), []byte(delivery)); string(got) != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
