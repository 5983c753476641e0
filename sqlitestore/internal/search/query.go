package search

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
)

const (
	// leastPrefix is how long a requested beginning of a word must be: shorter ones match
	// so many words that the search takes long.
	leastPrefix = 3
	// mostTerms and mostDepth bound what a query can cost.
	mostTerms = 32
	mostDepth = 8
)

// term is a word, a sequence of words, or the beginning of a word.
type term struct {
	words  []string
	prefix bool // the last word is a beginning
}

// asked is a parsed query: its form for the index, and the terms that a match may show.
type asked struct {
	match string
	terms []term
}

// parse reads a query: words, "phrases", beginnings of words with a star,
// AND (which may be left out), OR, NOT and parentheses.
func parse(text string) (asked, error) {
	if !utf8.ValidString(text) {
		return asked{}, unclear("it is not text", "use words")
	}
	tokens, err := split(text)
	if err != nil {
		return asked{}, err
	}
	p := &parser{tokens: tokens}
	match, err := p.either(0)
	switch {
	case err != nil:
		return asked{}, err
	case p.next() == ")":
		return asked{}, unclear("a parenthesis is closed, but was not opened", "leave it out, or put it into quotation marks")
	}
	return asked{match, p.terms}, nil
}

func unclear(message, remedy string) error {
	return &abi.Error{Code: abi.InvalidArgument, Op: "search", Message: "the query cannot be understood: " + message, Remedy: remedy}
}

// split divides a query into parentheses, phrases with their quotation marks and, if
// present, their star, and other words separated by spaces.
func split(text string) (tokens []string, err error) {
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()"`, r) })
		switch {
		case rest[0] == '(' || rest[0] == ')':
			end = 1
		case rest[0] == '"':
			closing := strings.IndexByte(rest[1:], '"')
			if closing < 0 {
				return nil, unclear("a quotation mark is not closed", "write phrases as \"two words\"")
			}
			if end = closing + 2; strings.HasPrefix(rest[end:], "*") {
				end++
			}
		case end < 0:
			end = len(rest)
		}
		tokens, rest = append(tokens, rest[:end]), rest[end:]
	}
	return tokens, nil
}

// parser turns tokens into the syntax of the index, in which every term is a
// phrase and every precedence a parenthesis.
type parser struct {
	tokens []string
	terms  []term
	count  int
	hidden bool // inside of NOT
}

// next returns the next token; "" at the end.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// take consumes the next token if it is the given one, and reports whether it was.
func (p *parser) take(token string) bool {
	if p.next() != token {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

// either reads alternatives.
func (p *parser) either(depth int) (string, error) {
	if depth > mostDepth {
		return "", unclear("its parentheses are too deep", "use fewer")
	}
	parts, err := p.list(func() (string, error) { return p.all(depth) }, func() bool { return p.take("OR") })
	return join(parts, " OR "), err
}

// all reads terms that must occur together.
func (p *parser) all(depth int) (string, error) {
	parts, err := p.list(func() (string, error) { return p.without(depth) }, func() bool {
		return p.take("AND") || !slices.Contains([]string{"", ")", "OR"}, p.next())
	})
	return join(parts, " AND "), err
}

// without reads a term, and the terms that must not occur with it.
func (p *parser) without(depth int) (string, error) {
	around := p.hidden
	parts, err := p.list(func() (string, error) { return p.term(depth) }, func() bool {
		if !p.take("NOT") {
			return false
		}
		p.hidden = true
		return true
	})
	p.hidden = around
	return join(parts, " NOT "), err
}

func (p *parser) list(read func() (string, error), more func() bool) (parts []string, err error) {
	for {
		part, err := read()
		if err != nil {
			return nil, err
		}
		if parts = append(parts, part); !more() {
			return parts, nil
		}
	}
}

func join(parts []string, by string) string {
	switch len(parts) {
	case 0:
		return "" // there was an error
	case 1:
		return parts[0]
	}
	if by != " NOT " {
		return "(" + strings.Join(parts, by) + ")"
	}
	out := parts[0]
	for _, part := range parts[1:] {
		out = "(" + out + by + part + ")"
	}
	return out
}

// term reads a word, a phrase, or an expression in parentheses.
func (p *parser) term(depth int) (string, error) {
	token := p.next()
	switch token {
	case "", ")":
		return "", unclear("a word to search for is missing", "give at least one word; see the reference of session search")
	case "AND", "OR", "NOT":
		return "", unclear(token+" has nothing before it", "put a word to search for before it; if you search for this word, write \""+token+"\"")
	}
	p.tokens = p.tokens[1:]
	if token == "(" {
		inner, err := p.either(depth + 1)
		if err == nil && !p.take(")") {
			err = unclear("a parenthesis is not closed", "close it, or put it into quotation marks")
		}
		return inner, err
	}
	return p.phrase(token)
}

// phrase reads a word or a phrase. A word with punctuation in it is a phrase, too.
func (p *parser) phrase(token string) (string, error) {
	body, prefix := strings.CutSuffix(token, "*")
	t := term{words: strings.FieldsFunc(body, func(r rune) bool { return !inWord(r) }), prefix: prefix}
	if len(t.words) == 0 {
		return "", unclear(fmt.Sprintf("%s has no letters and no digits", token), "search for words and numbers")
	}
	if last := t.words[len(t.words)-1]; prefix && utf8.RuneCountInString(last) < leastPrefix {
		return "", unclear(fmt.Sprintf("%s* matches too much", last), fmt.Sprintf("give at least %d letters before the star", leastPrefix))
	}
	if p.count++; p.count > mostTerms {
		return "", unclear("it has too many words", fmt.Sprintf("use %d at most", mostTerms))
	}
	if !p.hidden {
		p.terms = append(p.terms, t)
	}
	end := `"`
	if prefix {
		end = words.star
	}
	return `"` + strings.Join(t.words, " ") + end, nil
}

// inWord reports whether a character is part of a word.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)
}
