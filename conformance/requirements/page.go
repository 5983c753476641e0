package requirements

import (
	"regexp"
	"strings"
)

// Rule is a numbered rule of a page.
type Rule struct {
	Number string
	Words  string // without markup
}

var (
	ruleLine = regexp.MustCompile(`^- \*\*([A-Z]+-[A-Z]\d+[a-z]?)\*\* (.*)$`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\s?\([^)]*\)`)
	markup   = strings.NewReplacer("**", "", "`", "", "*full*", "full", "*effect*", "effect", "*collect*", "collect")
)

// Rules returns the numbered rules of a page in Markdown, in its order.
func Rules(page string) []Rule {
	var out []Rule
	open := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if m := ruleLine.FindStringSubmatch(line); m != nil {
			out, open = append(out, Rule{m[1], m[2]}), true
			continue
		}
		if open = open && strings.HasPrefix(line, "  "); open {
			out[len(out)-1].Words += " " + strings.TrimSpace(line)
		}
	}
	for i := range out {
		out[i].Words = link.ReplaceAllString(markup.Replace(out[i].Words), "$1")
	}
	return out
}
