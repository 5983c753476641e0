package recipes

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzMask masks texts: no byte moves, only the beginnings of templates change, and
// unmasking restores the text.
func FuzzMask(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	f.Add("a = <<JS\n${x}\nJS\nb = <<-JS\n  %{ if }\n  JS")
	f.Add("a = <<JS\r\n${x}\r\nJS\r\n# <<JS\n${x}\nJS")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, maskedInterpolation) || strings.Contains(text, maskedControl) {
			return
		}
		masked := maskScripts([]byte(text))
		if len(masked) != len(text) || bytes.Count(masked, []byte("\n")) != strings.Count(text, "\n") {
			t.Fatalf("%q became %q", text, masked)
		}
		if back := unmask.Replace(string(masked)); back != text {
			t.Errorf("%q became %q, and that %q", text, masked, back)
		}
		if again := maskScripts(masked); !bytes.Equal(again, masked) {
			t.Errorf("%q became %q, and that %q", text, masked, again)
		}
		if !strings.Contains(text, "<<") && string(masked) != text {
			t.Errorf("%q has no script, and became %q", text, masked)
		}
	})
}

// patience bounds the time of one expression on a busy machine: endless expressions take
// longer, and the fuzzer finds them.
const patience = 5 * time.Minute

// addExpressions adds the seeds for fuzzing expressions.
func addExpressions(f *testing.F) {
	for _, expr := range endless {
		f.Add(clipped(expr))
	}
	for _, expr := range []string{
		`[for k, v in { a = 1 } : "${k}${v}" if v > 0]`, `merge({ a = 1 }, { b = [1, 2][*] })`, `try(local.c.d, can(1 / 0))`, `regex("(?:a|b)+", "aab")`,
		`setproduct([1, 2], ["a"])`, `jsondecode("{\"a\": [1]}").a[0]`, `formatdate("YYYY", "2020-01-01T00:00:00Z")`, `toset([1, "1", true])`, `local.b...`,
		"<<A\n${1}\nA", `templatefile("t", { a = 1 })`, `"%{ for x in [1] }${x}%{ endfor }"`, `double([double(1)])`, `parseint("zz", 36) % 7`, `substr("añb", 1, 9)`,
	} {
		f.Add(expr)
	}
}

// FuzzEvaluate evaluates expressions, in HCL and in JSON: each has a value or a finding
// within a bounded time.
func FuzzEvaluate(f *testing.F) {
	addExpressions(f)
	f.Fuzz(func(t *testing.T, expr string) {
		quoted, err := json.Marshal("${" + expr + "}")
		if err != nil {
			t.Fatal(err)
		}
		const rest = harmless + "function \"double\" {\n params = [x]\n result = [x, x]\n}\n"
		for name, text := range map[string]string{
			"team.hcl":      rest + "locals {\n b = [1, \"x\"]\n a = " + expr + "\n}\n",
			"team.hcl.json": `{"creature": {"a": {"module": "builtin:relay"}}, "locals": {"b": [1, "x"], "a": ` + string(quoted) + `}}`,
		} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			started := time.Now()
			r, d := Load(t.Context(), path, Options{MaxFileBytes: 1 << 16, Builtins: builtins{"relay"}})
			if (r == nil) != d.HasErrors() {
				t.Errorf("recipe %v, diagnostics %v", r != nil, d)
			}
			if time.Since(started) > patience {
				t.Errorf("%s took too long", name)
			}
		}
	})
}
