package recipes

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format lays out the text of a recipe's file: indentation, and aligned equals signs. The
// text of heredocs is not changed. Formatting is idempotent and does not change the
// meaning. A text that cannot be parsed is reported, and the result is nil. name is the
// name of the file, for messages; JSON is returned unchanged.
func Format(name string, src []byte) ([]byte, Diagnostics) {
	if strings.HasSuffix(name, ".json") {
		return src, nil
	}
	rep := &reporter{findings: &findings{extra: map[string][]byte{name: src}}}
	file, diags := parseNative(src, name)
	for _, h := range diags {
		rep.hcl(titleAt(file, h.Subject), h)
	}
	if diags.HasErrors() {
		return nil, rep.diags.tidy()
	}
	out := layOut(src, name)
	if !bytes.Equal(src, out) && !sameTokens(src, out, name) {
		rep.add(Diagnostic{Summary: "File cannot be formatted", Range: Range{File: name}, Detail: "Formatting would change its meaning.",
			Remedy: "Format it by hand. This is a bug in terrarium."})
		return nil, rep.diags
	}
	return out, nil
}

// Tokens splits a text in HCL's native syntax into tokens. A script in a heredoc is text,
// not a template. Mistakes are tokens of their own. The offsets of the tokens are those of
// the text, but the bytes of a script may differ from it. A text that would take very long
// has none.
func Tokens(name string, src []byte) hclsyntax.Tokens {
	if unclosed(src, name) != nil {
		return nil
	}
	tokens, _ := hclsyntax.LexConfig(maskScripts(src), name, hcl.InitialPos) // the parser reports mistakes
	return tokens
}

// parseNative parses a text in HCL's native syntax, with its scripts.
func parseNative(src []byte, shown string) (*hcl.File, hcl.Diagnostics) {
	if d := cmp.Or(encoding(src, shown), deceptive(src, shown), unclosed(src, shown)); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	masked := maskScripts(src)
	if d := measureConfig(masked, shown); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	file, diags := hclsyntax.ParseConfig(masked, shown, hcl.InitialPos)
	unmaskScripts(file)
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		meterBody(body)
	}
	return file, firstOfLines(diags)
}

// firstOfLines removes findings that follow from an earlier mistake in the same line: the
// parser continues after a mistake, and fails at the rest.
func firstOfLines(diags hcl.Diagnostics) hcl.Diagnostics {
	seen := map[int]bool{}
	return slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		if d.Subject == nil || d.Severity != hcl.DiagError {
			return false
		}
		again := seen[d.Subject.Start.Line]
		seen[d.Subject.Start.Line] = true
		return again
	})
}

// layOut formats a text around its heredocs, whose templates the formatter would take for
// code.
func layOut(src []byte, name string) []byte {
	var bare bytes.Buffer
	var bodies [][]byte
	from := 0
	for _, at := range heredocs(src, name) {
		bare.Write(src[from:at.from])
		bare.WriteString("text\n")
		bodies = append(bodies, src[at.from:at.to])
		from = at.to
	}
	bare.Write(src[from:])
	formatted := hclwrite.Format(bare.Bytes())
	places := heredocs(formatted, name)
	if len(places) != len(bodies) {
		return nil // sameTokens refuses that
	}
	var out bytes.Buffer
	from = 0
	for i, at := range places {
		out.Write(formatted[from:at.from])
		out.Write(bodies[i])
		from = at.to
	}
	out.Write(formatted[from:])
	return out.Bytes()
}

// stretch is a part of a text, as offsets.
type stretch struct{ from, to int }

// heredocs finds the contents of the heredocs in a text, the outermost ones if they nest.
func heredocs(src []byte, name string) []stretch {
	if !bytes.Contains(src, []byte("<<")) { // splitting the text into tokens takes longest
		return nil
	}
	var out []stretch
	depth, from := 0, 0
	for _, t := range Tokens(name, src) {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			if depth++; depth == 1 {
				from = t.Range.End.Byte
			}
		case hclsyntax.TokenCHeredoc:
			if depth--; depth == 0 {
				out = append(out, stretch{from, t.Range.Start.Byte})
			}
		}
	}
	return out
}

// sameTokens reports whether two texts only differ in blanks between tokens.
func sameTokens(a, b []byte, name string) bool {
	return slices.EqualFunc(Tokens(name, a), Tokens(name, b), func(x, y hclsyntax.Token) bool {
		return x.Type == y.Type && (bytes.Equal(x.Bytes, y.Bytes) || x.Type == hclsyntax.TokenCHeredoc && bytes.Equal(bytes.TrimSpace(x.Bytes), bytes.TrimSpace(y.Bytes)))
	})
}
