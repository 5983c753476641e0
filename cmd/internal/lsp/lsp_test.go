package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/recipes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nothing is a validation without findings.
func nothing(context.Context, Validation) recipes.Diagnostics { return nil }

func framed(bodies ...string) string {
	var b strings.Builder
	for _, body := range bodies {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	return b.String()
}

// talk serves an input and returns the messages that were sent.
func talk(t *testing.T, input string, o Options) ([]message, error) {
	t.Helper()
	if o.Validate == nil {
		o.Validate = nothing
	}
	var out bytes.Buffer
	err := Serve(t.Context(), io.NopCloser(strings.NewReader(input)), &out, o)
	var sent []message
	for in := newFrames(&out); ; {
		data, ferr := in.next()
		if errors.Is(ferr, io.EOF) {
			return sent, err
		}
		if ferr != nil {
			t.Fatal(ferr)
		}
		m, failure := decode(data)
		if failure != nil {
			t.Fatal(failure)
		}
		sent = append(sent, *m)
	}
}

const (
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}`
	goodbye = `{"jsonrpc":"2.0","id":2,"method":"shutdown"}`
	leave   = `{"jsonrpc":"2.0","method":"exit"}`
)

func TestConversation(t *testing.T) {
	sent, err := talk(t, framed(hello, goodbye, leave), Options{Version: "1.2.3"})
	if err != nil || len(sent) != 2 || !strings.Contains(string(sent[0].Result), "1.2.3") || string(sent[1].ID) != "2" || string(sent[1].Result) != "null" {
		t.Errorf("%+v, %v", sent, err)
	}
	if _, err := talk(t, framed(hello, leave), Options{}); !errors.Is(err, ErrNoExit) {
		t.Errorf("exit without shutdown: %v", err)
	}
	if _, err := talk(t, framed(hello, goodbye), Options{}); !errors.Is(err, ErrNoExit) {
		t.Errorf("the end without exit: %v", err)
	}
}

func TestFrames(t *testing.T) {
	for input, want := range map[string]string{
		"content-length: 2\r\nX: y\r\n\r\n{}":             "",
		"Content-Length: 2\n\n{}":                         "",
		"Content-Length: 3\r\n\r\n{}":                     "ended within",
		"Content-Length: 2":                               "ended within",
		"\r\n{}":                                          "no Content-Length header",
		"Content-Length: -1\r\n\r\n":                      "not the length",
		"Content-Length: 99999999999999999999\r\n\r\n":    "not the length",
		"Content-Length: 9999999999\r\n\r\n":              "at most",
		"Content\r\n\r\n":                                 "not a header",
		strings.Repeat("a", 2*maxHeader):                  "longer than",
		strings.Repeat("a: b\r\n", 2*maxHeaders) + "\r\n": "more than",
		"Content-Length: 9000000\r\n\r\n{}":               "ended within",
		"Content-Length: 9000000000000000000\r\n\r\n{}":   "at most",
	} {
		data, err := newFrames(strings.NewReader(input)).next()
		switch {
		case want == "" && (err != nil || string(data) != "{}"):
			t.Errorf("%.40q is %q, %v", input, data, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.40q: %v, which should say %q", input, err, want)
		}
	}
	if _, err := newFrames(strings.NewReader("")).next(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the input: %v", err)
	}
}

// A request is answered as cancelled if it is cancelled while it waits, and its id can be
// used again afterwards.
func TestCancellation(t *testing.T) {
	var out bytes.Buffer
	s := newServer(Options{Validate: nothing}, &out)
	s.initialized = true
	m := &message{ID: json.RawMessage(`"a"`), Method: "textDocument/hover", Params: json.RawMessage(`{}`)}
	for _, cancelled := range []bool{true, false} {
		ctx, done, ok := s.pending.add(t.Context(), `"a"`)
		if !ok {
			t.Fatal("the id is still used")
		}
		if _, _, again := s.pending.add(t.Context(), `"a"`); again {
			t.Error("two requests have one id")
		}
		if cancelled {
			s.pending.stop(`"a"`)
		}
		s.pending.stop(`"b"`)
		if err := s.handle(&work{message: m, ctx: ctx, done: done}); err != nil {
			t.Fatal(err)
		}
		data, err := newFrames(&out).next()
		if err != nil || strings.Contains(string(data), fmt.Sprint(requestCancelled)) != cancelled {
			t.Errorf("cancelled %v: %s, %v", cancelled, data, err)
		}
		out.Reset()
	}
}

func TestPositions(t *testing.T) {
	l := newLines([]byte("a🐸b\né\n"))
	for _, c := range []struct {
		position
		offset int
		back   position
	}{
		{position{0, 0}, 0, position{0, 0}},
		{position{0, 1}, 1, position{0, 1}},
		{position{0, 2}, 1, position{0, 1}}, // within the frog
		{position{0, 3}, 5, position{0, 3}},
		{position{0, 99}, 6, position{0, 4}},
		{position{1, 1}, 9, position{1, 1}},
		{position{2, 0}, 10, position{2, 0}},
		{position{9, 9}, 10, position{2, 0}},
		{position{-1, 3}, 0, position{0, 0}},
	} {
		if got := l.offset(c.position); got != c.offset {
			t.Errorf("%v is at %d, not %d", c.position, got, c.offset)
		}
		if got := l.position(c.offset); got != c.back {
			t.Errorf("%d is %v, not %v", c.offset, got, c.back)
		}
	}
}

// Positions are the same in whatever order they are requested.
func TestPositionsInAnyOrder(t *testing.T) {
	text := []byte("a🐸b\né, 🐸🐸, x\n\nend")
	used := newLines(text)
	for _, step := range []int{1, 3, 7, 11} {
		for i := range len(text) + 1 {
			at := i * step % (len(text) + 1)
			if got, want := used.position(at), newLines(text).position(at); got != want {
				t.Errorf("%d is %v, not %v", at, got, want)
			}
		}
	}
}

// A check that panics becomes a finding and does not end the server.
func TestFindingsOfAPanic(t *testing.T) {
	s := &server{o: Options{Validate: func(context.Context, Validation) recipes.Diagnostics { panic("strange") }}}
	if found := s.findings(t.Context(), Validation{Path: "/a.hcl"}); len(found) != 1 || found[0].Range.File != "/a.hcl" {
		t.Errorf("%v", found)
	}
}

func TestPaths(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///a/b%20c/d.hcl": "/a/b c/d.hcl", "file://localhost/a": "/a", "file:///a/../b": "/b",
		"file://other/a": "", "http://a/b": "", "untitled:Untitled-1": "", "": "", "file:": "", "file:///%00": "", "%": "",
	} {
		got, ok := pathOf(uri)
		if ok != (want != "") || ok && filepath.ToSlash(got) != want {
			t.Errorf("%q is %q, %v", uri, got, ok)
		}
		if ok && !strings.Contains(uri, "..") && !strings.Contains(uri, "localhost") && uriOf(got) != uri {
			t.Errorf("%q is %q again", uri, uriOf(got))
		}
	}
}

// FuzzMessages feeds the server with arbitrary bytes. It must end without a panic, and
// send nothing but messages.
func FuzzMessages(f *testing.F) {
	open := `{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///nowhere/a.hcl","version":1,"text":"channel \"a\" {}\n"}}}`
	change := `{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///nowhere/a.hcl","version":2},"contentChanges":[{"range":{"start":{"line":0,"character":1},"end":{"line":0,"character":3}},"text":"🐸"}]}}`
	for _, method := range []string{"hover", "completion", "definition", "references", "prepareRename", "rename", "documentSymbol", "formatting"} {
		f.Add(framed(hello, open, change, `{"jsonrpc":"2.0","id":7,"method":"textDocument/`+method+`","params":{"textDocument":{"uri":"file:///nowhere/a.hcl"},"position":{"line":0,"character":10},"newName":"b"}}`, goodbye, leave))
	}
	f.Add(framed("{", "[]", `{"jsonrpc":"2.0","id":{}}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}`))
	f.Add("Content-Length: 10\r\n\r\n{")
	f.Add("Content-Length: -10\r\n\r\n{")
	f.Fuzz(func(t *testing.T, input string) {
		if strings.Contains(strings.ToLower(input), "file://") && !strings.Contains(input, "/nowhere/") {
			t.Skip("only texts of a folder that does not exist")
		}
		sent, err := talk(t, input, Options{})
		if err == nil && len(sent) == 0 {
			t.Error("it ended well without a response to shutdown")
		}
	})
}
