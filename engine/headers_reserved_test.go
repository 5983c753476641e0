package engine

import "testing"

// Only the engine writes headers that creatures may trust.
func TestReservedHeaders(t *testing.T) {
	for text, reserved := range map[string]bool{
		"": false, "a\x00b\x00": false, "a\x00terrarium-report\x00": false, "terrarium\x00x\x00": false,
		"terrarium-report\x00x\x00": true, "a\x00b\x00Terrarium-Code\x00\x00": true, "TERRARIUM-\x00\x00": true,
	} {
		if got := reservedHeader([]byte(text)); got != reserved {
			t.Errorf("%q: %v", text, got)
		}
	}
}
