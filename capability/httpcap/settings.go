// Package httpcap is the capability http: requests over HTTP to servers that a recipe
// allows. It prevents requests to servers that only the machine itself can reach
// (server-side request forgery). A name is resolved once for each connection, each of its
// addresses is checked, and the connection goes to an address that passed the check.
// Addresses that are not on the public internet are refused unless the recipe names them
// by number. Hosts in notations that resolvers read in different ways are refused too.
// Redirects are not followed unless the recipe allows them, and each is checked like a
// request. The size of responses is bounded while they are read, even after
// decompression. Environment variables set no proxy unless the recipe allows that.
package httpcap

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed47132306/terrarium/capability"
	"github.com/seed47132306/terrarium/internal/plainly"
)

// Kind is the capability. The zero value is ready for use.
type Kind struct {
	resolver resolver // nil: that of the system
}

// New returns the capability.
func New() Kind { return Kind{} }

// Name implements [capability.Kind].
func (Kind) Name() string { return "http" }

// Bounds and defaults of settings.
const (
	defaultMaxRequest  = 1 << 20
	defaultMaxResponse = 768 << 10 // below the default of the limit message, with the headers
	mostResponse       = 64 << 20
	mostRetries        = 100
	mostRedirects      = 20
	defaultKeyHeader   = "Idempotency-Key"
)

// Settings implements [capability.Kind].
func (Kind) Settings() []capability.Setting {
	return []capability.Setting{
		{Name: "allow", Type: capability.Texts, Required: true, Doc: "[patterns](http.md#patterns) of what may be requested: `\"https://api.example.com/v1/**\"`"},
		{Name: "methods", Type: capability.Texts, Default: `["GET", "HEAD"]`, Doc: "the methods that may be used"},
		{Name: "headers", Type: capability.TextMap, Sensitive: true, Doc: "headers that every request gets; creatures do not see them, and their values may be sensitive"},
		{Name: "addresses", Type: capability.Texts, Without: "only those on the public internet", Doc: "addresses and ranges, by number, that may be reached although they are not on the public internet: `\"10.1.2.0/24\"`"},
		{Name: "redirects", Type: capability.Count, Without: "they are not followed", Doc: "how many redirects of a request are followed; `allow` must allow each"},
		{Name: "timeout", Type: capability.Duration, Default: `"30s"`, Doc: "how long an attempt may take"},
		{Name: "retries", Type: capability.Count, Default: "3", Doc: fmt.Sprintf("how many more attempts a request gets after the first, at most %d", mostRetries)},
		{Name: "backoff", Type: capability.Duration, Default: `"500ms"`, Doc: "the pause before the second attempt; it doubles each time. A `Retry-After` header can make it longer"},
		{Name: "backoff_max", Type: capability.Duration, Default: `"30s"`, Doc: "the longest pause"},
		{Name: "retry_on", Type: capability.Texts, Default: `["429", "502", "503", "504"]`, Doc: "statuses that count as failures, after which a request is tried again"},
		{Name: "on_failure", Type: capability.Text, Choices: []string{"result", "dead_letter"}, Default: `"result"`, Doc: "what a request becomes when its last attempt has failed: a result for the creature, or a [dead letter](limits.md#after-a-failure)"},
		{Name: "max_request", Type: capability.Size, Default: `"1MiB"`, Doc: "the largest body of a request"},
		{Name: "max_response", Type: capability.Size, Default: `"768KiB"`, Doc: "the largest body of a response, after decompression. Responses are messages, so the limit `message` of the creature bounds them too"},
		{Name: "rate", Type: capability.Count, Without: "not bounded", Doc: "attempts per second, for all creatures together"},
		{Name: "concurrency", Type: capability.Count, Default: strconv.Itoa(capability.DefaultConcurrency), Doc: "attempts at the same time, for all creatures together"},
		{Name: "idempotency_header", Type: capability.Text, Default: `"Idempotency-Key"`, Doc: "the header with the key of the request; `\"\"` for none"},
		{Name: "proxy", Type: capability.Text, Without: "none", Doc: "the URL of a proxy, or `environment` to use the proxy that the environment variables of the process set. The proxy resolves names, so their addresses are not checked"},
		{Name: "ca", Type: capability.Text, Without: "those of the system", Doc: "certificates of trusted authorities, in PEM, instead of those of the system"},
	}
}

