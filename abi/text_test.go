package abi_test

import (
	"testing"

	"github.com/seed47132306/terrarium/abi"
)

func TestDeceptive(t *testing.T) {
	for _, r := range "\x00\n\x1b\x7f\u009b\u00ad\u200b\u200d\u200e\u2028\u2029\u202e\u2066\ufeff\u3164\U000e0061" {
		if !abi.Deceptive(r) {
			t.Errorf("%U passes", r)
		}
	}
	for _, r := range "a é ß 名 е ا ก ❤\ufe0f 🦎 -_#." {
		if abi.Deceptive(r) {
			t.Errorf("%U is refused", r)
		}
	}
}
