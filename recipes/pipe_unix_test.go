//go:build unix

package recipes

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestAPipeOfVariablesIsRefused has a named pipe that nobody writes to in the place of
// a file of variables: it is refused, not waited for.
func TestAPipeOfVariablesIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.hcl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	recipe := write(t, harmless+"variable \"x\" { type = any }\nlocals { y = var.x }")
	if r, diags := Load(t.Context(), recipe, Options{Builtins: builtins{"relay"}, VarFiles: []string{pipe}}); r != nil {
		t.Errorf("it is taken: %v", diags)
	}
}
