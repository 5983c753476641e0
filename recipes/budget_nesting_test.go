package recipes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"pgregory.net/rapid"
)

// Measuring in pieces finds the same place as measuring at once.
func TestMeasureByPieces(t *testing.T) {
	pieces := []string{
		"a = 1\n", "b = [1, { c = 2 }]\n", "x \"y\" {\n  z = \"${1 + 2}\"\n}\n", "s = <<EOT\n}}}} ${1} \"\n%{ if true }x%{ endif }\nEOT\n",
		"/* { [ \" \n } */\n", "# { \" \n", "t = \"}}\"\n", "u = \"{{\n", "d = " + strings.Repeat("[", 40) + "\n", strings.Repeat("]", 40) + "\n",
		"e = 1" + strings.Repeat(" + 1", 600), "\n", "/*", "*/", "\"", "}\n", "{\n", strings.Repeat("# filler filler filler\n", 700), strings.Repeat("f = [1]\n", 3000),
	}
	check := func(t tester, text string) {
		at := func(d any) string { return fmt.Sprint(d) }
		once, parts := measure(hclsyntax.LexConfig, []byte(text), "f"), measurePieces([]byte(text), "f")
		if (once == nil) != (parts == nil) || once != nil && at(*once.Subject) != at(*parts.Subject) {
			t.Fatalf("%d bytes: at once %v, by pieces %v", len(text), once, parts)
		}
	}
	for _, piece := range pieces {
		check(t, strings.Repeat(piece, 1+70_000/len(piece)))
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces"), ""))
	})
}

// A text that is reported as shallow nests little enough: the reverse need not hold.
func TestShallow(t *testing.T) {
	pieces := []string{
		"a", " = ", "1", ".", ", ", "\n", "{", "}", "[", "]", "(", ")", "\"", "${", "}", "$${", "$", "%{ if x }", "%", "\\", "\\\"", "\\\\", "#", "//", "/*", "*/", "<<",
		"<<E\n", "<<-E\n", "\nE\n", "\n  E\n", "E", "<<\"", "'", "`", "é", "\r\n", "x = \"${y}\"\n", "x = \"${y[\"z\"]}\"\n", "b \"l\" {\n", "a = <<-E\n  }}}} \" [[[\n  E\n",
		strings.Repeat("[", 40), strings.Repeat("]", 40), strings.Repeat("[", 64), strings.Repeat("\"${", 33), strings.Repeat("+1", 600), strings.Repeat("[0]", 400),
		"# comment [[[\n", "x = 1 # [\n", "~}", "\x00", "\xff",
	}
	certain := 0
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 60).Draw(t, "pieces"), ""))
		if !shallow(text) {
			return
		}
		certain++
		if d := measure(hclsyntax.LexConfig, text, "f"); d != nil {
			t.Fatalf("%q is called shallow, but %v", text, d)
		}
	})
	if certain == 0 {
		t.Error("nothing was called shallow")
	}
	for text, want := range map[string]bool{
		large(3):                              true,
		strings.Repeat("a = b.c # c\n", 2000): true,
		"a = " + strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting):     true,
		"a = " + strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1): false,
		"a = 1" + strings.Repeat("+1", maxOperators-1):                                 true,
		"a = 1" + strings.Repeat("+1", maxOperators+1):                                 false,
	} {
		text = string(maskScripts([]byte(text)))
		if got := shallow([]byte(text)); got != want {
			t.Errorf("%.60q: shallow is %v", text, got)
		}
		if got := measure(hclsyntax.LexConfig, []byte(text), "f") == nil; got != want {
			t.Errorf("%.60q: measured, it is %v", text, got)
		}
	}
}
