package files

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

// headBytes is the size of the beginning that identifies an input.
const headBytes = 64 << 10

// identify finds out whether this input has been sent to a channel before, and how
// many bytes of it. The beginning identifies an input, not the name: a file that has
// grown is the same input, and a new file of the same name, as after a log rotation,
// is another.
//
// known holds the producers of the channel with their offsets.
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
			// Wait until the whole beginning has arrived.
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

// peekLine returns the bytes that have arrived: at least the first line, unless it is
// very long. It returns io.EOF for an empty input.
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

// fingerprint describes a beginning of an input.
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

// producerName names an input by its first line and by the beginning that had arrived
// at the first reading: "head:" length ":" hash ":" length ":" hash. The first line
// alone distinguishes most inputs without waiting for more.
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
