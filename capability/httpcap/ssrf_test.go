package httpcap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// names is a resolver with a table. A name with several lists gets the next one at each
// lookup, as if it were bound to other addresses.
type names map[string][][]string

func (n names) addresses(_ context.Context, host string) ([]netip.Addr, error) {
	lists := n[host]
	if len(lists) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(lists) > 1 {
		n[host] = lists[1:]
	}
	var out []netip.Addr
	for _, text := range lists[0] {
		out = append(out, netip.MustParseAddr(text))
	}
	return out, nil
}

func open(t testing.TB, r resolver, settings string) *grant {
	t.Helper()
	g, err := Kind{resolver: r}.Open(json.RawMessage(settings))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.(*grant).transport.CloseIdleConnections)
	return g.(*grant)
}

// request makes one attempt, as the engine does.
func request(t testing.TB, g *grant, method, url string, headers map[string]string, body string) capability.Result {
	t.Helper()
	raw, err := json.Marshal(head{Method: method, URL: url, Headers: headers})
	if err != nil {
		t.Fatal(err)
	}
	r := capability.Request{Head: raw, Body: []byte(body)}
	if err := g.Check(r); err != nil {
		return capability.Failure(abi.CodeOf(err), err.Error())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return g.Do(ctx, capability.Call{Request: r, Key: "key-1", Attempt: 1})
}

// secretServer is a server that no request may reach. It listens on every address of the
// machine, so every way to name the machine leads to it.
func secretServer(t *testing.T) (port string, hits *atomic.Int64) {
	t.Helper()
	hits = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { hits.Add(1) }))
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Skip("no port to listen on: ", err)
	}
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, hits
}

