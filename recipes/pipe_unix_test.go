//go:build unix

package recipes

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestAPipeOfVariablesIsRefused uses a named pipe without a writer as a variables file:
// it is refused without waiting.
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
