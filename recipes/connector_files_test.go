package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/files"
	"github.com/seed47132306/terrarium/connector/mqtt"
)

// TestOneClientForTwo gives a source and a sink the same client id: the broker would end
// the connection of one when the other connects.
func TestOneClientForTwo(t *testing.T) {
	for sink, refused := range map[string]bool{"me": true, "another": false} {
		path := filepath.Join(t.TempDir(), "r.hcl")
		if err := os.WriteFile(path, fmt.Appendf(nil, `
channel "in" {}
channel "out" {}
source "mqtt" "sensors" {
  channel   = channel.in
  broker    = "mqtt://localhost"
  client_id = "me"
  topics    = ["sensors/#"]
}
sink "mqtt" "alarms" {
  channel   = channel.out
  broker    = "mqtt://localhost:1883"
  client_id = %q
  topic     = "alarms"
}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.in]
  send   = [channel.out]
}
`, sink), 0o600); err != nil {
			t.Fatal(err)
		}
		_, diags := Load(t.Context(), path, Options{Connectors: []connector.Kind{mqtt.Source{}, mqtt.Sink{}}})
		told := ""
		for i := range diags {
			told += diags[i].Error()
		}
		if strings.Contains(told, "needs the client me at localhost:1883 too") != refused || !refused && told != "" {
			t.Errorf("with the client id %s: %q", sink, told)
		}
	}
}

// TestReadsWhatItWrites gives a source and a sink the same file, under all its possible
// names.
func TestReadsWhatItWrites(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must(os.WriteFile(filepath.Join(dir, "real", "log"), nil, 0o600))
	must(os.Link(filepath.Join(dir, "real", "log"), filepath.Join(dir, "hard")))
	must(os.Symlink("real", filepath.Join(dir, "link")))
	must(os.Symlink("real/log", filepath.Join(dir, "direct")))
	must(os.Symlink("real/later", filepath.Join(dir, "dangling")))
	must(os.Symlink("circle", filepath.Join(dir, "circle")))
	must(os.Symlink("deep/a/b", filepath.Join(dir, "deep")))
	for _, tt := range []struct {
		read, write string
		refused     bool
	}{
		{"log", "log", true}, {"log", "./x/../log", true}, {"real/log", "link/log", true}, {"real/log", "direct", true}, {"direct", "link/log", true},
		{"real/log", "hard", true}, {"real/later", "link/later", true}, {"real/later", "dangling", true}, {"link/none/x", "real/none/x", true},
		{"log", filepath.Join(dir, "log"), true}, {"circle", "circle", true},
		{"log", "log2", false}, {"real/log", "log", false}, {"link/log", "real/later", false}, {"circle", "log", false}, {"deep/x", "log", false},
	} {
		path := filepath.Join(dir, "r.hcl")
		must(os.WriteFile(path, fmt.Appendf(nil, `
channel "in" {}
channel "out" {}
source "file" "lines" {
  channel = channel.in
  path    = %q
}
sink "file" "copy" {
  channel = channel.out
  path    = %q
}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.in]
  send   = [channel.out]
}
`, tt.read, tt.write), 0o600))
		_, diags := Load(t.Context(), path, Options{Connectors: []connector.Kind{files.Source{}, files.Sink{}}})
		var b strings.Builder
		for i := range diags {
			b.WriteString(diags[i].Error() + "\n")
		}
		if got := strings.Contains(b.String(), "Reads what it writes") && strings.Contains(b.String(), "source.file.lines reads it"); got != tt.refused || !tt.refused && len(diags) > 0 {
			t.Errorf("reading %s and writing %s: %s", tt.read, tt.write, &b)
		}
	}
}
