package engine_test

import (
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
)

// An invalid key and malformed headers are invalid arguments, whether or not the key
// or the channel exists.
func TestInvalidKeysAndHeaders(t *testing.T) {
	w := newWorld(t, engine.Options{})
	var codes []abi.Code
	w.host.on("asks", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		for _, key := range []string{"", "\xff", "a\x00"} {
			_, code := t.StateGet([]byte(key))
			codes = append(codes, code)
		}
		codes = append(codes, abi.Code(-t.Send(abi.AllChannels, nil, []byte("no NUL"))))
		return nil
	})
	a := w.add("a", "asks")
	if _, err := w.SendTo(t.Context(), a, engine.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	if err := w.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, code := range codes {
		if code != abi.InvalidArgument {
			t.Errorf("call %d returned %v, want invalid_argument", i, code)
		}
	}
	if len(codes) != 4 {
		t.Errorf("%d calls returned a code, want 4", len(codes))
	}
}
