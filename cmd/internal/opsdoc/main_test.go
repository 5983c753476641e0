package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/operations"
)

// TestPagesAreCurrent runs every example and compares the generated pages with those in
// the repository.
func TestPagesAreCurrent(t *testing.T) {
	pages, err := generate(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what its generator writes: run go generate ./cmd/internal/opsdoc\n%s", name, firstDifference(string(got), string(want)))
		}
	}
}

// Every member in a table has a meaning: that of its field, or the usual one.
func TestEveryMemberHasAMeaning(t *testing.T) {
	for _, name := range []string{"docs/reference/operations.md", toolsPage} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(page), "\n") {
			if strings.HasPrefix(line, "| `") && strings.HasSuffix(line, "|  |") {
				t.Errorf("%s:%d has no meaning: comment its field, or add it to the usual ones\n%s", name, n+1, line)
			}
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n has   %s\n wants %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("it has %d lines and wants %d", len(g), len(w))
}

func TestEveryOperationHasAnExample(t *testing.T) {
	examples, err := runExamples(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range operations.Table() {
		if examples[op.Name].answer == "" {
			t.Errorf("the operation %s has no example: add one to the script", op.Name)
		}
	}
	if len(examples) != len(operations.Table()) {
		t.Errorf("there are %d examples for %d operations", len(examples), len(operations.Table()))
	}
}
