package httpcap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// head is a request of a creature without its body.
type head struct {
	Method  string            `json:"method,omitempty"` // GET by default
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
}

const headRemedy = `send {"method": "POST", "url": "https://…", "headers": {"content-type": "text/plain"}}`

func readHead(raw []byte) (h head, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, invalid("the request is not a JSON object of method, url and headers", headRemedy)
	}
	if d.More() {
		return h, invalid("the request has more text after its JSON object", headRemedy)
	}
	if h.Method == "" {
		h.Method = "GET"
	}
	return h, nil
}

// quote quotes a text for a message, and cuts it if it is long.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// Check implements [capability.Grant].
func (g *grant) Check(r capability.Request) error {
	if _, err := g.checked(r.Head); err != nil {
		return err
	}
	if int64(len(r.Body)) > g.MaxRequest {
		return &abi.Error{
			Code: abi.TooLarge, Op: "http", Message: fmt.Sprintf("the body of the request has %d bytes; at most %d are allowed", len(r.Body), g.MaxRequest),
			Remedy: "send less, or raise max_request in the recipe",
		}
	}
	return nil
}

// checked reads a head and checks it.
func (g *grant) checked(raw []byte) (checkedHead, error) {
	if known, ok := g.known.find(raw); ok {
		return known, nil
	}
	h, err := readHead(raw)
	if err == nil {
		err = g.checkHeaders(&h)
	}
	if err != nil {
		return checkedHead{}, err
	}
	to, err := g.allowed(h.Method, h.URL)
	if err != nil {
		return checkedHead{}, err
	}
	c := checkedHead{h, to}
	g.known.keep(raw, c)
	return c, nil
}

// target reads a head for an attempt. Its headers were checked by the caller, which may be
// another capability with headers of its own.
func (g *grant) target(raw []byte) (checkedHead, error) {
	if known, ok := g.known.find(raw); ok {
		return known, nil
	}
	h, err := readHead(raw)
	if err != nil {
		return checkedHead{}, err
	}
	to, err := g.allowed(h.Method, h.URL)
	return checkedHead{h, to}, err
}

func (g *grant) checkHeaders(h *head) error {
	names := map[string]bool{}
	for name, value := range h.Headers {
		if lower := strings.ToLower(name); names[lower] {
			return invalid("the request has the header "+quote(name)+" twice", "join the values")
		} else {
			names[lower] = true
		}
		if !isToken(name) || forbidden(name) {
			return invalid("the request cannot set the header "+quote(name), "leave it out: the client sets it")
		}
		if !isFieldValue(value) {
			return invalid("the value of the header "+quote(name)+" has characters that are not allowed", "use printable characters")
		}
		for own := range g.Headers {
			if strings.EqualFold(own, name) {
				return &abi.Error{Code: abi.Denied, Op: "http", Message: "the recipe sets the header " + quote(name), Remedy: "leave it out"}
			}
		}
	}
	return nil
}

// allowed checks a method and a URL.
func (g *grant) allowed(method, text string) (*target, error) {
	t, err := parseTarget(text)
	if err != nil {
		return nil, err
	}
	if !g.methods[method] {
		return nil, &abi.Error{
			Code: abi.Denied, Op: "http", Message: "the method " + quote(method) + " is not allowed",
			Remedy: "use " + strings.Join(g.Methods, ", ") + ", or allow it in the recipe",
		}
	}
	ok, named := false, false
	for i := range g.patterns {
		if p := &g.patterns[i]; p.allows(&t) {
			ok, named = true, named || p.addr.IsValid()
		}
	}
	if !ok {
		return nil, &abi.Error{
			Code: abi.Denied, Op: "http", Message: "no pattern allows " + quote(t.url.Redacted()), Remedy: "allow it in the recipe",
			IDs: map[string]string{"url": t.url.Redacted()},
		}
	}
	if t.addr.IsValid() && !g.mayReach(t.addr, named) {
		return nil, refused(t.host, t.addr)
	}
	return &t, nil
}

// View implements [capability.Grant].
func (g *grant) View(r capability.Request) map[string]any {
	h, err := readHead(r.Head)
	if err != nil {
		return map[string]any{}
	}
	out := map[string]any{"method": h.Method, "url": h.URL, "headers": h.Headers}
	if h.Headers == nil {
		out["headers"] = map[string]string{}
	}
	if t, err := parseTarget(h.URL); err == nil {
		out["host"], out["path"] = t.host, t.url.Path
	}
	if utf8.Valid(r.Body) {
		out["body"] = string(r.Body)
	} else {
		out["base64"] = base64.StdEncoding.EncodeToString(r.Body)
	}
	return out
}

// Amend implements [capability.Grant].
func (g *grant) Amend(r capability.Request, members json.RawMessage) (capability.Request, error) {
	var m struct {
		Method  *string            `json:"method"`
		URL     *string            `json:"url"`
		Headers *map[string]string `json:"headers"`
		Body    *string            `json:"body"`
		Base64  *[]byte            `json:"base64"`
	}
	d := json.NewDecoder(bytes.NewReader(members))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return r, invalid("a policy can replace method, url, headers, body and base64 of a request", "correct the policy")
	}
	h, err := readHead(r.Head)
	if err != nil {
		return r, err
	}
	if m.Method != nil {
		h.Method = *m.Method
	}
	if m.URL != nil {
		h.URL = *m.URL
	}
	if m.Headers != nil {
		h.Headers = *m.Headers
	}
	if m.Body != nil {
		r.Body = []byte(*m.Body)
	}
	if m.Base64 != nil {
		r.Body = *m.Base64
	}
	if r.Head, err = json.Marshal(h); err != nil {
		return r, invalid("the request cannot be encoded", "correct the policy")
	}
	return r, nil
}

// forbidden reports whether a header belongs to the connection, or could make two servers
// read a request in different ways.
func forbidden(name string) bool {
	switch name = strings.ToLower(name); name {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, "proxy-")
}

// isToken reports whether a text can be the name of a header or a method.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// isFieldValue reports whether a text can be the value of a header.
func isFieldValue(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
