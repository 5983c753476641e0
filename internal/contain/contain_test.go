package contain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/contain"
)

func TestCall(t *testing.T) {
	own := errors.New("its own")
	for _, want := range []error{nil, own} {
		if err := contain.Call("the kind x", func() error { return want }); err != want {
			t.Errorf("without a panic: %v, want %v", err, want)
		}
	}
	if err := contain.Call("the kind x", func() error { return &abi.Error{Message: "all is well"} }); abi.CodeOf(err) != abi.Internal || err.Error() != "the kind x failed: all is well; report it to the author of the kind" {
		t.Errorf("an error with the code ok: %v", err)
	}
	for _, p := range []any{"oops", errors.New("oops"), strings.Repeat("oops", 1<<20)} {
		err := contain.Call("the kind x", func() error { panic(p) })
		var e *abi.Error
		if !errors.As(err, &e) || e.Code != abi.Internal || !strings.HasPrefix(e.Message, "the kind x panicked: oops") || len(e.Message) > 2000 {
			t.Errorf("a panic with %T: %.100v, want the code internal and a short text", p, err)
		}
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"a server\xff does not answer":         "a server does not answer",
		strings.Repeat("a", 4096):              strings.Repeat("a", 4096),
		strings.Repeat("a", 4097):              strings.Repeat("a", 4096) + "…",
		"a" + strings.Repeat("é", 2048):        "a" + strings.Repeat("é", 2047) + "…",
		strings.Repeat("\xff", 3<<20):          "…",
		strings.Repeat("a", 4095) + "\xc3\xa9": strings.Repeat("a", 4095) + "…",
	} {
		if got := contain.Text(text); got != want {
			t.Errorf("of %.20q with %d bytes, %d bytes remain, which end with %q", text, len(text), len(got), got[max(0, len(got)-5):])
		}
	}
}
