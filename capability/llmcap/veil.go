package llmcap

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/seed47132306/terrarium/capability/httpcap"
)

// escapes are those of JSON for characters that need none, however often they are escaped.
var escapes = regexp.MustCompile(`\\+(?:/|u00[2-7][0-9a-fA-F])`)

// veil removes the secrets from a text that is put together. The client of HTTP has removed
// them from the bytes of the response, where they may be in pieces or escaped; and a text,
// such as the arguments of a call, may itself be JSON with escapes.
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

// secretsOf are the secrets of headers, also as JSON writes them.
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
