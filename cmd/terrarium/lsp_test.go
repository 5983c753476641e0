package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// editing is a scripted editor: it talks to a real terrarium lsp over pipes.
type editing struct {
	*process
	dir  string
	next int
	// published has the last diagnostics of each file, by name; other notifications are
	// in logged.
	published map[string][]string
	logged    []string
}

// reply is what the server sends.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func edit(t *testing.T, files map[string]string) *editing {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &editing{process: start(t, dir, "lsp"), dir: dir, published: map[string][]string{}}
}

func (e *editing) raw(body string) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		e.t.Fatal(err)
	}
}

func (e *editing) uri(name string) string { return "file://" + filepath.Join(e.dir, name) }

func (e *editing) notify(method string, params any) {
	e.t.Helper()
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		e.t.Fatal(err)
	}
	e.raw(string(data))
}

// read reads one message, and keeps what it publishes.
func (e *editing) read() *reply {
	e.t.Helper()
	header, err := textproto.NewReader(e.out).ReadMIMEHeader()
	if err != nil {
		e.t.Fatalf("%v\n%s", err, e.stderr)
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		e.t.Fatal(err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(e.out, body); err != nil {
		e.t.Fatal(err)
	}
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		e.t.Fatal(err)
	}
	switch r.Method {
	case "textDocument/publishDiagnostics":
		var p struct {
			URI         string `json:"uri"`
			Diagnostics []struct {
				Range    json.RawMessage `json:"range"`
				Severity int             `json:"severity"`
				Message  string          `json:"message"`
			} `json:"diagnostics"`
		}
		if err := json.Unmarshal(r.Params, &p); err != nil {
			e.t.Fatal(err)
		}
		found := []string{}
		for _, d := range p.Diagnostics {
			found = append(found, fmt.Sprintf("%s %d %s", place(d.Range), d.Severity, d.Message))
		}
		e.published[strings.TrimPrefix(p.URI, e.uri("")+"/")] = found
	case "window/logMessage":
		e.logged = append(e.logged, string(r.Params))
	}
	return &r
}

// place shortens a range to line:column-line:column.
func place(data json.RawMessage) string {
	var r struct{ Start, End struct{ Line, Character int } }
	if json.Unmarshal(data, &r) != nil {
		return string(data)
	}
	return fmt.Sprintf("%d:%d-%d:%d", r.Start.Line, r.Start.Character, r.End.Line, r.End.Character)
}

// respond reads until the response to a request.
func (e *editing) respond(id string) *reply {
	e.t.Helper()
	for {
		if r := e.read(); string(r.ID) == id && r.Method == "" {
			return r
		}
	}
}

func (e *editing) request(method string, params any) *reply {
	e.t.Helper()
	e.next++
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": e.next, "method": method, "params": params})
	if err != nil {
		e.t.Fatal(err)
	}
	e.raw(string(data))
	return e.respond(strconv.Itoa(e.next))
}

// result sends a request that must not fail.
func (e *editing) result(method string, params any) string {
	e.t.Helper()
	r := e.request(method, params)
	if r.Error != nil {
		e.t.Fatalf("%s: %s", method, r.Error.Message)
	}
	return string(r.Result)
}

func (e *editing) initialize(options map[string]any) {
	e.t.Helper()
	e.result("initialize", map[string]any{"rootUri": e.uri(""), "capabilities": map[string]any{}, "initializationOptions": options})
	e.notify("initialized", map[string]any{})
}

func (e *editing) open(name, text string) {
	e.t.Helper()
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "languageId": "terrarium", "version": 1, "text": text}})
}

// change replaces a part of a text, from line:column to line:column.
func (e *editing) change(name string, version int, from, to [2]int, text string) {
	e.t.Helper()
	at := func(p [2]int) map[string]int { return map[string]int{"line": p[0], "character": p[1]} }
	e.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": e.uri(name), "version": version},
		"contentChanges": []any{map[string]any{"range": map[string]any{"start": at(from), "end": at(to)}, "text": text}}})
}

func (e *editing) place(name string, line, character int, more ...string) map[string]any {
	p := map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}, "position": map[string]int{"line": line, "character": character}}
	if len(more) > 0 {
		p["newName"] = more[0]
	}
	return p
}

// findings waits until a file has been published with as many diagnostics.
func (e *editing) findings(name string, n int) []string {
	e.t.Helper()
	for {
		if found, ok := e.published[name]; ok && len(found) == n {
			delete(e.published, name)
			return found
		}
		e.read()
	}
}

// end closes the conversation as the protocol asks, and checks the exit code.
func (e *editing) end() {
	e.t.Helper()
	e.result("shutdown", nil)
	if r := e.request("textDocument/hover", e.place("team.hcl", 0, 0)); r.Error == nil || r.Error.Code != -32600 {
		e.t.Errorf("after shutdown a request is answered with %+v", r)
	}
	e.notify("exit", nil)
	// The input stays open: the server must not wait for its end.
	if _, err := io.Copy(io.Discard, e.out); err != nil {
		e.t.Error(err)
	}
	if err := e.cmd.Wait(); err != nil {
		e.t.Errorf("after shutdown and exit: %v\n%s", err, e.stderr)
	}
}

