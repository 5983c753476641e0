package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// The events of a change name the token of its caller, or how the caller connected. A caller
// cannot choose either, and a reader sees both.
func TestChangesNameTheirCaller(t *testing.T) {
	w := start(t, serve.Options{Tokens: []serve.Token{
		{Secret: readToken, Rights: operations.Rights{Scope: operations.Read}},
		{Secret: operateToken, Rights: operations.Rights{Scope: operations.Operate, Name: "ann", Via: "chosen"}},
		{Secret: adminToken, Rights: operations.Rights{Scope: operations.Admin}},
	}})
	w.populate()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // in place of a private socket
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.h.ServeTrusted(ctx, listener) }()
	defer func() {
		w.c.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	socket := *w
	socket.addr = listener.Addr().String()

	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	browser := func(link string) []string {
		r := w.request("GET", link, "")
		r.Body.Close()
		if len(r.Cookies()) != 1 {
			t.Fatalf("no cookie: %d", r.StatusCode)
		}
		return []string{"Cookie", r.Cookies()[0].Name + "=" + r.Cookies()[0].Value}
	}
	code := w.request("POST", "/api/v1/login-code", "", bearer(operateToken)...)
	text, err := io.ReadAll(code.Body)
	code.Body.Close()
	var made struct{ Code string }
	if err != nil || json.Unmarshal(text, &made) != nil {
		t.Fatal(string(text), err)
	}
	for _, c := range []struct {
		name    string
		w       *world
		headers []string
		want    journal.Attribution
	}{
		{"a token with a name", w, bearer(operateToken), journal.Attribution{By: "ann", Via: "token"}},
		{"a token", w, bearer(adminToken), journal.Attribution{Via: "token"}},
		{"a browser, by a token", w, browser("/login?code=" + made.Code), journal.Attribution{By: "ann", Via: "browser"}},
		{"a browser, by the link", w, browser("/login?code=" + w.h.LoginCode(operations.Rights{Scope: operations.Admin})), journal.Attribution{Via: "browser"}},
		{"the socket", &socket, nil, journal.Attribution{Via: "socket"}},
	} {
		for _, op := range []string{"stop_creature", "start_creature"} {
			r := c.w.request("POST", "/api/v1/"+op, `{"creature":"a"}`, append(c.headers, "Content-Type", "application/json")...)
			answer, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s", c.name, r.StatusCode, answer)
			}
		}
		c.want.Call = "start_creature"
		_, history := w.do(readToken, "history", `{"graph":"a","kinds":["creature_started","topology_changed"]}`)
		var result struct {
			Events []struct{ Payload journal.Attribution }
		}
		if err := json.Unmarshal([]byte(history), &result); err != nil || len(result.Events) < 2 {
			t.Fatalf("%s: %s, %v", c.name, history, err)
		}
		for _, ev := range result.Events[len(result.Events)-2:] {
			if ev.Payload != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, ev.Payload, c.want)
			}
		}
	}
	w.stream(readToken, "?after=start&kinds=creature_stopped", func(ev streamed) bool {
		if !strings.Contains(ev.data, `"call":"stop_creature","by":"ann","via":"token"`) {
			t.Errorf("the stream has %s", ev.data)
		}
		return false
	})
}
