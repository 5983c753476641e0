//go:build unix

package recipes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The policies of a recipe that another user could have written run in processes.
func TestPoliciesOfOthersAreIsolated(t *testing.T) {
	for _, c := range []struct {
		name, isolation string
		mode            os.FileMode // of the script
		owner           int
		isolated        bool
	}{
		{"our own", "", 0o644, -1, false},
		{"of our group", "", 0o664, -1, false},
		{"that all can write", "", 0o666, -1, true},
		{"of another user", "", 0o644, 12345, true},
		{"believed", IsolateNone, 0o666, -1, false},
		{"all", IsolateAll, 0o644, -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			write("team.hcl", "policy \"send\" \"p\" {\n  file = \"p.js\"\n  isolation = \"none\"\n}\n")
			script := write("p.js", "() => {}")
			if err := os.Chmod(script, c.mode); err != nil {
				t.Fatal(err)
			}
			if c.owner >= 0 && os.Chown(script, c.owner, -1) != nil {
				t.Skip("only root can give a file away")
			}
			_, diags := Load(t.Context(), dir, Options{Isolation: c.isolation})
			refused := slices.ContainsFunc(diags, func(d Diagnostic) bool { return d.Summary == "No process to run policies in" })
			if refused != c.isolated {
				t.Errorf("without a process to run it in: %v", diags)
			}
		})
	}
	if _, diags := Load(t.Context(), t.TempDir(), Options{Isolation: "some"}); diags.Err() == nil {
		t.Error("an isolation that does not exist is accepted")
	}
}
