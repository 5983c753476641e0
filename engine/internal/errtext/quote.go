package errtext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxErrorText bounds logged error texts, in bytes.
const maxErrorText = 4 << 10

func Clip(s string) string {
	return Cut(s, maxErrorText)
}

// Cut shortens a text to at most that many bytes, without dividing a
// character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:runeEnd(s, most)] + "…"
}

// Quoted quotes a name from a guest for an error, shortened, because a guest
// may name anything.
func Quoted(name []byte) string {
	const most = 64
	if len(name) <= most {
		return strconv.Quote(string(name))
	}
	return strconv.Quote(string(name[:runeEnd(name, most)])) + "…"
}

// runeEnd returns where to cut a text that has more than most bytes, without
// dividing a character.
func runeEnd[T string | []byte](text T, most int) int {
	for at := most; at > most-utf8.UTFMax && at > 0; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return most // it is not UTF-8
}

// PlainID returns an id in the form used in lists. An id from a guest may be
// any text, and is then quoted.
func PlainID(id string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/~:", r)
	}
	if id == "" || strings.ContainsFunc(id, odd) || len(id) > 64 {
		return Quoted([]byte(id))
	}
	return id
}

// Count is a number with its noun.
func Count[N int | uint64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Few shortens a list that is to be read.
func Few(list []string) []string {
	const most = 10
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
}

// listedAtMost is how many names a sentence lists.
const listedAtMost = 16

// Listed joins names for a sentence, not too many of them.
func Listed(names []string) string {
	return AndMore(names[:min(len(names), listedAtMost)], len(names))
}
