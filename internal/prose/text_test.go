package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// paragraph is text that is read as one: neither a blank line nor a row of a table is
// inside.
type paragraph struct {
	line int // of its first character
	text string
}

var inlineCode = regexp.MustCompile("(?s)`[^`]*`|https?://\\S+|\\]\\([^)\\s]*\\)")

// blank hides code, and where links lead, but keeps the lines.
func blank(text string) string {
	return inlineCode.ReplaceAllStringFunc(text, func(code string) string {
		return "§" + strings.Repeat("\n", strings.Count(code, "\n"))
	})
}

// paragraphs divides text that begins at a line of a file.
func paragraphs(text string, line int) (out []paragraph) {
	var current []string
	first, fenced := line, false
	flush := func() {
		if joined := strings.Join(current, "\n"); strings.TrimSpace(joined) != "" {
			out = append(out, paragraph{first, blank(joined)})
		}
		current = nil
	}
	for i, l := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(l)
		fence := strings.HasPrefix(trimmed, "```")
		alone := fence || fenced || trimmed == "" || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#")
		if alone || strings.HasPrefix(trimmed, "- ") {
			flush()
		}
		if !fence && !fenced && trimmed != "" {
			if current == nil {
				first = line + i
			}
			current = append(current, l)
		}
		if alone {
			flush()
		}
		if fence {
			fenced = !fenced
		}
	}
	flush()
	return out
}

// markdown returns what is to be read of a page.
func markdown(path string) ([]paragraph, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return paragraphs(string(text), 1), nil
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// golang returns the comments of a Go file, and its texts if it is not a test.
func golang(path string) ([]paragraph, error) {
	source, err := os.ReadFile(path)
	if err != nil || generated.Match(source) {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []paragraph
	for _, group := range file.Comments {
		lines := strings.Split(string(source[files.Position(group.Pos()).Offset:files.Position(group.End()).Offset]), "\n")
		for i, l := range lines {
			l = strings.TrimSpace(l)
			if strings.HasPrefix(l, "//go:") || strings.HasPrefix(l, "//\t") {
				l = "" // a directive, or code
			}
			lines[i] = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(l, "//"), "/*"), " ")
		}
		out = append(out, paragraphs(strings.Join(lines, "\n"), files.Position(group.Pos()).Line)...)
	}
	if strings.HasSuffix(path, "_test.go") {
		return out, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil // a tag is no text, and the types of fields with one have none
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && strings.Contains(text, " ") {
				out = append(out, paragraphs(text, files.Position(n.Pos()).Line)...)
			}
		}
		return true
	})
	return out, nil
}
