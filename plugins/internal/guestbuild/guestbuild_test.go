package guestbuild_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/plugins/internal/guestbuild"
)

// tree returns a copy of the sources of all guests.
func tree(t *testing.T) string {
	t.Helper()
	const root = "../../.."
	dir := t.TempDir()
	for _, part := range []string{"plugins", "sdk", "examples/review-team", "examples/embed/device"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func edit(t *testing.T, root, path string, change func([]byte) []byte) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(path))
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestChecksNoticeChanges(t *testing.T) {
	appendLine := func(b []byte) []byte { return append(b, '\n') }
	for _, c := range []struct {
		path   string
		change func([]byte) []byte
		stale  []string
	}{
		{"plugins/echo/echo.wat", appendLine, []string{"echo is stale"}},
		{"plugins/gate/pattern.h", appendLine, []string{"gate is stale"}},
		{"plugins/split/manifest.json", appendLine, []string{"split is stale"}},
		{"plugins/selector/selector.h", appendLine, []string{"gate is stale", "relay is stale", "split is stale", "tally is stale"}},
		{"examples/review-team/writer/writer.c", appendLine, []string{"writer is stale"}},
		{"sdk/c/terrarium.h", appendLine, []string{"reviewer is stale", "gate is stale", "relay is stale", "split is stale", "tally is stale"}},
		{"plugins/tally/tally.wasm", appendLine, []string{"tally is not the module"}},
		{"plugins/tally/README.md", appendLine, nil},
		{"plugins/guests.sum", func([]byte) []byte { return nil }, []string{"echo is stale", "tally is stale"}},
		{"plugins/guests.sum", func([]byte) []byte { return []byte("echo 1\n") }, []string{"is not name, inputs, module"}},
		{"plugins/relay/relay.c", func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "\n", "\r\n")) }, nil},
	} {
		root := tree(t)
		edit(t, root, c.path, c.change)
		err := guestbuild.CheckSums(root)
		if len(c.stale) == 0 {
			if err != nil {
				t.Errorf("%s: %v", c.path, err)
			}
			continue
		}
		for _, want := range c.stale {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", c.path, err, want)
			}
		}
	}
}

func TestWriteMakesThemCurrent(t *testing.T) {
	root := tree(t)
	edit(t, root, "sdk/c/json.h", func(b []byte) []byte { return append(b, '\n') })
	build := func(g guestbuild.Guest) ([]byte, error) { return []byte("module of " + g.Name), nil }
	if err := guestbuild.Write(root, build); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(guestbuild.CheckSums(root), guestbuild.CheckBytes(root, build)); err != nil {
		t.Error(err)
	}
	other := func(g guestbuild.Guest) ([]byte, error) { return []byte("another of " + g.Name), nil }
	if err := guestbuild.CheckBytes(root, other); err == nil || !strings.Contains(err.Error(), "relay is stale: building it again gives other bytes") {
		t.Errorf("other bytes: %v", err)
	}
}

func TestBuildNamesTheMissingTool(t *testing.T) {
	g, ok := guestbuild.ByName("relay")
	if !ok {
		t.Fatal("there is no relay")
	}
	t.Setenv("PATH", t.TempDir())
	_, err := g.Build(context.Background(), "../../..")
	if abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "clang-14 is not installed; run make toolchains") {
		t.Error(err)
	}
}
