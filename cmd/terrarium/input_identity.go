package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// headBytes is how much of the beginning of an input identifies it.
const headBytes = 64 << 10

// identify finds out whether a channel has been fed this input before, and how
// many bytes of it. An input is known by its beginning and not by its name: a
// file that has grown is the same input, and another file of the same name,
// after a log was rotated, is not.
//
// known are the producers of the channel with their offsets.
func identify(r *bufio.Reader, known map[string]uint64) (producer string, seen uint64, err error) {
	head, err := peekLine(r)
	if err != nil {
		return "", 0, err
	}
	for name, offset := range known {
		first, whole, ok := parseProducer(name)
		if !ok || !first.matches(head) {
			continue
		}
		if whole.length > len(head) {
			// The beginning has not arrived yet: wait for it.
			head, err = r.Peek(whole.length)
			if err != nil && !errors.Is(err, io.EOF) {
				return "", 0, err
			}
		}
		if whole.matches(head) && offset >= seen {
			producer, seen = name, offset
		}
	}
	if producer == "" {
		producer = producerName(head)
	}
	return producer, seen, nil
}

// peekLine looks at what has arrived, which is the first line at least, unless
// that is very long. It answers io.EOF for an empty input.
func peekLine(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	for want := r.Buffered(); ; {
		head, err := r.Peek(want)
		if bytes.IndexByte(head, '\n') >= 0 || errors.Is(err, io.EOF) || len(head) >= headBytes {
			return head, nil
		}
		if err != nil {
			return nil, err
		}
		want = max(r.Buffered(), want+1)
	}
}

// fingerprint is a beginning of an input.
type fingerprint struct {
	length int
	hash   string
}

func printOf(b []byte) fingerprint {
	sum := sha256.Sum256(b)
	return fingerprint{len(b), hex.EncodeToString(sum[:8])}
}

func (f fingerprint) matches(b []byte) bool {
	return len(b) >= f.length && printOf(b[:f.length]) == f
}

// producerName names an input by its first line and by all of its beginning
// that was there at the first reading: "head:" length ":" hash ":" length ":"
// hash. The first line alone tells most inputs apart without waiting for more.
func producerName(head []byte) string {
	first := head
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		first = head[:i+1]
	}
	f, w := printOf(first), printOf(head)
	return fmt.Sprintf("head:%d:%s:%d:%s", f.length, f.hash, w.length, w.hash)
}

func parseProducer(name string) (first, whole fingerprint, ok bool) {
	parts := strings.Split(name, ":")
	if len(parts) != 5 || parts[0] != "head" {
		return first, whole, false
	}
	a, err1 := strconv.Atoi(parts[1])
	b, err2 := strconv.Atoi(parts[3])
	if err1 != nil || err2 != nil || a < 0 || b < 0 || b > headBytes {
		return first, whole, false
	}
	return fingerprint{a, parts[2]}, fingerprint{b, parts[4]}, true
}
