package recipes

import (
	"strings"
	"testing"
)

// Texts that once made reading a recipe take minutes, because a search began again at
// every line.
func TestTextsThatScanSlowly(t *testing.T) {
	for name, text := range map[string]string{
		"comments without an end": strings.Repeat("/*\n", 300_000),
		"scripts without an end":  strings.Repeat("<<JS\n", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			if _, diags := Load(t.Context(), write(t, text), Options{}); !diags.HasErrors() {
				t.Error("there is no error")
			}
			if _, diags := Format("a.hcl", []byte(text)); !diags.HasErrors() {
				t.Error("it can be formatted")
			}
			Tokens("a.hcl", []byte(text))
		})
	}
	text := "channel \"a\" {}\n" + strings.Repeat("# /* no comment of its own\n", 40)
	if _, diags := Format("a.hcl", []byte(text)); diags.HasErrors() {
		t.Error(diags)
	}
}
