package recipes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"pgregory.net/rapid"
)

// Measuring piece by piece finds what measuring at once does, at the same place.
func TestMeasureByPieces(t *testing.T) {
	pieces := []string{
		"a = 1\n", "b = [1, { c = 2 }]\n", "x \"y\" {\n  z = \"${1 + 2}\"\n}\n", "s = <<EOT\n}}}} ${1} \"\n%{ if true }x%{ endif }\nEOT\n",
		"/* { [ \" \n } */\n", "# { \" \n", "t = \"}}\"\n", "u = \"{{\n", "d = " + strings.Repeat("[", 40) + "\n", strings.Repeat("]", 40) + "\n",
		"e = 1" + strings.Repeat(" + 1", 600), "\n", "/*", "*/", "\"", "}\n", "{\n", strings.Repeat("# filler filler filler\n", 700), strings.Repeat("f = [1]\n", 3000),
	}
	check := func(t tester, text string) {
		at := func(d any) string { return fmt.Sprint(d) }
		once, parts := measure(hclsyntax.LexConfig, []byte(text), "f"), measureConfig([]byte(text), "f")
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
