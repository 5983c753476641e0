package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

const jsonBody = "Content-Type: application/json\r\n"

// post is a request for an operation, with further header lines.
func post(operation, body string, lines ...string) string {
	return fmt.Sprintf("POST /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s%s\r\n%s", operation, len(body), jsonBody, join(lines), body)
}

func get(path string, lines ...string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, join(lines))
}

func join(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

func bearer(token string) string { return "Authorization: Bearer " + token }

// hostile are requests that must not get in, each with the status of its answer; 0 means
// that the connection is closed, or that the answer is that of an HTTP library.
var hostile = []struct {
	name, request string
	status        int
}{
	{"no token", post("status", "{}"), 401},
	{"a wrong token", post("status", "{}", bearer("token-that-may-do-alL")), 401},
	{"an empty token", post("status", "{}", "Authorization: Bearer "), 401},
	{"the beginning of a token", post("status", "{}", bearer(adminToken[:15])), 401},
	{"a token and more", post("status", "{}", bearer(adminToken+"x")), 401},
	{"another scheme", post("status", "{}", "Authorization: Basic "+adminToken), 401},
	{"a token in the query", post("status?token="+adminToken, "{}"), 401},
	{"a made-up cookie", post("status", "{}", "Cookie: terrarium=AAAA"), 401},
	{"a wrong token beside a cookie", post("status", "{}", bearer("x"), "Cookie: terrarium=AAAA"), 401},
	{"a made-up code", get("/login?code=AAAAAAAAAAAAAAAAAAAAAAAAAA"), 401},
	{"an empty code", get("/login?code="), 400},
	{"no code", get("/login"), 400},
	{"events without a token", get("/api/v1/events"), 401},
	{"metrics without a token", get("/metrics"), 401},
	{"a foreign host", strings.Replace(post("status", "{}", bearer(adminToken)), "localhost", "evil.example", 1), 421},
	{"a foreign host with our port", strings.Replace(post("status", "{}", bearer(adminToken)), "localhost", "evil.example:7480", 1), 421},
	{"a host that ends like ours", strings.Replace(get("/"), "localhost", "localhost.evil.example", 1), 421},
	{"a host with a loopback address in it", strings.Replace(get("/"), "localhost", "127.0.0.1.evil.example", 1), 421},
	{"another address", strings.Replace(get("/"), "localhost", "10.1.2.3", 1), 421},
	{"an unspecified address", strings.Replace(get("/"), "localhost", "0.0.0.0", 1), 421},
	{"an absolute address of another host", strings.Replace(get("/"), "/ HTTP", "http://evil.example/ HTTP", 1), 421},
	{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
	{"two hosts", strings.Replace(get("/"), "Host:", "Host: localhost\r\nHost:", 1), 400},
	{"a foreign origin", post("status", "{}", bearer(adminToken), "Origin: https://evil.example"), 403},
	{"no origin of a sandboxed page", post("status", "{}", bearer(adminToken), "Origin: null"), 403},
	{"our host at another port", post("status", "{}", bearer(adminToken), "Origin: http://localhost:9999"), 403},
	{"a cross-site fetch", post("status", "{}", bearer(adminToken), "Sec-Fetch-Site: cross-site"), 403},
	{"a same-site fetch", post("status", "{}", bearer(adminToken), "Sec-Fetch-Site: same-site"), 403},
	{"a cross-site stream", get("/api/v1/events", bearer(adminToken), "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"), 403},
	{"a cross-site navigation to the API", get("/api/v1/events", bearer(adminToken), "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"), 403},
	{"our page in a cross-site frame", get("/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"), 403},
	{"a form", strings.Replace(post("status", "{}", bearer(adminToken)), "application/json", "text/plain", 1), 415},
	{"a form that looks like JSON", strings.Replace(post("status", "{}", bearer(adminToken)), "application/json", "text/plain; application/json", 1), 415},
	{"an operation with GET", get("/api/v1/status", bearer(adminToken)), 405},
	{"an override of the method", get("/api/v1/status", bearer(adminToken), "X-HTTP-Method-Override: POST"), 405},
	{"PUT", "PUT /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + bearer(adminToken) + "\r\n\r\n", 405},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
	{"CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
	{"an operation of a connection", post("shutdown", "{}", bearer(adminToken)), 501},
	{"a subscription without a stream", post("subscribe", "{}", bearer(adminToken)), 501},
	{"an unknown operation", post("exit", "{}", bearer(adminToken)), 400},
	{"an operation with a path in it", post("..%2fstatus", "{}", bearer(adminToken)), 400},
	{"an operation with NUL", post("status%00", "{}", bearer(adminToken)), 400},
	{"a field twice", post("status", `{"graph":"a","graph":"b"}`, bearer(adminToken)), 400},
	{"an unknown field", post("status", `{"graf":"a"}`, bearer(adminToken)), 400},
	{"a list", post("status", `[]`, bearer(adminToken)), 400},
	{"null", post("status", `null`, bearer(adminToken)), 400},
	{"two values", post("status", `{}{}`, bearer(adminToken)), 400},
	{"deep JSON", post("status", strings.Repeat(`{"graph":`, 20_000), bearer(adminToken)), 400},
	{"bytes that are not UTF-8", post("send", "{\"channel\":\"\xff\"}", bearer(adminToken)), 400},
	{"a negative length", "POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
	{"two lengths", strings.Replace(post("status", "{}", bearer(adminToken)), "Content-Length: 2", "Content-Length: 2\r\nContent-Length: 3", 1), 400},
	{"a length and chunks", strings.Replace(post("status", "{}", bearer(adminToken)), "Content-Length: 2", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x", 1), 501},
	{"huge headers", get("/", "X-Large: "+strings.Repeat("x", 64<<10)), 431},
	{"many headers", get("/", strings.Split(strings.Repeat("X-Y: 1 ", 9000), " ")...), 0},
	{"a path above the page", get("/../../etc/passwd"), 0},
	{"an encoded path above the page", get("/%2e%2e/%2e%2e/etc/passwd"), 0},
	{"a path with backslashes", get(`/..\..\etc\passwd`), 404},
	{"the source of the page", get("/page/index.html"), 404},
	{"a path with NUL", get("/app.js%00.css"), 404},
	{"a drive", get("/C:/windows/win.ini"), 404},
	{"a header with a line break", get("/", "X: a\rSet-Cookie: b=c"), 400},
	{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0},
	{"HTTP/0.9", "GET /\r\n\r\n", 400},
	{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
	{"an unknown argument of the stream", get("/api/v1/events?token=x", bearer(adminToken)), 400},
	{"an invalid cursor", get("/api/v1/events?after=AAAA", bearer(adminToken)), 400},
	{"a Last-Event-ID that is not a cursor", get("/api/v1/events", bearer(adminToken), "Last-Event-ID: ../../x"), 400},
	{"a huge buffer", get("/api/v1/events?buffer=99999999999", bearer(adminToken)), 429},
	{"a negative buffer", get("/api/v1/events?buffer=-1", bearer(adminToken)), 400},
	{"a malformed query", get("/api/v1/events?after=%zz", bearer(adminToken)), 400},
	{"a path as a module with too little scope", post("add_creature", `{"name":"x","module":"/etc/passwd"}`, bearer(operateToken)), 403},
	{"the same in a batch", post("batch", `{"ops":[{"op":"add_creature","name":"x","module":"/etc/passwd"}]}`, bearer(operateToken)), 403},
	{"another directory with too little scope", post("sessions", `{"dir":"/"}`, bearer(operateToken)), 403},
	{"a file to write with too little scope", post("export", `{"graph":"a","path":"/tmp/x"}`, bearer(operateToken)), 403},
}

// Hostile requests are refused, reveal nothing, and do not stop the others.
func TestHostileRequests(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.request); err != nil && c.status != 0 {
				t.Fatal(err)
			}
			if half, ok := conn.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				if c.status != 0 {
					t.Fatal(err)
				}
				return
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			if c.status != 0 && answer.StatusCode != c.status || c.status == 0 && answer.StatusCode == 200 {
				t.Errorf("%d %s", answer.StatusCode, text)
			}
			for _, secret := range []string{adminToken, operateToken, readToken, "root:", "package serve"} {
				if strings.Contains(string(text), secret) {
					t.Errorf("it says %s", text)
				}
			}
			if answer.Header.Get("Access-Control-Allow-Origin") != "" || answer.Header.Get("Set-Cookie") != "" {
				t.Error(answer.Header)
			}
		})
	}
	w.must("status", "{}")
}

// A body over the bound gets an error, without being read to its end.
func TestLargeBody(t *testing.T) {
	w := start(t, serve.Options{})
	body := strings.NewReader(`{"graph":"` + strings.Repeat("x", operations.MaxRequest) + `"}`)
	r := httptest.NewRequest("POST", "http://localhost/api/v1/status", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+adminToken)
	answer := httptest.NewRecorder()
	w.h.ServeHTTP(answer, r)
	if answer.Code != http.StatusRequestEntityTooLarge || body.Len() == 0 && answer.Code == 200 {
		t.Error(answer.Code, answer.Body.String())
	}
}

// A token for one graph gives no access to another one.
func TestTokenForAGraph(t *testing.T) {
	const token = "token-for-the-graph-of-a"
	w := start(t, serve.Options{Tokens: []serve.Token{
		{Secret: adminToken, Rights: operations.Rights{Scope: operations.Admin}},
		{Secret: token, Rights: operations.Rights{Scope: operations.Operate, Graphs: []string{"a"}}},
	}})
	w.populate()
	w.must("add_creature", `{"name":"secret-b","module":"builtin:echo"}`)
	w.must("add_channel", `{"graph":"secret-b","name":"hidden"}`)
	w.must("send_to", `{"creature":"secret-b","payload":"confidential","durable":true}`)
	w.must("wait_idle", ``)
	inside := [][2]string{
		{"status", `{}`}, {"status", `{"graph":"a"}`}, {"history", `{}`}, {"send", `{"channel":"lines","payload":"x"}`},
		{"send_to", `{"creature":"a","payload":"x"}`}, {"dead_letters", `{}`}, {"state", `{"creature":"a"}`}, {"search", `{"query":"confidential"}`},
		{"lineage", `{}`}, {"stop_creature", `{"creature":"a"}`}, {"start_creature", `{"creature":"a"}`},
		{"batch", `{"ops":[{"op":"promote","creature":"a"}]}`}, {"connect", `{"from":"a","to":"a","channel":"new"}`},
	}
	for _, c := range inside {
		status, text := w.do(token, c[0], c[1])
		if status != http.StatusOK || strings.Contains(text, "secret-b") || strings.Contains(text, "confidential") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
	outside := [][2]string{
		{"status", `{"graph":"secret-b"}`}, {"history", `{"graph":"secret-b"}`}, {"send", `{"channel":"hidden","payload":"x"}`},
		{"send_to", `{"creature":"secret-b","payload":"x"}`}, {"dead_letters", `{"graph":"secret-b"}`}, {"state", `{"creature":"secret-b"}`},
		{"connect", `{"from":"a","to":"secret-b"}`}, {"connect", `{"from":"secret-b","to":"a"}`}, {"set_listen", `{"creature":"a","channel":"hidden","on":true}`},
		{"batch", `{"ops":[{"op":"promote","creature":"a"},{"op":"promote","creature":"secret-b"}]}`}, {"sessions", `{}`},
		{"wires", `{"creature":"secret-b"}`}, {"timers", `{"creature":"secret-b"}`}, {"awareness", `{"creature":"secret-b"}`},
		{"request", `{"creature":"secret-b","payload":"x"}`}, {"redeliver", `{"graph":"secret-b","message":"x"}`}, {"remove_channel", `{"channel":"hidden"}`},
		{"search", `{"query":"confidential","graph":"secret-b"}`}, {"lineage", `{"graph":"secret-b"}`}, {"tool", `{"caller":"secret-b","name":"group_status"}`},
	}
	for _, c := range outside {
		if status, text := w.do(token, c[0], c[1]); status != http.StatusForbidden || strings.Contains(text, "confidential") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
	sessions := w.must("sessions", "{}")
	for part := range strings.SplitSeq(sessions, `"session":"`) {
		id, _, _ := strings.Cut(part, `"`)
		if status, text := w.do(token, "history", `{"session":"`+id+`"}`); status == http.StatusOK {
			t.Errorf("history of %s: %s", id, text)
		}
	}
	w.stream(token, "?after=start&payload=1", func(ev streamed) bool {
		if strings.Contains(ev.data, "confidential") || strings.Contains(ev.data, "secret-b") {
			t.Errorf("%+v", ev)
		}
		return ev.event != "topology_changed" || !strings.Contains(ev.data, "new")
	})
}

// The meaning of names can change within a batch, and ids of removed things are in no graph:
// neither gives access to another graph.
func TestTokenForAGraphAndNamesThatChange(t *testing.T) {
	const token = "token-for-the-graph-of-tidy"
	w := start(t, serve.Options{Tokens: []serve.Token{
		{Secret: adminToken, Rights: operations.Rights{Scope: operations.Admin}},
		{Secret: token, Rights: operations.Rights{Scope: operations.Operate, Graphs: []string{"tidy"}}},
	}})
	for _, args := range []string{`{"name":"tidy","module":"builtin:echo"}`, `{"name":"other","module":"builtin:echo"}`} {
		w.must("add_creature", args)
	}
	w.must("add_channel", `{"graph":"tidy","name":"lines"}`)
	w.must("add_creature", `{"name":"census","module":"builtin:echo","join":"tidy"}`)
	own, err := w.tr.FindCreature("", "census")
	if err != nil {
		t.Fatal(err)
	}
	w.must("add_creature", `{"name":"census","module":"builtin:echo","join":"other"}`)
	w.must("add_channel", `{"graph":"other","name":"hidden"}`)
	w.must("send", `{"graph":"other","channel":"hidden","payload":"confidential","durable":true}`)
	hidden, err := w.tr.FindChannel("", "hidden")
	if err != nil {
		t.Fatal(err)
	}
	w.must("remove_channel", `{"channel":"hidden"}`)
	for _, c := range [][2]string{
		{"batch", `{"ops":[{"op":"remove_creature","creature":"` + string(own) + `"},{"op":"connect","from":"tidy","to":"census"}]}`},
		{"batch", `{"ops":[{"op":"remove_creature","creature":"census"},{"op":"stop_creature","creature":"census"}]}`},
		{"search", `{"query":"confidential","channels":["lines","` + string(hidden) + `"]}`},
		{"search", `{"query":"confidential","channels":["` + string(hidden) + `"]}`},
	} {
		if status, text := w.do(token, c[0], c[1]); status != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
	if graphs, err := w.tr.Status(""); err != nil || len(graphs) != 2 {
		t.Errorf("%d graphs, %v", len(graphs), err)
	}
	for _, c := range [][2]string{
		{"search", `{"query":"confidential","graph":"tidy","channels":["lines","` + string(hidden) + `"]}`},
		{"stop_creature", `{"creature":"census"}`}, // the one of the graph
		{"batch", `{"ops":[{"op":"connect","from":"tidy","to":"census","channel":"new"},{"op":"remove_channel","channel":"new"}]}`},
	} {
		if status, text := w.do(token, c[0], c[1]); status != http.StatusOK || strings.Contains(text, "confidential") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
}

// FuzzHandler sends arbitrary requests without credentials: none changes anything, panics,
// or gets more than the page and the state of the server.
func FuzzHandler(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.request)
	}
	f.Add(get("/"))
	tr, err := terrarium.New(f.Context(), terrarium.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := tr.Close(f.Context()); err != nil {
			f.Error(err)
		}
	})
	h := serve.NewHandler(tr, serve.Options{Tokens: []serve.Token{{Secret: "0123456789abcdefghijkl-this-is-never-sent", Rights: operations.Rights{Scope: operations.Admin}}}})
	open := map[string]bool{"/": true, "/app.js": true, "/app.css": true, "/index.html": true, "/healthz": true, "/readyz": true, "/api/v1/openapi.json": true}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code == http.StatusOK && !open[r.URL.Path] {
			t.Errorf("%q is answered with %s", text, answer.Body)
		}
		if answer.Code >= 500 && answer.Code != http.StatusNotImplemented {
			t.Errorf("%q: %d %s", text, answer.Code, answer.Body)
		}
	})
}
