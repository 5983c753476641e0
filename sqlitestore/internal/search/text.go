package search

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/engine/journal"
	"golang.org/x/text/unicode/norm"
)

// mostText is how much of the text of an event is searched: its beginning.
const mostText = 64 << 10

// TextOf returns the searched text of an event: the bytes of messages and outputs if they
// are text, the key and value of a state, and for all other kinds the texts in the
// payload. Percent-encoded text, as in URLs and keys made from them, is also included in
// decoded form. turn_ended has nothing worth searching.
func TextOf(ev *journal.Event) string {
	var text string
	switch {
	case ev.Kind == journal.EventTurnEnded:
		return ""
	case ev.Kind == journal.EventState:
		key, value, _ := journal.DecodeStateEvent(ev.Payload)
		text = key
		if utf8.Valid(value) {
			text += "\n" + string(value)
		}
	case journal.PayloadType(ev.Kind) != nil:
		text = textsIn(ev.Payload)
	case utf8.Valid(ev.Payload):
		text = string(ev.Payload)
	}
	text = shortened(text, mostText)
	if plain, encoded := unescaped(text); encoded {
		text += "\n" + plain
	}
	return text
}

// unescaped returns the decoded text, and whether it had percent-encoded characters.
func unescaped(text string) (plain string, encoded bool) {
	var b strings.Builder
	before, rest, found := strings.Cut(text, "%")
	for b.WriteString(before); found; b.WriteString(before) {
		code, err := hex.DecodeString(rest[:min(2, len(rest))])
		if encoded = encoded || err == nil && len(code) == 1; err == nil && len(code) == 1 {
			rest = rest[2:]
		} else {
			code = []byte("%")
		}
		b.Write(code)
		before, rest, found = strings.Cut(rest, "%")
	}
	return b.String(), encoded && utf8.ValidString(b.String())
}

// shortened cuts a text between two characters.
func shortened(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// textsIn returns the texts in a JSON value, without the names of its members.
func textsIn(payload []byte) string {
	var value any
	if json.Unmarshal(payload, &value) != nil {
		return ""
	}
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		}
	}
	walk(value)
	return strings.Join(out, "\n")
}

// How many bytes of a snippet are before and after the start of the first match, at most.
const (
	snippetBefore = 60
	snippetBehind = 140
)

// snippet returns the part of a text around the first occurrence of a term, on one line.
func (q *asked) snippet(text string) string {
	at := q.firstMatch(text)
	from, to := max(at-snippetBefore, 0), min(at+snippetBehind, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	out := strings.Join(strings.Fields(text[from:to]), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// firstMatch returns the position of the first word that is in a term; 0 if none is found,
// because the index and Go's Unicode tables differ for some characters.
func (q *asked) firstMatch(text string) int {
	wanted, beginnings := map[string]bool{}, []string{}
	for _, t := range q.terms {
		for i, w := range t.words {
			if t.prefix && i == len(t.words)-1 {
				beginnings = append(beginnings, folded(w))
			} else {
				wanted[folded(w)] = true
			}
		}
	}
	for at := 0; at < len(text); {
		start := strings.IndexFunc(text[at:], inWord)
		if start < 0 {
			break
		}
		start += at
		end := strings.IndexFunc(text[start:], func(r rune) bool { return !inWord(r) })
		if end < 0 {
			end = len(text) - start
		}
		word := folded(text[start : start+end])
		if wanted[word] || slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(word, b) }) {
			return start
		}
		at = start + end
	}
	return 0
}

// folded returns a word in the form for comparison: without case and accents.
func folded(word string) string {
	word = strings.ToLower(word)
	if !strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return word
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return r
	}, norm.NFD.String(word))
}