// settings are the attributes of a block.
type settings struct {
	Allow       []string          `json:"allow"`
	Methods     []string          `json:"methods"`
	Headers     map[string]string `json:"headers"`
	Addresses   []string          `json:"addresses"`
	Redirects   int               `json:"redirects"`
	Timeout     time.Duration     `json:"timeout"`
	Retries     *int              `json:"retries"`
	Backoff     time.Duration     `json:"backoff"`
	BackoffMax  time.Duration     `json:"backoff_max"`
	RetryOn     []string          `json:"retry_on"`
	OnFailure   string            `json:"on_failure"`
	MaxRequest  int64             `json:"max_request"`
	MaxResponse int64             `json:"max_response"`
	Rate        int               `json:"rate"`
	Concurrency int               `json:"concurrency"`
	KeyHeader   *string           `json:"idempotency_header"`
	Proxy       string            `json:"proxy"`
	CA          string            `json:"ca"`
}

// grant implements [capability.Grant].
type grant struct {
	settings
	patterns  []pattern
	methods   map[string]bool
	addresses []netip.Prefix
	retryOn   map[int]bool
	keyHeader string
	retries   int
	secrets   []string // values of headers that results must not contain
	transport *http.Transport
	proxied   bool
	proxies   sync.Map // addresses of proxies that requests went through; connections to them are not checked
	resolver  resolver
	known     known
}

// Open implements [capability.Kind].
func (k Kind) Open(raw json.RawMessage) (capability.Grant, error) {
	g := &grant{methods: map[string]bool{}, retryOn: map[int]bool{}, keyHeader: defaultKeyHeader, retries: 3, resolver: k.resolver}
	if g.resolver == nil {
		g.resolver = systemResolver{}
	}
	if err := json.Unmarshal(raw, &g.settings); err != nil {
		return nil, invalid("the settings cannot be read: "+plainly.JSON(nil, err).Error(), "correct them")
	}
	for _, step := range []func() error{g.readPatterns, g.readMethods, g.readHeaders, g.readAddresses, g.readNumbers, g.openTransport} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *grant) readPatterns() error {
	if len(g.Allow) == 0 {
		return invalid("allow is empty, so nothing may be requested", patternRemedy)
	}
	for _, text := range g.Allow {
		p, err := parsePattern(text)
		if err != nil {
			return err
		}
		g.patterns = append(g.patterns, p)
	}
	return nil
}

func (g *grant) readMethods() error {
	if g.Methods == nil {
		g.Methods = []string{"GET", "HEAD"}
	}
	for _, m := range g.Methods {
		if !isToken(m) || strings.ToUpper(m) != m || m == "CONNECT" || m == "TRACE" {
			return invalid("the method "+quote(m)+" cannot be allowed", "use methods such as GET, POST, PUT, PATCH and DELETE, in capital letters")
		}
		g.methods[m] = true
	}
	return nil
}

func (g *grant) readHeaders() error {
	for name, value := range g.Headers {
		if !isToken(name) || forbidden(name) {
			return invalid("the header "+quote(name)+" cannot be set", "leave it out: the client sets it")
		}
		if !isFieldValue(value) {
			return invalid("the value of the header "+quote(name)+" has characters that are not allowed", "use printable characters")
		}
	}
	g.secrets = Secrets(g.Headers)
	if g.KeyHeader != nil {
		g.keyHeader = *g.KeyHeader
	}
	if g.keyHeader != "" && (!isToken(g.keyHeader) || forbidden(g.keyHeader)) {
		return invalid("idempotency_header cannot be "+quote(g.keyHeader), "use another name, such as Idempotency-Key")
	}
	return nil
}

func (g *grant) readAddresses() error {
	for _, text := range g.settings.Addresses {
		p, err := netip.ParsePrefix(text)
		if a, aerr := netip.ParseAddr(text); aerr == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Addr().Zone() != "" || p.Addr().Is4In6() {
			return invalid("addresses has "+quote(text)+", which is not an address", `write an address or a range, such as "127.0.0.1" or "10.1.2.0/24"`)
		}
		g.addresses = append(g.addresses, p.Masked())
	}
	return nil
}