const teamRecipe = `channel "feed" { description = "what 🐸 says" }
channel "digest" {}

creature "reader" {
  module = "builtin:relay"
  listen = [channel.feed]
  send   = [channel.digest]
}
`

const teamTests = `test "echoes" {
  send {
    channel = channel.feed
    payload = "hello"
  }
  assert {
    condition = length(result.dead_letters) == 0
  }
}
`

func TestLanguageServer(t *testing.T) {
	e := edit(t, map[string]string{"team.hcl": teamRecipe, "tests.hcl": teamTests})
	if r := e.request("textDocument/hover", e.place("team.hcl", 0, 0)); r.Error == nil || r.Error.Code != -32002 {
		t.Errorf("before initialize a request is answered with %+v", r)
	}
	e.initialize(nil)
	e.open("team.hcl", teamRecipe)
	e.findings("team.hcl", 0)

	if got := e.result("textDocument/hover", e.place("team.hcl", 5, 22)); !strings.Contains(got, "what 🐸 says") || !strings.Contains(got, `"start":{"line":5,"character":20}`) {
		t.Errorf("hover: %s", got)
	}
	if got := e.result("textDocument/definition", e.place("team.hcl", 5, 22)); !strings.Contains(got, `"start":{"line":0,"character":9},"end":{"line":0,"character":13}`) {
		t.Errorf("definition: %s", got)
	}
	// Positions count UTF-16 code units: the frog has two.
	if got := e.result("textDocument/hover", e.place("team.hcl", 0, 20)); !strings.Contains(got, `"start":{"line":0,"character":17},"end":{"line":0,"character":28}`) {
		t.Errorf("hover of description: %s", got)
	}

	// A text with a mistake still has completion, and the finding is published.
	e.change("team.hcl", 2, [2]int{1, 7}, [2]int{1, 7}, " ")
	e.change("team.hcl", 3, [2]int{6, 2}, [2]int{6, 27}, "send = [channel.")
	var list struct{ Items []struct{ Label string } }
	if err := json.Unmarshal([]byte(e.result("textDocument/completion", e.place("team.hcl", 6, 18))), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[0].Label != "digest" || list.Items[1].Label != "feed" {
		t.Errorf("completion: %+v", list)
	}
	if got := e.findings("team.hcl", 1); !strings.Contains(got[0], " 1 ") {
		t.Errorf("the mistake is published as %q", got)
	}
	e.change("team.hcl", 4, [2]int{6, 2}, [2]int{6, 18}, "send   = [channel.digets]")
	if got := e.findings("team.hcl", 1); !strings.HasPrefix(got[0], "6:12-6:26 1 Unknown channel. No channel named \"digets\" is declared. Did you mean \"digest\"?") {
		t.Errorf("the unknown channel is published as %q", got)
	}
	e.change("team.hcl", 5, [2]int{6, 20}, [2]int{6, 26}, "digest")
	e.findings("team.hcl", 0)

	var renamed struct {
		Changes map[string][]struct {
			Range   json.RawMessage
			NewText string
		}
	}
	if got := e.result("textDocument/prepareRename", e.place("tests.hcl", 0, 0)); got != "null" {
		t.Errorf("in a text that is not open, the name is %s", got)
	}
	if err := json.Unmarshal([]byte(e.result("textDocument/rename", e.place("team.hcl", 0, 10, "lines"))), &renamed); err != nil {
		t.Fatal(err)
	}
	if len(renamed.Changes[e.uri("team.hcl")]) != 3 || len(renamed.Changes[e.uri("tests.hcl")]) != 1 || place(renamed.Changes[e.uri("tests.hcl")][0].Range) != "2:22-2:26" {
		t.Errorf("rename: %+v", renamed)
	}
	if got := e.request("textDocument/rename", e.place("team.hcl", 0, 10, "digest")); got.Error == nil || got.Error.Code != -32803 || !strings.Contains(got.Error.Message, "already a channel") {
		t.Errorf("rename to a taken name: %+v", got)
	}
	if got := e.result("textDocument/references", e.place("team.hcl", 0, 10)); strings.Count(got, `"uri"`) != 2 {
		t.Errorf("references: %s", got)
	}
	if got := e.result("textDocument/documentSymbol", e.place("team.hcl", 0, 0)); !strings.Contains(got, `creature \"reader\"`) {
		t.Errorf("symbols: %s", got)
	}
	if got := e.result("textDocument/formatting", e.place("team.hcl", 0, 0)); !strings.Contains(got, `channel \"digest\" {}`) {
		t.Errorf("formatting: %s", got)
	}
	e.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": e.uri("team.hcl")}})
	if got := e.result("textDocument/hover", e.place("team.hcl", 5, 22)); got != "null" {
		t.Errorf("hover in a closed text: %s", got)
	}
	if len(e.logged) > 0 {
		t.Errorf("the server complains: %q", e.logged)
	}
	e.end()
}

// The findings are those of validate: of all files of a folder, of scripts and of
// sub-recipes.
func TestLanguageServerFindings(t *testing.T) {
	e := edit(t, map[string]string{
		"team.hcl":          "variable \"size\" {}\nchannel \"a\" {}\nrecipe \"sub\" {\n  source = \"./sub\"\n  input  = channel.a\n}\n",
		"policies.hcl":      "policy \"send\" \"p\" {\n  file = \"p.js\"\n}\n",
		"p.js":              "(event) => {\n",
		"sub/sub.hcl":       "variable \"input\" { type = channel }\ncreature \"b\" {\n  module = \"builtin:relay\"\n  listen = [var.input]\n}\n",
		"apart/outside.hcl": "creature \"c\" {\n  module = \"/nowhere/else.wasm\"\n  listen = [channel.d]\n}\nchannel \"d\" {}\n",
	})
	e.initialize(nil)
	text := "variable \"input\" { type = channel }\ncreature \"b\" {\n  module = \"builtin:rely\"\n  listen = [var.input]\n}\n"
	e.open("sub/sub.hcl", text)
	if got := e.findings("sub/sub.hcl", 1); !strings.HasPrefix(got[0], "2:11-2:25 1 Unknown builtin creature.") {
		t.Errorf("the sub-recipe: %q", got)
	}
	if got := e.findings("team.hcl", 1); !strings.HasPrefix(got[0], "0:0-0:15 3 No value for variable size.") {
		t.Errorf("the variable without a value: %q", got)
	}
	if got := e.findings("p.js", 1); !strings.Contains(got[0], "Invalid script") {
		t.Errorf("the script: %q", got)
	}
	// Files outside the folder are not read, so there are no findings about them.
	e.open("apart/outside.hcl", "creature \"c\" {\n  module = \"/nowhere/else.wasm\"\n  listen = [channel.d]\n}\nchannel \"d\" {}\n")
	e.findings("apart/outside.hcl", 0)
	e.end()
}

// What a hostile or broken client sends is answered with an error, and the server continues.
func TestLanguageServerHostile(t *testing.T) {
	e := edit(t, map[string]string{"team.hcl": teamRecipe})
	for _, c := range []struct {
		body string
		code int
	}{
		{"{", -32700}, {"", -32700}, {"[]", -32600}, {`[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]`, -32600}, {`{"jsonrpc":"1.0","id":1,"method":"x"}`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, -32600}, {`{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 1000) + `","method":"x"}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, -32600}, {strings.Repeat("[", 100_000), -32700},
		{strings.Repeat(" ", 9<<20), -32600},
	} {
		e.raw(c.body)
		if r := e.respond("null"); r.Error == nil || r.Error.Code != c.code {
			t.Errorf("%.40q is answered with %+v", c.body, r.Error)
		}
	}
	e.initialize(nil)
	for method, code := range map[string]int{"no/such": -32601, "initialize": -32600, "textDocument/hover": -32602} {
		if r := e.request(method, []int{1}); r.Error == nil || r.Error.Code != code {
			t.Errorf("%s is answered with %+v", method, r.Error)
		}
	}
	e.notify("textDocument/didOpen", "no object")
	e.notify("no/such", nil)
	e.notify("$/cancelRequest", map[string]any{"id": 12345})
	e.raw(`{"jsonrpc":"2.0","id":99,"result":null}`) // a response to no request
	e.open("team.hcl", teamRecipe)
	for version, at := range [][2][2]int{{{-5, 3}, {99, 99}}, {{99, 0}, {0, 0}}, {{0, math.MaxInt}, {0, -9}}} {
		e.change("team.hcl", version+2, at[0], at[1], "x")
	}
	for _, at := range [][2]int{{-1, -1}, {math.MaxInt, math.MaxInt}, {0, math.MaxInt}} {
		if r := e.request("textDocument/completion", e.place("team.hcl", at[0], at[1])); r.Error != nil {
			t.Errorf("completion at %v: %v", at, r.Error)
		}
	}
	if r := e.request("textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": "file:///etc/passwd"}, "position": map[string]int{}}); string(r.Result) != "null" {
		t.Errorf("a file that is not open: %s", r.Result)
	}
	if len(e.logged) != 1 {
		t.Errorf("the log has %q", e.logged)
	}
	// Without a length, the server cannot know where the next message begins.
	if _, err := io.WriteString(e.in, "Content-Length: many\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, bufio.NewReader(e.out)); err != nil {
		t.Error(err)
	}
	if err := e.cmd.Wait(); err == nil || e.cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(e.stderr.String(), "not the length of a message") {
		t.Errorf("the end is %v: %s", err, e.stderr)
	}
}
