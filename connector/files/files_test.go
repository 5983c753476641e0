package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/files"
)

// started runs a connector of a kind until stop is called.
func started(t *testing.T, k connector.Kind, p connector.Port, settings any) (stop func() error) {
	t.Helper()
	data, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, p) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, p *connectortest.Port, until func(connectortest.View) bool) connectortest.View {
	t.Helper()
	v, err := p.Wait(t.Context(), until)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sent(n int) func(connectortest.View) bool {
	return func(v connectortest.View) bool { return len(v.Sent) >= n }
}

// TestSourceFollows follows a file that appears late, grows and is rotated meanwhile, and
// follows it again in another run: each line is taken once.
func TestSourceFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := connectortest.NewPort()
	settings := map[string]any{"path": path}
	stop := started(t, files.Source{}, p, settings)
	wait(t, p, func(v connectortest.View) bool { return v.Working > 0 })
	put(t, path, "one\ntwo\n")
	wait(t, p, sent(2))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, path+".1", "three\n") // by a writer that still has the file open
	put(t, path, "one\nfour\n")
	wait(t, p, sent(5))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	put(t, path, "five\n")
	stop = started(t, files.Source{}, p, settings)
	v := wait(t, p, sent(6))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two", "three", "one", "four", "five"}; !slices.Equal(v.Payloads(), want) {
		t.Errorf("the source sends %q, want %q", v.Payloads(), want)
	}
}

// TestSourceFollowsMuch follows a file that is read in several parts, both at the start and while it
// grows. Each line is taken once.
func TestSourceFollowsMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var want []string
	grow := func(lines int) {
		var text strings.Builder
		for range lines {
			want = append(want, fmt.Sprintf("line %05d", len(want)))
			text.WriteString(want[len(want)-1] + "\n")
		}
		put(t, path, text.String())
	}
	grow(30_000)
	p := connectortest.NewPort()
	stop := started(t, files.Source{}, p, map[string]any{"path": path})
	for _, lines := range []int{300, 200, 1, 20_000, 500, 7} {
		wait(t, p, sent(len(want)))
		grow(lines)
	}
	v := wait(t, p, sent(len(want)))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Payloads(), want) {
		t.Errorf("of %d lines, the source sends %d", len(want), len(v.Payloads()))
	}
}

// TestSourceLeavesOut writes a line that policies deny and one that is too long.
func TestSourceLeavesOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path, "good\nbad\n"+strings.Repeat("x", 17<<20)+"\nlast")
	p := connectortest.NewPort()
	p.Refuse = func(m connector.Message) error {
		if string(m.Payload) == "bad" {
			return &abi.Error{Code: abi.Denied, Message: "a policy denies it"}
		}
		return nil
	}
	c, err := files.Source{}.Open(json.RawMessage(`{"path": "` + path + `", "follow": false}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Endless() {
		t.Error("a file that is not followed has no end")
	}
	if err := c.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	v := wait(t, p, sent(2))
	if want := []string{"good", "last"}; !slices.Equal(v.Payloads(), want) || len(v.Refused) != 2 {
		t.Errorf("the source sends %q and leaves out %v", v.Payloads(), v.Refused)
	}
	if abi.CodeOf(v.Refused[1]) != abi.TooLarge {
		t.Errorf("the long line is left out with %v", v.Refused[1])
	}
}

func TestSourceFails(t *testing.T) {
	dir := t.TempDir()
	for settings, want := range map[string]string{
		`{"path": "` + dir + `"}`:                          "not a regular file",
		`{"path": "` + dir + `/none", "follow": false}`:    "cannot read",
		`{"path": "` + dir + `/a/b/none", "follow": true}`: "", // it may appear
	} {
		c, err := files.Source{}.Open(json.RawMessage(settings))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p := connectortest.NewPort()
		if want == "" {
			cancel()
		}
		err = c.Run(ctx, p)
		cancel()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
	if _, err := (files.Source{}).Open(json.RawMessage(`{"path": ""}`)); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("an empty path gives %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func acked(n uint64) func(connectortest.View) bool {
	return func(v connectortest.View) bool { return v.Acked >= n }
}

// TestSinkAfterKill writes messages, forgets acknowledgements, leaves half a line at the end of
// the file, and delivers again: as JSON, each message is in the file once.
func TestSinkAfterKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	p := connectortest.NewPort()
	p.Deliver("one", "two", "three", "\xff")
	settings := map[string]any{"path": path}
	stop := started(t, files.Sink{}, p, settings)
	wait(t, p, acked(4))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	for cut := range 40 { // bytes that the last write lacks
		if err := os.WriteFile(path, []byte(whole[:len(whole)-cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Rewind(uint64(cut % 4))
		stop = started(t, files.Sink{}, p, settings)
		wait(t, p, acked(4))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != whole {
			t.Fatalf("after a kill that has cut %d bytes off, the file has\n%s\nwant\n%s", cut, got, whole)
		}
	}
	if !strings.Contains(whole, `"id":"origin#1"`) || !strings.Contains(whole, `{"base64":"/w=="}`) || strings.Count(whole, "\n") != 4 {
		t.Errorf("the file has\n%s", whole)
	}
}

func TestSinkKeepsForeignFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	put(t, path, "my notes, without a newline")
	c, err := files.Sink{}.Open(json.RawMessage(`{"path": "` + path + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(t.Context(), connectortest.NewPort())
	if err == nil || !strings.Contains(err.Error(), "has not written") {
		t.Errorf("the sink ends with %v", err)
	}
	if got := read(t, path); got != "my notes, without a newline" {
		t.Errorf("the file has %q", got)
	}
}

func TestSinkAsText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	put(t, path, "half")
	p := connectortest.NewPort()
	p.Deliver("one", "two")
	stop := started(t, files.Sink{}, p, map[string]any{"path": path, "format": "text", "sync": true})
	wait(t, p, acked(2))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "half\none\ntwo\n" {
		t.Errorf("the file has %q", got)
	}
}

// TestSinkRetries writes to a folder that does not exist at first.
func TestSinkFails(t *testing.T) {
	c, err := files.Sink{}.Open(json.RawMessage(`{"path": "` + t.TempDir() + `/none/out"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context(), connectortest.NewPort()); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("the sink ends with %v", err)
	}
}
