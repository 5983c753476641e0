package logbook_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"

	"example.org/embed/logbook"
)

// The clerk of the recipe writes what the capability and the policy let it write, and the
// session can be replayed without the capability.
func TestLogbook(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "book.txt")
	x, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir, Capabilities: []capability.Kind{logbook.New()}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	applied, err := x.Apply(t.Context(), "logbook.hcl", terrarium.RecipeOptions{Vars: map[string]string{"file": file}})
	if err != nil {
		t.Fatal(err)
	}
	done, err := x.Read(applied.Channels["channel.done"], "test", terrarium.ReaderOptions{FromStart: true})
	if err != nil {
		t.Fatal(err)
	}
	defer done.Close()
	for _, c := range []struct{ note, want string }{
		{"left the harbour", "ok 1"}, {"saw a kraken", "denied there are no krakens"}, {"bored", "ok 2"},
	} {
		if _, err := x.Send(t.Context(), applied.Channels["channel.notes"], terrarium.Outgoing{Payload: []byte(c.note)}); err != nil {
			t.Fatal(err)
		}
		got, err := done.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(got.Payload), strings.Fields(c.want)[0]+" ") || !strings.Contains(string(got.Payload), strings.SplitN(c.want, " ", 2)[1]) {
			t.Errorf("the clerk answers %q to %q, want %q", got.Payload, c.note, c.want)
		}
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], " left the harbour") || !strings.HasSuffix(lines[1], " nothing to report") {
		t.Errorf("the logbook has %q", lines)
	}
	report, err := terrarium.Replay(t.Context(), dir, terrarium.ReplayOptions{All: true})
	if err != nil || !report.Same() || report.Skipped() > 0 {
		t.Errorf("the replay is %+v, %v", report, err)
	}
}

// The line of a repeated request is written once, even if a crash left an incomplete line.
func TestLinesAreWrittenOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "book.txt")
	g, err := logbook.New().Open([]byte(`{"file":"` + file + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	do := func(key, text, want string) {
		t.Helper()
		r := g.Do(t.Context(), capability.Call{Request: capability.Request{Body: []byte(text)}, Key: key})
		if r.Code != abi.OK || string(r.Payload) != want {
			t.Errorf("%s gives %v %q %s, want %s", key, r.Code, r.Payload, r.Text, want)
		}
	}
	do("k1", "one", "1")
	do("k1", "one", "1")
	if err := os.WriteFile(file, []byte("k1 one\nk2 tw"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("k2", "two", "2")
	do("k2", "two", "2")
	if b, err := os.ReadFile(file); err != nil || string(b) != "k1 one\nk2 two\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
	for _, text := range []string{"two\nlines", strings.Repeat("x", 2000)} {
		if err := g.Check(capability.Request{Body: []byte(text)}); err == nil {
			t.Errorf("%.10q is accepted", text)
		}
	}
	if _, err := logbook.New().Open([]byte(`{}`)); abi.CodeOf(err) != abi.InvalidArgument {
		t.Error(err)
	}
}