func (g *grant) readNumbers() error {
	if g.Retries != nil {
		g.retries = *g.Retries
	}
	for _, n := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"retries", int64(g.retries), mostRetries}, {"redirects", int64(g.Redirects), mostRedirects}, {"max_response", g.MaxResponse, mostResponse},
		{"max_request", g.MaxRequest, mostResponse}, {"concurrency", int64(g.Concurrency), 10_000}, {"rate", int64(g.Rate), 1_000_000},
		{"timeout", int64(g.Timeout), int64(time.Hour)}, {"backoff", int64(g.Backoff), int64(24 * time.Hour)}, {"backoff_max", int64(g.BackoffMax), int64(24 * time.Hour)},
	} {
		if n.value < 0 || n.value > n.most {
			return invalid(fmt.Sprintf("%s is out of range", n.name), fmt.Sprintf("use at most %d", n.most))
		}
	}
	g.MaxRequest, g.MaxResponse = cmp.Or(g.MaxRequest, defaultMaxRequest), cmp.Or(g.MaxResponse, defaultMaxResponse)
	if g.RetryOn == nil {
		g.RetryOn = []string{"429", "502", "503", "504"}
	}
	for _, text := range g.RetryOn {
		n, err := strconv.Atoi(text)
		if err != nil || n < 300 || n > 599 {
			return invalid("retry_on has "+quote(text)+", which is not the status of a failure", `write statuses such as "503"`)
		}
		g.retryOn[n] = true
	}
	if g.OnFailure != "" && g.OnFailure != "result" && g.OnFailure != "dead_letter" {
		return invalid("on_failure cannot be "+quote(g.OnFailure), "write result or dead_letter")
	}
	return nil
}

// The bounds of a connection.
const (
	maxResponseHeaders = 64 << 10
	idleTimeout        = 90 * time.Second
	handshakeTimeout   = 10 * time.Second
)

func (g *grant) openTransport() error {
	conns := cmp.Or(g.Concurrency, capability.DefaultConcurrency)
	t := &http.Transport{
		DialContext: g.dial, DisableCompression: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxResponseHeaders,
		MaxIdleConns: conns, MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, IdleConnTimeout: idleTimeout, TLSHandshakeTimeout: handshakeTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if g.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(g.CA)) {
			return invalid("ca has no certificate in PEM", "set it to the contents of a file that begins with -----BEGIN CERTIFICATE-----")
		}
		t.TLSClientConfig.RootCAs = pool
	}
	switch g.Proxy {
	case "":
	case "environment":
		g.through(t, http.ProxyFromEnvironment)
	default:
		u, err := url.Parse(g.Proxy)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return invalid("proxy is not the URL of a proxy", `write a URL such as "http://proxy.example.com:3128", or "environment"`)
		}
		if u.User != nil {
			return invalid("proxy has a user or password, which does not belong in a URL", "use a proxy that needs none, or proxy = \"environment\"")
		}
		g.through(t, http.ProxyURL(u))
	}
	g.transport = t
	return nil
}

// through sends requests through proxies.
func (g *grant) through(t *http.Transport, proxy func(*http.Request) (*url.URL, error)) {
	g.proxied = true
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		u, err := proxy(r)
		if u != nil {
			port := u.Port()
			if port == "" {
				port = defaultPort(u.Scheme)
			}
			g.proxies.Store(net.JoinHostPort(u.Hostname(), port), true)
		}
		return u, err
	}
}

// Limits implements [capability.Grant].
func (g *grant) Limits() capability.Limits {
	return capability.Limits{
		Concurrency: g.Concurrency, Rate: float64(g.Rate), Timeout: g.Timeout, Retries: g.retries, Backoff: g.Backoff, BackoffMax: g.BackoffMax,
		DeadLetter: g.OnFailure == "dead_letter",
	}
}

// Allows implements [capability.Grant].
func (g *grant) Allows() []string {
	var out []string
	methods := strings.Join(g.Methods, ", ")
	for i := range g.patterns {
		out = append(out, methods+" "+g.patterns[i].text)
	}
	for _, p := range g.addresses {
		out = append(out, "addresses in "+p.String())
	}
	if g.Proxy != "" {
		out = append(out, "through the proxy "+g.Proxy)
	}
	return out
}

// Warnings implements [capability.Grant].
func (g *grant) Warnings() []capability.Warning {
	var out []capability.Warning
	warn := func(setting, text, remedy string) {
		out = append(out, capability.Warning{Setting: setting, Text: text, Remedy: remedy})
	}
	for i := range g.patterns {
		p := &g.patterns[i]
		if p.everything() {
			warn("allow", fmt.Sprintf("The pattern %q allows requests to any server.", p.text), "Name the servers that creatures need.")
		}
		if p.scheme == "http" && len(g.Headers) > 0 && !p.addr.IsLoopback() {
			warn("headers", fmt.Sprintf("Requests to %q send the headers of the recipe without encryption.", p.text), "Use https.")
		}
	}
	for _, p := range g.addresses {
		if p.Bits() == 0 {
			warn("addresses", fmt.Sprintf("The range %s allows every address.", p), "Name the addresses that creatures need.")
		}
	}
	if g.proxied {
		warn("proxy", "The proxy resolves the names of servers, so their addresses are not checked.", "Let the proxy refuse addresses of your own network.")
	}
	return out
}
