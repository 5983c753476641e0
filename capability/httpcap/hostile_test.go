package httpcap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw is a server that answers each request with f and then closes the connection. It
// returns its address.
func raw(t *testing.T, f func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(2 * time.Second))
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				f(c)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// says makes a server write a text.
func says(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// endless makes a server write a text again and again.
func endless(first, text string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, first)
		for err == nil {
			_, err = io.WriteString(c, text)
		}
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// TestHostileServers proves that no server can make an attempt last longer, or a result be
// larger, than the recipe says, and that each failure has a code.
func TestHostileServers(t *testing.T) {
	bomb := zipped(make([]byte, 64<<20))
	twice := zipped(bomb)
	ok := "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name  string
		serve func(net.Conn)
		code  abi.Code
		again bool
	}{
		{"closes at once", func(net.Conn) {}, abi.Unavailable, true},
		{"resets", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, abi.Unavailable, true},
		{"says nothing", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, abi.Deadline, true},
		{"speaks another protocol", says("220 mail.example ESMTP\r\n"), abi.Unavailable, true},
		{"has no status", says("HTTP/1.1\r\n\r\n"), abi.Unavailable, true},
		{"has a status that is not a number", says("HTTP/1.1 abc OK\r\n\r\n"), abi.Unavailable, true},
		{"stops within its headers", says(ok + "Content-"), abi.Unavailable, true},
		{"has a header without a name", says(ok + ": x\r\n\r\n"), abi.Unavailable, true},
		{"has endless headers", endless(ok, "X-A: "+strings.Repeat("a", 1000)+"\r\n"), abi.Unavailable, true},
		{"has one endless header", endless(ok+"X-A: ", strings.Repeat("a", 1000)), abi.Unavailable, true},
		{"answers 100 forever", endless("", "HTTP/1.1 100 Continue\r\n\r\n"), abi.Unavailable, true},
		{"drips headers", func(c net.Conn) {
			_, err := io.WriteString(c, ok)
			for err == nil {
				time.Sleep(20 * time.Millisecond)
				_, err = io.WriteString(c, "X-A: b\r\n")
			}
		}, abi.Deadline, true},
		{"drips its body", func(c net.Conn) {
			_, err := io.WriteString(c, ok+"Content-Length: 10000\r\n\r\n")
			for err == nil {
				time.Sleep(20 * time.Millisecond)
				_, err = io.WriteString(c, "x")
			}
		}, abi.Deadline, true},
		{"stops within its body", says(ok + "Content-Length: 100\r\n\r\nabc"), abi.Unavailable, true},
		{"says that its body is huge", says(ok + "Content-Length: 1099511627776\r\n\r\nabc"), abi.TooLarge, false},
		{"has a negative length", says(ok + "Content-Length: -1\r\n\r\nabc"), abi.Unavailable, true},
		{"has two lengths", says(ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), abi.Unavailable, true},
		{"has an endless body", endless(ok+"\r\n", strings.Repeat("a", 1000)), abi.TooLarge, false},
		{"has endless chunks", endless(ok+"Transfer-Encoding: chunked\r\n\r\n", "3e8\r\n"+strings.Repeat("a", 1000)+"\r\n"), abi.TooLarge, false},
		{"has a chunk that is larger than any", says(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc"), abi.Unavailable, true},
		{"has invalid chunks", says(ok + "Transfer-Encoding: chunked\r\n\r\nzzz\r\nabc"), abi.Unavailable, true},
		{"has an endless extension of a chunk", endless(ok+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("a", 1000)), abi.Unavailable, true},
		{"sends a bomb", says(fmt.Sprintf("%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(bomb), bomb)), abi.TooLarge, false},
		{"sends a bomb without a length", says(ok + "Content-Encoding: gzip\r\n\r\n" + string(bomb)), abi.TooLarge, false},
		{"sends invalid gzip", says(ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), abi.Unavailable, true},
		{"stops within gzip", says(ok + "Content-Encoding: gzip\r\n\r\n" + string(bomb[:200])), abi.Unavailable, true},
		{"is busy", says("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"), abi.Unavailable, true},
		{"redirects to a file", says("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"), abi.InvalidArgument, false},
		{"redirects to another server", says("HTTP/1.1 307 Found\r\nLocation: http://127.0.0.2:1/\r\nContent-Length: 0\r\n\r\n"), abi.Denied, false},
		{"redirects to the metadata service", says("HTTP/1.1 301 Moved\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n"), abi.Denied, false},
		{"redirects to an odd notation", says("HTTP/1.1 303 See\r\nLocation: http://2130706433/\r\nContent-Length: 0\r\n\r\n"), abi.InvalidArgument, false},
		{"redirects without an end", says("HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"), abi.LimitExceeded, false},
		{"does not end the body of a redirect", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 100\r\n\r\nabc")
			_, _ = io.Copy(io.Discard, c)
		}, abi.LimitExceeded, false},
		{"upgrades", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), abi.Unsupported, false},
		{"upgrades and says nothing", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, abi.Unsupported, false},
		// Unusual contents that are allowed.
		{"sends gzip twice", says(fmt.Sprintf("%sContent-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n%s", ok, len(twice), twice)), abi.OK, false},
		{"has a body after 204", says("HTTP/1.1 204 None\r\n\r\nabc"), abi.OK, false},
		{"sends more than it says", says(ok + "Content-Length: 3\r\n\r\nabcdef"), abi.OK, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := raw(t, tt.serve)
			g := open(t, nil, `{"allow":["http://127.0.0.1:*"],"max_response":1048576,"redirects":3}`)
			begun := time.Now()
			r := request(t, g, "GET", "http://"+address+"/", nil, "")
			if r.Code != tt.code || r.Again != tt.again || r.Code != abi.OK && r.Text == "" {
				t.Errorf("%s, again %v: %q", r.Code, r.Again, r.Text)
			}
			if len(r.Payload) > 1<<20 || time.Since(begun) > time.Minute {
				t.Errorf("a result of %d bytes after %v", len(r.Payload), time.Since(begun))
			}
			if tt.name == "is busy" && (r.Status != 503 || r.After != 7*time.Second) {
				t.Errorf("status %d, after %v", r.Status, r.After)
			}
		})
	}
}

// TestTLS proves that a connection is only made to a server with a certificate that is
// trusted, for its name.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.Config.ErrorLog = nil
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	local := names{"example.com": {{"127.0.0.1"}}, "other.test": {{"127.0.0.1"}}}
	settings := func(more string) string {
		return `{"allow":["https://*:*","http://*:*"],"addresses":["127.0.0.1"]` + more + `}`
	}
	trusted := settings(fmt.Sprintf(`,"ca":%q`, ca))
	for _, tt := range []struct {
		settings, url string
		code          abi.Code
	}{
		{trusted, "https://example.com:" + port, abi.OK},
		{settings(""), "https://example.com:" + port, abi.Denied},
		{trusted, "https://other.test:" + port, abi.Denied},
		{trusted, "http://example.com:" + port, abi.OK}, // with the status 400
	} {
		if r := request(t, open(t, local, tt.settings), "GET", tt.url, nil, ""); r.Code != tt.code {
			t.Errorf("%s: %s %q", tt.url, r.Code, r.Text)
		}
	}
	plain := raw(t, says("HTTP/1.1 200 OK\r\n\r\n"))
	if r := request(t, open(t, local, trusted), "GET", "https://"+plain+"/", nil, ""); r.Code == abi.OK {
		t.Error("a server without TLS was accepted")
	}
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} //nolint:gosec // it must be refused
	old.StartTLS()
	defer old.Close()
	if r := request(t, open(t, local, trusted), "GET", old.URL, nil, ""); r.Code == abi.OK {
		t.Error("a version of TLS that is broken was accepted")
	}
}

