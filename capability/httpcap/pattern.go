package httpcap

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

// pattern is an element of the setting allow: SCHEME://HOST:PORT/PATH.
type pattern struct {
	text   string
	scheme string // http or https
	host   string // lower case; "*" any, "*.NAME" any name below NAME
	port   string // "*" any
	path   string // with * and **; empty: any
	addr   netip.Addr
}

func invalid(message, remedy string) *abi.Error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "http", Message: message, Remedy: remedy}
}

const patternRemedy = `write SCHEME://HOST:PORT/PATH, such as "https://api.example.com/v1/**"`

func parsePattern(text string) (p pattern, err error) {
	bad := func(why string) (pattern, error) {
		return p, invalid("the pattern "+quote(text)+" "+why, patternRemedy)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return bad("begins with neither https:// nor http://")
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	if hasPath {
		path = "/" + path
	}
	if strings.ContainsAny(authority, "@") {
		return bad("has a user or password, which does not belong in a URL")
	}
	if strings.ContainsAny(text, "?#") {
		return bad("has a query or a fragment; a pattern allows any query")
	}
	p = pattern{text: text, scheme: scheme, path: path}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:i], authority[i+1:]
		if port != "*" && !isPort(port) {
			return bad("has an invalid port")
		}
	}
	if p.port = port; port == "" {
		p.port = defaultPort(scheme)
	}
	p.host = strings.ToLower(host)
	if strings.HasPrefix(p.host, "[") {
		p.host = strings.Trim(p.host, "[]")
	}
	if a, err := netip.ParseAddr(p.host); err == nil {
		p.addr, p.host = a, a.String()
		return p, nil
	}
	name := strings.TrimPrefix(p.host, "*.")
	if p.host != "*" && !isName(name) {
		return bad("has a host that is neither a name nor an address")
	}
	return p, nil
}

func isPort(s string) bool {
	if s == "" || len(s) > 5 {
		return false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n > 0 && n < 1<<16
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// isName reports whether a host is a valid host name in lower case.
func isName(host string) bool {
	if host == "" || len(host) > 253 || isNumber(host) {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

// everything reports whether the pattern allows any server, or any below a top-level domain.
func (p *pattern) everything() bool {
	return p.host == "*" || strings.HasPrefix(p.host, "*.") && !strings.Contains(p.host[2:], ".")
}

// target is a checked URL, with the parts that are compared with patterns.
type target struct {
	url        *url.URL
	host, port string
	addr       netip.Addr // if the host is one
}

// parseTarget reads the URL of a request. It refuses everything that a server, a proxy or a
// resolver could understand differently.
func parseTarget(text string) (t target, err error) {
	bad := func(why string) (target, error) {
		return t, invalid("the URL "+quote(text)+" "+why, "correct the URL")
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return bad("has spaces, backslashes or characters that are not ASCII; encode them")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("cannot be read")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("begins with neither https:// nor http://")
	case u.Opaque != "" || u.Host == "":
		return bad("has no host")
	case u.User != nil:
		return bad("has a user or password; let the recipe set the header Authorization")
	}
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.Contains(escaped, "%00") || strings.Contains(escaped, "//") {
		return bad("has an empty part or an encoded separator in its path")
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		// Some servers remove parameters and spaces before they interpret . and .. in a path.
		part, _, _ = strings.Cut(part, ";")
		if part = strings.TrimSpace(part); part == "." || part == ".." {
			return bad("has a part . or .. in its path")
		}
	}
	if strings.Contains(escaped, "%252e") || strings.Contains(escaped, "%252f") || strings.Contains(escaped, "%255c") {
		return bad("has a part of its path that is encoded twice")
	}
	if !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl) {
		return bad("has control characters in its path, or bytes that are not UTF-8")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	t = target{url: u, host: strings.ToLower(u.Hostname()), port: u.Port()}
	if t.port == "" {
		t.port = defaultPort(u.Scheme)
	}
	if !isPort(t.port) || strings.HasSuffix(u.Host, ":") {
		return bad("has an invalid port")
	}
	if a, err := netip.ParseAddr(t.host); err == nil {
		t.addr, t.host = a, a.String()
	} else if !isName(t.host) {
		return bad("has a host that is neither a name nor an address in the usual form")
	}
	return t, nil
}

func (p *pattern) allows(t *target) bool {
	if p.scheme != t.url.Scheme || p.port != "*" && p.port != t.port {
		return false
	}
	switch {
	case p.addr.IsValid():
		if t.addr != p.addr {
			return false
		}
	case p.host == "*":
	case strings.HasPrefix(p.host, "*."):
		if !strings.HasSuffix(t.host, p.host[1:]) {
			return false
		}
	case p.host != t.host:
		return false
	}
	return p.path == "" || matches(p.path, t.url.Path)
}

// matches compares a path with a pattern, in which * stands for characters other than a
// slash and ** for any. Its time is bounded by the product of their lengths.
func matches(pattern, path string) bool {
	// reach[j] is whether the pattern so far matches path[:j].
	reach := make([]bool, len(path)+1)
	reach[0] = true
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '*' {
			for j := len(path); j > 0; j-- {
				reach[j] = reach[j-1] && path[j-1] == pattern[i]
			}
			reach[0] = false
			continue
		}
		any := i+1 < len(pattern) && pattern[i+1] == '*'
		if any {
			i++
		}
		for j := 1; j <= len(path); j++ {
			reach[j] = reach[j] || reach[j-1] && (any || path[j-1] != '/')
		}
	}
	return reach[len(path)]
}
