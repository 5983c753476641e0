package httpcap

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// resolver looks up the addresses of a name.
type resolver interface {
	addresses(ctx context.Context, host string) ([]netip.Addr, error)
}

type systemResolver struct{}

func (systemResolver) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range found {
		found[i] = found[i].Unmap() // the hosts file may have IPv4 addresses in the form of IPv6
	}
	return found, err
}

// dial resolves the name of a server once, checks each address, and connects to an address
// that passed the check.
func (g *grant) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	a, err := netip.ParseAddr(host)
	literal := err == nil
	if literal {
		found = []netip.Addr{a}
	} else if found, err = g.resolver.addresses(ctx, host); err != nil {
		return nil, err
	}
	var last error = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	var d net.Dialer
	for _, a := range found {
		if _, isProxy := g.proxies.Load(address); !isProxy && !g.mayReach(a, literal && g.named(a, portText)) {
			last = refused(host, a)
			continue
		}
		conn, err := d.DialContext(ctx, network, netip.AddrPortFrom(a.Unmap(), uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// Close closes the connections that wait for further requests.
func (g *grant) Close() error {
	g.transport.CloseIdleConnections()
	return nil
}

// Do implements [capability.Grant].
func (g *grant) Do(ctx context.Context, call capability.Call) capability.Result {
	h, err := g.target(call.Head)
	if err != nil {
		return g.failed(ctx, err)
	}
	first := h.to
	method, body, at := h.Method, call.Body, first
	for hops := 0; ; hops++ {
		own := at == first || sameOrigin(at, first)
		response, err := g.send(ctx, method, at, h.Headers, body, call.Key, own)
		if err != nil {
			return g.failed(ctx, err)
		}
		// Reading the body must end with the attempt.
		stop := context.AfterFunc(ctx, func() { _ = response.Body.Close() })
		defer stop()
		location := response.Header.Get("Location")
		if g.Redirects == 0 || location == "" || !redirects(response.StatusCode) {
			return g.read(ctx, response, method)
		}
		discard(response)
		if hops >= g.Redirects {
			return g.failed(ctx, &abi.Error{
				Code: abi.LimitExceeded, Op: "http", Message: fmt.Sprintf("the request was redirected more than %d times", g.Redirects), Remedy: "request the last URL, or raise redirects in the recipe",
			})
		}
		if at, err = g.follow(at, location, &method, &body, response.StatusCode); err != nil {
			return g.failed(ctx, err)
		}
	}
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow checks a redirect, and returns where it leads.
func (g *grant) follow(from *target, location string, method *string, body *[]byte, status int) (*target, error) {
	next, err := url.Parse(location)
	if err != nil {
		return nil, invalid("the server redirects to "+quote(location)+", which is not a URL", "request another URL")
	}
	next = from.url.ResolveReference(next)
	if from.url.Scheme == "https" && next.Scheme != "https" {
		return nil, &abi.Error{Code: abi.Denied, Op: "http", Message: "the server redirects from https to " + quote(next.Redacted()), Remedy: "request that URL, if its contents need no protection"}
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect && *method != "HEAD" {
		*method, *body = "GET", nil
	}
	to, err := g.allowed(*method, next.String())
	if err != nil {
		return nil, fmt.Errorf("the server redirects to a URL that is not allowed: %w", err)
	}
	return to, nil
}

func sameOrigin(a, b *target) bool {
	return a.url.Scheme == b.url.Scheme && a.host == b.host && a.port == b.port
}

// send makes one request. own tells whether it goes to the server that the creature named:
// only this server gets credentials.
func (g *grant) send(ctx context.Context, method string, to *target, headers map[string]string, body []byte, key string, own bool) (*http.Response, error) {
	u := *to.url
	if to.addr.Is6() {
		u.Host = "[" + to.host + "]:" + to.port
	} else {
		u.Host = to.host + ":" + to.port
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalid("the request cannot be made: "+err.Error(), headRemedy)
	}
	if len(body) == 0 {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	}
	if to.port == defaultPort(u.Scheme) {
		req.Host = strings.TrimSuffix(u.Host, ":"+to.port)
	}
	req.Header.Set("User-Agent", "terrarium")
	req.Header.Set("Accept-Encoding", "gzip")
	if g.keyHeader != "" {
		req.Header.Set(g.keyHeader, key)
	}
	for name, value := range headers {
		if !own && (strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Cookie")) {
			continue
		}
		req.Header.Set(name, value)
	}
	if own {
		for name, value := range g.Headers {
			req.Header.Set(name, value)
		}
	}
	response, err := g.transport.RoundTrip(req)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
		// The body is the bare connection, which never ends and ignores ctx.
		_ = response.Body.Close()
		return nil, &abi.Error{Code: abi.Unsupported, Op: "http", Message: "the server switched to another protocol, which is not supported", Remedy: "request a URL that is answered over HTTP"}
	}
	return response, err
}

// read reads a response.
func (g *grant) read(ctx context.Context, response *http.Response, method string) capability.Result {
	defer discard(response)
	payload, decoded, err := g.body(response)
	if err != nil {
		r := g.failed(ctx, err)
		r.Status = response.StatusCode
		return r
	}
	r := capability.Result{Payload: payload, Status: response.StatusCode, Headers: map[string]string{}}
	for name, values := range response.Header {
		name = strings.ToLower(name)
		if decoded && (name == "content-encoding" || name == "content-length") {
			continue
		}
		if value := g.veiled(strings.Join(values, ", ")); isFieldValue(value) && !g.tells(name) {
			r.Headers[name] = value
		}
	}
	if g.retryOn[response.StatusCode] {
		r.Code, r.Again, r.After = abi.Unavailable, true, retryAfter(response.Header)
		r.Text = fmt.Sprintf("the server answered %d %s: %s; try again later", response.StatusCode, http.StatusText(response.StatusCode), excerpt(payload))
	}
	return r
}

// excerpt returns the beginning of a response, for an error.
func excerpt(b []byte) string {
	const most = 200
	return quote(strings.ToValidUTF8(string(b[:min(len(b), most)]), ""))
}

// body reads a bounded body. A body in gzip is decompressed, within the same bound.
func (g *grant) body(response *http.Response) (payload []byte, decoded bool, err error) {
	if response.ContentLength > g.MaxResponse {
		return nil, false, g.tooLarge()
	}
	compressed := &io.LimitedReader{R: response.Body, N: g.MaxResponse + 1}
	var from io.Reader = compressed
	if strings.EqualFold(strings.TrimSpace(response.Header.Get("Content-Encoding")), "gzip") && response.Request.Method != http.MethodHead {
		zip, err := gzip.NewReader(compressed)
		if errors.Is(err, io.EOF) && compressed.N == g.MaxResponse+1 {
			return nil, true, nil // no body at all
		}
		if err != nil {
			return nil, false, fmt.Errorf("the body is not compressed with gzip, although the header Content-Encoding declares it: %w", err)
		}
		from, decoded = zip, true
	}
	payload, err = io.ReadAll(io.LimitReader(from, g.MaxResponse+1))
	if int64(len(payload)) > g.MaxResponse || compressed.N <= 0 {
		return nil, decoded, g.tooLarge()
	}
	if err != nil {
		return nil, decoded, fmt.Errorf("the response broke off after %d bytes: %w", len(payload), err)
	}
	for _, secret := range g.secrets {
		if bytes.Contains(payload, []byte(secret)) {
			payload = bytes.ReplaceAll(payload, []byte(secret), []byte(Hidden))
		}
	}
	if int64(len(payload)) > g.MaxResponse {
		return nil, decoded, g.tooLarge()
	}
	return payload, decoded, nil
}

func (g *grant) veiled(text string) string {
	for _, secret := range g.secrets {
		text = strings.ReplaceAll(text, secret, Hidden)
	}
	return text
}

// tells reports whether a header's name, in lower case, contains a secret.
func (g *grant) tells(name string) bool {
	return slices.ContainsFunc(g.secrets, func(s string) bool { return strings.Contains(name, strings.ToLower(s)) })
}

func (g *grant) tooLarge() error {
	return &abi.Error{
		Code: abi.TooLarge, Op: "http", Message: fmt.Sprintf("the response has more than %d bytes", g.MaxResponse), Remedy: "request less, or raise max_response in the recipe",
	}
}

// maxDiscarded bounds how much of an unused body is read so that the connection can be used
// again.
const maxDiscarded = 16 << 10

// discardTime bounds how long that may take: a connection is not worth waiting for a server
// that does not end a body.
const discardTime = 50 * time.Millisecond

// discard drops the rest of a body. If it is long or slow, the connection is closed.
func discard(response *http.Response) {
	if n := response.ContentLength; n <= maxDiscarded {
		late := time.AfterFunc(discardTime, func() { _ = response.Body.Close() })
		_, _ = io.CopyN(io.Discard, response.Body, maxDiscarded)
		late.Stop()
	}
	_ = response.Body.Close()
}

// retryAfter reads the header Retry-After: seconds, or a date by the clock of the server.
func retryAfter(h http.Header) time.Duration {
	const most = 24 * 60 * 60
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64); err == nil {
		return time.Duration(min(n, most)) * time.Second
	}
	at, err := http.ParseTime(text)
	now, unset := http.ParseTime(h.Get("Date"))
	if err != nil || unset != nil {
		return 0
	}
	return max(0, at.Sub(now))
}

// failed is the result of an attempt that ended with an error.
func (g *grant) failed(ctx context.Context, err error) capability.Result {
	r := capability.Failure(abi.Unavailable, "")
	var known *abi.Error
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &known):
		r.Code, r.Text = known.Code, err.Error()
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded):
		r.Code, r.Again, r.Text = abi.Deadline, true, "http: the server did not answer in time; raise timeout in the recipe, or try again"
	case errors.As(err, &cert):
		r.Code, r.Text = abi.Denied, "http: the certificate of the server is not trusted: "+cert.Error()+"; if it is from your own authority, set ca in the recipe"
	case errors.As(err, &record):
		r.Text = "http: the server does not use TLS; use http:// if that is intended"
	default:
		r.Again, r.Text = true, "http: no response: "+err.Error()+"; check that the server is running, or try again"
	}
	r.Text = g.veiled(r.Text)
	return r
}