// TestNoWayIn tries to reach a server of the machine in every way that is known to have
// worked somewhere, although the recipe allows any server.
func TestNoWayIn(t *testing.T) {
	port, hits := secretServer(t)
	resolves := names{
		"loopback.example": {{"127.0.0.1"}}, "loopback6.example": {{"::1"}}, "any.example": {{"0.0.0.0"}}, "any6.example": {{"::"}},
		"private.example": {{"10.0.0.1", "172.16.0.1", "192.168.0.1"}}, "mapped.example": {{"::ffff:127.0.0.1"}}, "metadata.example": {{"169.254.169.254"}},
		"nat64.example": {{"64:ff9b::7f00:1"}}, "sixtofour.example": {{"2002:7f00:1::"}}, "unique.example": {{"fd00::1"}}, "shared.example": {{"100.64.0.1"}},
		"localhost": {{"127.0.0.1"}, {"::1"}}, "x.localhost": {{"127.0.0.1"}}, "multicast.example": {{"224.0.0.1"}}, "benchmark.example": {{"198.18.0.1"}},
	}
	g := open(t, resolves, `{"allow":["http://*:*","https://*:*"],"methods":["GET"]}`)
	urls := []string{
		// Addresses by number.
		"http://127.0.0.1:PORT/", "http://127.0.0.2:PORT/", "http://127.255.255.254:PORT/", "http://0.0.0.0:PORT/", "http://[::1]:PORT/", "http://[::]:PORT/",
		"http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/", "http://[::127.0.0.1]:PORT/",
		"http://[64:ff9b::127.0.0.1]:PORT/", "http://[64:ff9b:1::127.0.0.1]:PORT/", "http://[2002:7f00:0001::]:PORT/", "http://[2001:0:7f00:1::]:PORT/",
		"http://169.254.169.254/latest/meta-data/", "http://10.0.0.1:PORT/", "http://172.16.0.1:PORT/", "http://172.31.255.255:PORT/", "http://192.168.1.1:PORT/",
		"http://100.64.0.1:PORT/", "http://198.18.0.1:PORT/", "http://224.0.0.1:PORT/", "http://240.0.0.1:PORT/", "http://255.255.255.255:PORT/",
		"http://[fe80::1]:PORT/", "http://[fe80::1%25lo]:PORT/", "http://[fd00::1]:PORT/", "http://[fec0::1]:PORT/", "http://[ff02::1]:PORT/", "http://[fd00:ec2::254]/",
		// The same in notations that resolvers read in different ways.
		"http://2130706433:PORT/", "http://0x7f000001:PORT/", "http://017700000001:PORT/", "http://0177.0.0.1:PORT/", "http://0x7f.0.0.1:PORT/", "http://0x7f.1:PORT/",
		"http://127.1:PORT/", "http://127.0.1:PORT/", "http://0:PORT/", "http://127.0.0.1.:PORT/", "http://127.000.000.001:PORT/", "http://127.0.0.0x1:PORT/",
		"http://①②⑦.⓪.⓪.①:PORT/", "http://127。0。0。1:PORT/", "http://%31%32%37.0.0.1:PORT/", "http://[::1:PORT/", "http://[127.0.0.1]:PORT/",
		// Names of this machine.
		"http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://localhost.:PORT/", "http://x.localhost:PORT/", "http://loopback.example:PORT/", "http://loopback6.example:PORT/",
		"http://any.example:PORT/", "http://any6.example:PORT/", "http://private.example:PORT/", "http://mapped.example:PORT/", "http://metadata.example:PORT/", "http://nat64.example:PORT/",
		"http://sixtofour.example:PORT/", "http://unique.example:PORT/", "http://shared.example:PORT/", "http://multicast.example:PORT/", "http://benchmark.example:PORT/", "https://localhost:PORT/",
		// URLs that parsers read differently.
		"http://public.example@127.0.0.1:PORT/", "http://127.0.0.1:PORT@public.example/", "http://public.example:80@127.0.0.1:PORT/", "http://127.0.0.1:PORT\\@public.example/",
		"http://public.example#@127.0.0.1:PORT/", "http://127.0.0.1:PORT#.public.example/", "http:127.0.0.1:PORT/", "http:///127.0.0.1:PORT/", "//127.0.0.1:PORT/",
		"http://\t127.0.0.1:PORT/", "http://127.0.0.1:PORT/\r\nHost: x", "http://127.0.0.1:0PORT/", "http://127.0.0.1:", "http://127.0.0.1: PORT/",
		"ftp://127.0.0.1:PORT/", "file:///etc/passwd", "gopher://127.0.0.1:PORT/", "unix:///run/x.sock", "", "http://", "http://:PORT/",
	}
	for _, text := range urls {
		r := request(t, g, "GET", strings.ReplaceAll(text, "PORT", port), nil, "")
		if r.Code != abi.Denied && r.Code != abi.InvalidArgument && !(r.Code == abi.Unavailable && strings.Contains(r.Text, "no such host")) {
			t.Errorf("%q: %s %q", text, r.Code, r.Text)
		}
	}
	if len(urls) < 60 || hits.Load() != 0 {
		t.Errorf("%d of %d requests arrived", hits.Load(), len(urls))
	}
}

// TestTheAddressIsPinned resolves a name that gets another address between two lookups:
// the client connects to the address that was checked.
func TestTheAddressIsPinned(t *testing.T) {
	port, hits := secretServer(t)
	lookups := names{"rebind.example": {{"203.0.113.1", "127.0.0.1"}, {"127.0.0.1"}}}
	g := open(t, lookups, `{"allow":["http://rebind.example:*"]}`)
	for range 3 {
		if r := request(t, g, "GET", "http://rebind.example:"+port+"/", nil, ""); r.Code != abi.Denied {
			t.Errorf("%s %q", r.Code, r.Text)
		}
	}
	if hits.Load() != 0 {
		t.Error("a request arrived")
	}
}