// TestSecretsStayWithTheirServer proves that the headers of the recipe go to the server
// that was named, and neither to another one nor back to the creature.
func TestSecretsStayWithTheirServer(t *testing.T) {
	var stolen atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Store(fmt.Sprint(r.Header))
	}))
	defer thief.Close()
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/leave" {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			return
		}
		got.Store(r.Header.Clone())
		w.Header().Set("X-Echo", r.Header.Get("X-Key"))
		_, _ = io.WriteString(w, "you said "+r.Header.Get("Authorization"))
	}))
	defer server.Close()
	g := open(t, nil, `{"allow":["http://127.0.0.1:*"],"redirects":2,"methods":["POST"],"headers":{"Authorization":"Bearer s3cr3t-token","X-Key":"another-secret"}}`)
	r := request(t, g, "POST", server.URL+"/", map[string]string{"x-mine": "1"}, "hello")
	seen := got.Load().(http.Header)
	if seen.Get("Authorization") != "Bearer s3cr3t-token" || seen.Get("Idempotency-Key") != "key-1" || seen.Get("X-Mine") != "1" {
		t.Errorf("the server got %v", seen)
	}
	if text := string(r.Payload) + fmt.Sprint(r.Headers); strings.Contains(text, "s3cr3t-token") || strings.Contains(text, "another-secret") {
		t.Errorf("the creature gets %s", text)
	}
	if r := request(t, g, "POST", server.URL+"/leave", nil, "hello"); r.Code != abi.OK {
		t.Fatalf("%s %q", r.Code, r.Text)
	}
	if text := stolen.Load().(string); strings.Contains(text, "secret") || strings.Contains(text, "s3cr3t") {
		t.Errorf("the other server got %s", text)
	}
	for _, name := range []string{"authorization", "Host", "Content-Length", "Transfer-Encoding", "Proxy-Authorization", "a b", "x\r\ny"} {
		if r := request(t, g, "POST", server.URL+"/", map[string]string{name: "x"}, ""); r.Code != abi.Denied && r.Code != abi.InvalidArgument {
			t.Errorf("a creature may set %q: %s", name, r.Code)
		}
	}
}

// TestNoProxyFromTheEnvironment proves that the environment does not decide where requests
// go, unless the recipe allows it.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	var through atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { through.Add(1) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	resolves := names{"public.example": {{"127.0.0.1"}}}
	if r := request(t, open(t, resolves, `{"allow":["http://public.example"]}`), "GET", "http://public.example/", nil, ""); r.Code != abi.Denied || through.Load() != 0 {
		t.Errorf("%s %q; %d requests went through the proxy", r.Code, r.Text, through.Load())
	}
	if r := request(t, open(t, resolves, `{"allow":["http://public.example"],"proxy":"`+proxy.URL+`"}`), "GET", "http://public.example/", nil, ""); r.Code != abi.OK || through.Load() != 1 {
		t.Errorf("%s %q; %d requests went through the proxy", r.Code, r.Text, through.Load())
	}
}
