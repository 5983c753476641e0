package recipes

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// JavaScript has template literals, whose syntax collides with HCL templates. In heredocs
// tagged JS, the two characters that begin a template are therefore replaced before
// parsing by one control character of two bytes, so that positions do not change. The
// parsed values get them back.
const (
	maskedInterpolation = "\u0080" // for ${
	maskedControl       = "\u0081" // for %{
)

var (
	mask   = strings.NewReplacer("${", maskedInterpolation, "%{", maskedControl)
	unmask = strings.NewReplacer(maskedInterpolation, "${", maskedControl, "%{")

	heredocStart = regexp.MustCompile(`<<-?([\pL_][\pL\pN_-]*)[ \t]*\r?$`)
)

// byteOrderMark is the mark with which some editors begin a text.
const byteOrderMark = "\ufeff"

// encoding reports a text that is not UTF-8.
func encoding(src []byte, filename string) *hcl.Diagnostic {
	if utf8.Valid(src) {
		return nil
	}
	at := 0
	for at < len(src) {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	detail := "A recipe must be UTF-8 text."
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		detail = "A recipe must be UTF-8 text; this is UTF-16, which Windows PowerShell writes by default."
	}
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Not UTF-8", Detail: detail, Subject: byteRange(src, filename, at, at+1).Ptr()}
}

// deceptive reports characters that make a text look different from what it is: the two
// invisible mask characters, and characters that change the direction of writing. In
// texts they can be escaped.
func deceptive(src []byte, filename string) *hcl.Diagnostic {
	at := bytes.IndexFunc(src, func(r rune) bool {
		return r == 0x80 || r == 0x81 || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
	})
	if at < 0 {
		return nil
	}
	r, size := utf8.DecodeRune(src[at:])
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Invisible character", Subject: byteRange(src, filename, at, at+size).Ptr(),
		Detail: fmt.Sprintf("The character %U is invisible, and the text around it may not be what it seems. In a text, write it as \"\\u%04x\".", r, r),
	}
}

// maxCommentWork bounds the bytes that the scanner looks at in vain: at each start of a
// comment that has no end, it looks for the end in the whole rest of the text.
const maxCommentWork = 64 << 20

// unclosed reports a text with so many comments without an end that the scanner would take
// very long.
func unclosed(src []byte, filename string) *hcl.Diagnostic {
	from := bytes.LastIndex(src, []byte("*/")) + 1
	rest := src[from:]
	n := bytes.Count(rest, []byte("/*"))
	if n*len(rest) <= maxCommentWork {
		return nil
	}
	at := from + bytes.Index(rest, []byte("/*"))
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Comments without an end", Subject: byteRange(src, filename, at, at+2).Ptr(),
		Detail: fmt.Sprintf("%d comments begin here and below, and none of them ends.", n)}
}

const scriptTag = "JS"

// maskScripts returns src with the JS heredocs masked, or src itself if there are none.
func maskScripts(src []byte) []byte {
	if !bytes.Contains(src, []byte("<<"+scriptTag)) && !bytes.Contains(src, []byte("<<-"+scriptTag)) {
		return src
	}
	lines := strings.SplitAfter(string(src), "\n")
	last := map[string]int{} // where the last line with a text is
	for i, line := range lines {
		last[strings.TrimSpace(line)] = i
	}
	var out strings.Builder
	out.Grow(len(src))
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i])
		tag := heredocTag(lines[i])
		end := i + 1
		if last[tag] > i { // else a search for each of many heredocs would take too long
			end = heredocEnd(lines, i+1, tag)
		}
		for ; i+1 < end; i++ {
			if tag == scriptTag {
				out.WriteString(mask.Replace(lines[i+1]))
			} else {
				out.WriteString(lines[i+1])
			}
		}
	}
	return []byte(out.String())
}

// heredocTag returns the tag of the heredoc that starts on a line, if any.
func heredocTag(line string) string {
	line = strings.TrimRight(line, "\n")
	if code := strings.TrimSpace(line); strings.HasPrefix(code, "#") || strings.HasPrefix(code, "//") {
		return ""
	}
	if m := heredocStart.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// heredocEnd returns the index of the line that ends a heredoc, or from if there is no
// such line.
func heredocEnd(lines []string, from int, tag string) int {
	if tag == "" {
		return from
	}
	for i := from; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == tag {
			return i
		}
	}
	return from
}

// unmaskScripts reverts maskScripts in the parsed file.
func unmaskScripts(file *hcl.File) {
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		lit, ok := n.(*hclsyntax.LiteralValueExpr)
		if ok && lit.Val.Type() == cty.String && lit.Val.IsKnown() && !lit.Val.IsNull() {
			if s := lit.Val.AsString(); strings.Contains(s, maskedInterpolation) || strings.Contains(s, maskedControl) {
				lit.Val = cty.StringVal(unmask.Replace(s))
			}
		}
		return nil
	})
}