// TestWhatARecipeAllows proves that these ways are open if a recipe opens them.
func TestWhatARecipeAllows(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.Method + " " + r.URL.Path)) }))
	defer server.Close()
	u, _ := url.Parse(server.URL)
	local := names{"inside.example": {{"127.0.0.1"}}}
	for _, tt := range []struct {
		settings, url, method string
		code                  abi.Code
		want                  string
	}{
		{`{"allow":["http://127.0.0.1:*"]}`, "http://127.0.0.1:PORT/a", "", abi.OK, "GET /a"},
		{`{"allow":["http://127.0.0.1:*"]}`, "http://inside.example:PORT/a", "", abi.Denied, ""},
		{`{"allow":["http://inside.example:*"]}`, "http://inside.example:PORT/a", "", abi.Denied, ""},
		{`{"allow":["http://inside.example:*"],"addresses":["127.0.0.0/8"]}`, "http://inside.example:PORT/a", "", abi.OK, "GET /a"},
		{`{"allow":["http://inside.example:*"],"addresses":["127.0.0.2"]}`, "http://inside.example:PORT/a", "", abi.Denied, ""},
		{`{"allow":["http://*.example:*"],"addresses":["127.0.0.1"]}`, "http://INSIDE.example:PORT/a", "", abi.OK, "GET /a"},
		{`{"allow":["http://*.inside.example:*"],"addresses":["127.0.0.1"]}`, "http://inside.example:PORT/a", "", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1"]}`, "http://127.0.0.1:PORT/a", "", abi.Denied, ""},
		{`{"allow":["https://127.0.0.1:*"]}`, "http://127.0.0.1:PORT/a", "", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1:*/v1/*"]}`, "http://127.0.0.1:PORT/v1/a", "", abi.OK, "GET /v1/a"},
		{`{"allow":["http://127.0.0.1:*/v1/*"]}`, "http://127.0.0.1:PORT/v1/a/b", "", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/a/b?q=1#f", "", abi.OK, "GET /v1/a/b"},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/../admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/%2e%2e/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..%2fadmin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT//v1/x", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v2", "", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1:9/metrics","http://*:*"]}`, "http://127.0.0.1:PORT/admin", "", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1:9/metrics","http://127.0.0.1:*/open"]}`, "http://127.0.0.1:PORT/open", "", abi.OK, "GET /open"},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..;/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..;x=1/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/%2e%2e;/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..%3b/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/%252e%252e%252fadmin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..%20/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/..%09/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/%c0%ae%c0%ae/admin", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*/v1/**"]}`, "http://127.0.0.1:PORT/v1/x%0d%0aHost:%20b/", "", abi.InvalidArgument, ""},
		{`{"allow":["http://127.0.0.1:*"]}`, "http://127.0.0.1:PORT/", "POST", abi.Denied, ""},
		{`{"allow":["http://127.0.0.1:*"],"methods":["POST"]}`, "http://127.0.0.1:PORT/", "POST", abi.OK, "POST /"},
	} {
		g := open(t, local, tt.settings)
		r := request(t, g, tt.method, strings.ReplaceAll(tt.url, "PORT", u.Port()), nil, "")
		if r.Code != tt.code || string(r.Payload) != tt.want {
			t.Errorf("%s %s %s: %s %q %q", tt.settings, tt.method, tt.url, r.Code, r.Payload, r.Text)
		}
	}
}

// TestSettingsAreRefused proves which settings are refused, and which lead to warnings.
func TestSettingsAreRefused(t *testing.T) {
	for _, settings := range []string{
		`{}`, `{"allow":[]}`, `{"allow":["api.example.com"]}`, `{"allow":["ftp://x.example"]}`, `{"allow":["https://user:pass@x.example"]}`, `{"allow":["https://x.example?token=1"]}`,
		`{"allow":["https://x.example:0"]}`, `{"allow":["https://x.example:99999"]}`, `{"allow":["https://127.1"]}`, `{"allow":["https://0x7f.1"]}`, `{"allow":["https://a..b"]}`, `{"allow":["https://*x.example"]}`,
		`{"allow":["https://x.example"],"methods":["CONNECT"]}`, `{"allow":["https://x.example"],"methods":["get"]}`, `{"allow":["https://x.example"],"headers":{"Host":"y"}}`,
		`{"allow":["https://x.example"],"headers":{"X":"a\r\nb"}}`, `{"allow":["https://x.example"],"headers":{"a b":"c"}}`, `{"allow":["https://x.example"],"addresses":["localhost"]}`,
		`{"allow":["https://x.example"],"addresses":["::ffff:1.2.3.4"]}`, `{"allow":["https://x.example"],"retries":101}`, `{"allow":["https://x.example"],"retry_on":["200"]}`,
		`{"allow":["https://x.example"],"proxy":"http://u:p@proxy.example"}`, `{"allow":["https://x.example"],"proxy":"proxy"}`, `{"allow":["https://x.example"],"ca":"none"}`,
		`{"allow":["https://x.example"],"on_failure":"nothing"}`, `{"allow":["https://x.example"],"max_response":1099511627776}`, `[]`,
	} {
		var typed *abi.Error
		if _, err := New().Open(json.RawMessage(settings)); !errors.As(err, &typed) || typed.Code != abi.InvalidArgument || typed.Remedy == "" {
			t.Errorf("%s: %v", settings, err)
		}
	}
	for settings, want := range map[string]int{
		`{"allow":["https://*"]}`: 1, `{"allow":["https://*.com"]}`: 1, `{"allow":["https://*.example.com"]}`: 0, `{"allow":["http://x.example"],"headers":{"a":"b"}}`: 1,
		`{"allow":["https://x.example"],"addresses":["0.0.0.0/0"]}`: 1, `{"allow":["https://x.example"],"proxy":"environment"}`: 1,
	} {
		if got := open(t, nil, settings).Warnings(); len(got) != want {
			t.Errorf("%s: %+v", settings, got)
		}
	}
}

// FuzzTargets proves for any URL that the client connects to the host that was checked.
func FuzzTargets(f *testing.F) {
	for _, seed := range []string{"http://127.0.0.1/", "http://a@b/", "https://[::1]:443/%2e%2e/", "http://x.example:80\\@y/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := parseTarget(text)
		if err != nil {
			return
		}
		again, err := url.Parse(target.url.String())
		if err != nil || !strings.EqualFold(again.Hostname(), target.url.Hostname()) || strings.ContainsAny(target.host, "@/\\ \x00") {
			t.Fatalf("%q is %+v", text, target)
		}
	})
}

