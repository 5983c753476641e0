package errtext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxErrorText bounds the error texts that are logged.
const maxErrorText = 4 << 10

func Clip(s string) string {
	return Cut(s, maxErrorText)
}

// Cut shortens a text that has more than so many bytes, between two characters.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:runeEnd(s, most)] + "…"
}

// Quoted shows what a guest named, in errors. A guest may name anything: there
// is no use in all of it.
func Quoted(name []byte) string {
	const most = 64
	if len(name) <= most {
		return strconv.Quote(string(name))
	}
	return strconv.Quote(string(name[:runeEnd(name, most)])) + "…"
}

// runeEnd is where to cut a longer text so that it has no more than so many bytes
// and no half a character.
func runeEnd[T string | []byte](text T, most int) int {
	for at := most; at > most-utf8.UTFMax && at > 0; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return most // it is not UTF-8
}

// PlainID is an id as it stands in a list. What a guest has taken for an id may be
// any text, and is quoted.
func PlainID(id string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/~:", r)
	}
	if id == "" || strings.ContainsFunc(id, odd) || len(id) > 64 {
		return Quoted([]byte(id))
	}
	return id
}
