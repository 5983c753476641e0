package veil

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
)

const hidden = deploy.HiddenValue

// TestTextsLoseSensitiveValues proves which parts of a sensitive attribute are hidden. Of
// several values that match, the longest is hidden.
func TestTextsLoseSensitiveValues(t *testing.T) {
	v := Of(&deploy.CreatureSpec{
		Config: []byte(`{"key": "hush\"hush", "deep": {"list": [4815, "xyz", "hushed", "hushed up"]}, "lines": " first\nsecond ", "open": "plain"}`),
		Secret: []string{"key", "deep", "lines", "missing"},
	})
	for text, want := range map[string]string{
		`say hush"hush`:     "say " + hidden,
		`say hush\"hush`:    "say " + hidden,
		"4815 and xyz":      hidden + " and xyz", // too short
		"he hushed up, she": "he " + hidden + ", she",
		"was hushed":        "was " + hidden,
		"first\nsecond":     hidden,
		"in plain sight":    "in plain sight",
	} {
		if got := v.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestErrorsLoseSensitiveValues proves that an error keeps its code, and drops its cause if the
// cause may contain a value. An error that contains none is unchanged.
func TestErrorsLoseSensitiveValues(t *testing.T) {
	v := Of(&deploy.CreatureSpec{Config: []byte(`{"key": "hush-hush"}`), Secret: []string{"key"}})
	cause := errors.New("not hush-hush")
	got := v.Error(&abi.Error{Code: abi.InvalidArgument, Op: "init", Message: "cannot use hush-hush", Remedy: "drop hush-hush", Err: cause})
	var typed *abi.Error
	if !errors.As(got, &typed) || typed.Code != abi.InvalidArgument || typed.Op != "init" || errors.Is(got, cause) {
		t.Fatalf("got %#v", got)
	}
	if typed.Message != "cannot use "+hidden || typed.Remedy != "drop "+hidden {
		t.Errorf("the error says %q, %q", typed.Message, typed.Remedy)
	}
	other := errors.New("something else")
	if got := v.Error(other); got != other || v.Error(nil) != nil {
		t.Errorf("another error became %v", got)
	}
	var none *Veil
	if none.Error(cause) != cause || none.Text("hush-hush") != "hush-hush" || Of(&deploy.CreatureSpec{Config: []byte(`{"key": "hush-hush"}`)}) != nil {
		t.Error("something is hidden, although nothing is sensitive")
	}
}
