package llmcap

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/seed47132306/terrarium/capability/httpcap"
)

// escapes matches JSON escapes of characters that need none, even if they are escaped
// several times.
var escapes = regexp.MustCompile(`\\+(?:/|u00[2-7][0-9a-fA-F])`)

// veil removes the secrets from an assembled text. The HTTP client has already removed
// them from the bytes of the response, but there they may have been in pieces or escaped.
// A text, such as the arguments of a call, may also be JSON with escapes itself.
func (g *grant) veil(text string) string {
	text = g.replaced(text)
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := escapes.ReplaceAllStringFunc(text, func(e string) string {
		if e[len(e)-1] == '/' {
			return "/"
		}
		var c string
		if json.Unmarshal([]byte(`"\`+strings.TrimLeft(e, `\`)+`"`), &c) != nil || c == `"` || c == `\` {
			return e
		}
		return c
	})
	if veiled := g.replaced(plain); veiled != plain {
		return veiled
	}
	return text
}

func (g *grant) replaced(text string) string {
	for _, secret := range g.secrets {
		text = strings.ReplaceAll(text, secret, httpcap.Hidden)
	}
	return text
}

// secretsOf returns the secrets in headers, as they are and in the form that they have in
// JSON.
func secretsOf(headers map[string]string) []string {
	var out []string
	for _, s := range httpcap.Secrets(headers) {
		if raw, err := json.Marshal(s); err == nil && len(raw) > len(s)+2 {
			out = append(out, string(raw[1:len(raw)-1]))
		}
		out = append(out, s)
	}
	return out
}
