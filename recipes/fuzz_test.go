package recipes

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Load never panics, never overflows the stack, and has a finding for every recipe that
// it refuses. The findings can be rendered.
func FuzzLoad(f *testing.F) {
	for _, a := range seeds(f) {
		f.Add(a, false)
	}
	f.Add(`{"creature": {"a": {"module": "builtin:relay", "for_each": "${toset([1])}"}}}`, true)
	f.Add(`{"locals": [{"a": "${local.a}"}]}`, true)
	f.Fuzz(func(t *testing.T, source string, asJSON bool) {
		path := filepath.Join(t.TempDir(), "team.hcl")
		if asJSON {
			path += ".json"
		}
		if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		r, d := Load(t.Context(), path, Options{MaxFileBytes: 1 << 16, Inspector: &inspector{}, Builtins: builtins{"relay"}})
		if (r == nil) != d.HasErrors() {
			t.Errorf("recipe %v, diagnostics %v", r != nil, d)
		}
		for _, width := range []int{0, 1, 80} {
			if err := WriteText(io.Discard, d, width, true); err != nil {
				t.Error(err)
			}
		}
		if err := WriteJSON(io.Discard, d); err != nil {
			t.Error(err)
		}
	})
}

// seeds returns the first file of every golden case.
func seeds(f *testing.F) []string {
	f.Helper()
	var out []string
	for _, pattern := range []string{"testdata/mistakes/*.txtar", "testdata/recipes/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			_, text, _ := strings.Cut(string(data), " --\n")
			text, _, _ = strings.Cut(text, "\n-- ")
			out = append(out, text)
		}
	}
	return out
}

// large returns a recipe with n creatures, n channels and n policies.
func large(n int) string {
	var b strings.Builder
	b.WriteString("variable \"strictness\" { default = 3 }\n")
	for i := range n {
		fmt.Fprintf(&b, `
channel "c%d" { description = "channel %d" }
creature "w%d" {
  module = "builtin:relay"
  listen = [channel.c%d]
  send   = { next = channel.c%d }
  config = { strictness = var.strictness + %d, name = "worker ${%d}" }
  limits {
    memory   = "16MiB"
    deadline = "200ms"
  }
}
policy "send" "p%d" {
  channel = channel.c%d
  match   = event.size > %d
  run     = <<-JS
    (event, ctx) => {
      if (event.payload.includes("secret")) return deny(`+"`no secrets for ${event.channel}`"+`);
    }
  JS
}
`, i, i, i, i, (i+1)%n, i, i, i, i, i)
	}
	return b.String()
}

// BenchmarkLoad measures the cost of validation.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			source := large(n)
			path := write(b, source)
			b.SetBytes(int64(len(source)))
			b.ReportAllocs()
			for b.Loop() {
				mustLoad(b, path, Options{Inspector: &inspector{}, Builtins: builtins{"relay"}})
			}
		})
	}
}

// BenchmarkValidate does the same as the command, which collects garbage less often
// meanwhile.
func BenchmarkValidate(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	BenchmarkLoad(b)
}

func BenchmarkForEach(b *testing.B) {
	path := write(b, `creature "w" {
  for_each = toset([for n in range(1000) : tostring(n)])
  module   = "builtin:relay"
  config   = { n = each.key }
}`)
	for b.Loop() {
		mustLoad(b, path, Options{})
	}
}
