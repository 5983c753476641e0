package recipes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

// Each archive in testdata/format has a text and the formatted text.
func TestFormat(t *testing.T) {
	for _, a := range archives(t, "testdata/format/*.txtar") {
		t.Run(a.name(), func(t *testing.T) {
			out, d := Format("team.hcl", a.Files[0].Data)
			if d != nil {
				t.Fatal(render(t, d, ""))
			}
			a.golden(t, string(out))
		})
	}
}

// Formatting is idempotent, and changes neither the meaning of a recipe nor a byte in a
// heredoc: for all recipes of the tests, and for the same recipes with random blanks.
func TestFormatKeepsTheMeaning(t *testing.T) {
	var texts []string
	for _, pattern := range []string{"testdata/recipes/*.txtar", "testdata/mistakes/*.txtar", "testdata/format/*.txtar"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files {
				if _, d := Format(f.Name, f.Data); strings.HasSuffix(f.Name, ".hcl") && d == nil {
					texts = append(texts, string(f.Data))
				}
			}
		}
	}
	if len(texts) < 50 {
		t.Fatalf("only %d recipes can be parsed", len(texts))
	}
	for _, text := range texts {
		checkFormatted(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		checkFormatted(t, disarray(t, rapid.SampledFrom(texts).Draw(t, "text")))
	})
}

type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func checkFormatted(t tester, text string) {
	t.Helper()
	once, d := Format("team.hcl", []byte(text))
	if d != nil {
		t.Fatalf("%v\n%s", d, text)
	}
	twice, d := Format("team.hcl", once)
	if d != nil || string(once) != string(twice) {
		t.Fatalf("not idempotent (%v):\n%s\n--- once\n%s\n--- twice\n%s", d, text, once, twice)
	}
	if a, b := meaning(t, []byte(text)), meaning(t, once); a != b {
		t.Fatalf("the meaning changed from\n%s\nto\n%s", a, b)
	}
}

// meaning writes the tokens of a text without their places; the script of a heredoc is a
// single token.
func meaning(t tester, src []byte) string {
	t.Helper()
	file, diags := parseNative(src, "team.hcl")
	if diags.HasErrors() {
		t.Fatalf("%v", diags)
	}
	var b strings.Builder
	writeBody(&b, file.Body.(*hclsyntax.Body), src)
	for _, at := range heredocs(src, "team.hcl") {
		b.WriteString("heredoc " + string(src[at.from:at.to]))
	}
	return b.String()
}

func writeBody(b *strings.Builder, body *hclsyntax.Body, src []byte) {
	for _, block := range body.Blocks {
		b.WriteString(block.Type + " " + strings.Join(block.Labels, " ") + " {\n")
		writeBody(b, block.Body, src)
		b.WriteString("}\n")
	}
	for _, name := range sortedNames(body.Attributes) {
		a := body.Attributes[name]
		b.WriteString(name + " =")
		tokens, _ := hclsyntax.LexExpression(maskScripts(a.Expr.Range().SliceBytes(src)), "", a.Expr.Range().Start)
		for _, token := range tokens {
			b.WriteString(" " + strings.TrimSpace(string(token.Bytes)))
		}
		b.WriteString("\n")
	}
}

func sortedNames(attributes hclsyntax.Attributes) []string {
	var out []string
	for name := range attributes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// disarray adds and removes blanks at the ends of tokens, outside of heredocs
// and texts.
func disarray(t *rapid.T, text string) string {
	tokens, _ := hclsyntax.LexConfig(maskScripts([]byte(text)), "", hcl.InitialPos)
	var b strings.Builder
	at, depth := 0, 0
	for _, token := range tokens {
		gap := text[at:token.Range.Start.Byte]
		switch token.Type {
		case hclsyntax.TokenOHeredoc, hclsyntax.TokenOQuote:
			depth++
		case hclsyntax.TokenCHeredoc, hclsyntax.TokenCQuote:
			depth--
		default:
			if depth == 0 && gap != "" {
				gap = strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "blanks"))
			}
		}
		b.WriteString(gap + text[token.Range.Start.Byte:token.Range.End.Byte])
		at = token.Range.End.Byte
	}
	return b.String() + text[at:]
}

func TestFormatLeavesAlone(t *testing.T) {
	if out, d := Format("team.hcl.json", []byte(`{"a":   1}`)); d != nil || string(out) != `{"a":   1}` {
		t.Errorf("%s %v", out, d)
	}
	for _, text := range []string{"a = {", "a = \"\u0080\"", strings.Repeat("[", 100)} {
		if out, d := Format("team.hcl", []byte(text)); out != nil || !d.HasErrors() {
			t.Errorf("%q: %s %v", text, out, d)
		}
	}
}

// FuzzFormat never panics; formatting is idempotent and keeps the meaning.
func FuzzFormat(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	paths, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, d := Format("team.hcl", []byte(text))
		if (once == nil) != d.HasErrors() && text != "" {
			t.Fatalf("%q, %v", once, d)
		}
		if once == nil {
			return
		}
		checkFormatted(t, text)
	})
}