// TestHeadersAndBoundsOfResponses proves that a header has one value, that the name of a
// header does not reveal a secret, and that masked secrets do not make a response exceed
// its bound.
func TestHeadersAndBoundsOfResponses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Abcdefgh"] = []string{"1"}
		w.Write([]byte(strings.Repeat("abcdefgh", 1000)))
	}))
	defer server.Close()
	settings := fmt.Sprintf(`{"allow":[%q],"headers":{"x-token":"abcdefgh"},"max_response":%%d}`, server.URL)
	if r := request(t, open(t, nil, fmt.Sprintf(settings, 1<<20)), "", server.URL, nil, ""); r.Code != abi.OK || r.Headers["x-abcdefgh"] != "" || strings.Contains(string(r.Payload), "abcdefgh") {
		t.Errorf("the result is %s %s %v", r.Code, r.Text, r.Headers)
	}
	if r := request(t, open(t, nil, fmt.Sprintf(settings, 8000)), "", server.URL, nil, ""); r.Code != abi.TooLarge || len(r.Payload) > 0 {
		t.Errorf("a response of 8,000 bytes with secrets is %s, with %d bytes", r.Code, len(r.Payload))
	}
	if r := request(t, open(t, nil, fmt.Sprintf(settings, 1<<20)), "", server.URL, map[string]string{"x-a": "1", "X-A": "2"}, ""); r.Code != abi.InvalidArgument {
		t.Errorf("a header that is given twice is %s", r.Code)
	}
}

// TestAddressesOfTheSystemArePlain proves that names in the system's hosts file are
// checked like others.
func TestAddressesOfTheSystemArePlain(t *testing.T) {
	found, err := systemResolver{}.addresses(t.Context(), "localhost")
	if err != nil {
		t.Skip(err)
	}
	for _, a := range found {
		if a.Is4In6() {
			t.Errorf("localhost has the address %s", a)
		}
	}
}
