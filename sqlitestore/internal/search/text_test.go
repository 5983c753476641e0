package search

import (
	"net/url"
	"testing"

	"pgregory.net/rapid"
)

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		"a%20frog":        "a frog",
		"%c3%A9lan":       "élan",
		"count/a%2Fb%25":  "count/a/b%",
		"100%":            "",
		"100% of %x":      "",
		"50%4 and 7%20up": "50%4 and 7 up",
		"a%ffb":           "", // no text
		"plain":           "",
		"":                "",
		"%%41":            "%A",
	} {
		got, encoded := unescaped(text)
		if encoded != (want != "") || encoded && got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, encoded, want)
		}
	}
}

// TestUnescapedModel compares with what made the texts.
func TestUnescapedModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.String().Draw(t, "plain")
		text := url.PathEscape(plain)
		if got, encoded := unescaped(text); encoded != (text != plain) || encoded && got != plain {
			t.Errorf("%q is %q, %v; want %q", text, got, encoded, plain)
		}
	})
}
