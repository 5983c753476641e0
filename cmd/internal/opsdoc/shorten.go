package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// shortener makes answers readable and the same in every run: it numbers ids in the
// order in which they appear, and replaces times.
type shortener struct {
	names map[string]string
	count map[string]int
	times int
}

func newShortener() *shortener {
	return &shortener{names: map[string]string{}, count: map[string]int{}}
}

var (
	idPattern   = regexp.MustCompile(`\b([cghw])[0-9a-hj-km-np-tv-z]{16}\b`)
	uuidPattern = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	evPattern   = regexp.MustCompile(`\b[0-9a-f]{32}-[0-9]+\b`)
	timePattern = regexp.MustCompile(`"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`)
	pathPattern = regexp.MustCompile(`"[^"]*/stores/`)
	sumPattern  = regexp.MustCompile(`"[0-9a-f]{64}"`)
	cursPattern = regexp.MustCompile(`"cursor":"[^"]*"`)
	bytePattern = regexp.MustCompile(`"bytes":[0-9]+`)
	evtPattern  = regexp.MustCompile(`"events":[0-9]+`)
	memPattern  = regexp.MustCompile(`"memory_bytes":[0-9]+`)
	heapPattern = regexp.MustCompile(`,"unaccounted_bytes":[0-9]+|"unaccounted_bytes":[0-9]+,?`)
	wearPattern = regexp.MustCompile(`"(syncs|syncs_per_hour|written_bytes|written_bytes_per_hour)":[0-9]+`)
	limPattern  = regexp.MustCompile(`"limits":\{[^}]*\}`)
	inlined     = regexp.MustCompile(`(?s)[\[{]\s+[^\[\]{}]{0,150}[\]}]`)
)

var kindNames = map[string]string{"c": "creature", "g": "graph", "h": "channel", "w": "wire"}

// name returns the short form of an id.
func (s *shortener) name(kind, id string) string {
	if s.names[id] == "" {
		s.count[kind]++
		s.names[id] = fmt.Sprintf("%s-%d", kind, s.count[kind])
	}
	return s.names[id]
}

// events shortens the ids of events.
func (s *shortener) events(text string) string {
	return evPattern.ReplaceAllStringFunc(text, func(id string) string { return s.name("event", id) })
}

// show returns the printed form of an answer.
func (s *shortener) show(answer []byte) (string, error) {
	text := s.events(string(answer))
	text = cursPattern.ReplaceAllString(text, `"cursor":"…"`)
	text = uuidPattern.ReplaceAllStringFunc(text, func(id string) string { return s.name("session", id) })
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string { return s.name(kindNames[id[:1]], id) })
	text = timePattern.ReplaceAllStringFunc(text, func(string) string {
		s.times++
		return fmt.Sprintf(`"2026-11-20T10:%02d:%02dZ"`, s.times/60, s.times%60)
	})
	text = pathPattern.ReplaceAllString(text, `"S/stores/`)
	text = sumPattern.ReplaceAllString(text, `"…"`)
	text = bytePattern.ReplaceAllString(text, `"bytes":131072`)
	text = evtPattern.ReplaceAllString(text, `"events":25`)
	text = memPattern.ReplaceAllString(text, `"memory_bytes":131072`)
	text = wearPattern.ReplaceAllString(text, `"$1":40`)
	text = heapPattern.ReplaceAllString(text, "")
	text = limPattern.ReplaceAllString(text, `"limits":{"memory":67108864}`)
	if len(text) <= 150 {
		return spaced(text), nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		return "", err
	}
	return inlined.ReplaceAllStringFunc(b.String(), inline), nil
}

// inline writes a short object or list on one line.
func inline(block string) string {
	fields := strings.Fields(block)
	if len(fields) < 2 {
		return block
	}
	line := fields[0] + strings.Join(fields[1:len(fields)-1], " ") + fields[len(fields)-1]
	if len(line) > 120 {
		return block
	}
	return line
}

// spaced adds spaces to compact JSON.
func spaced(text string) string {
	var b strings.Builder
	quoted := false
	for i := range len(text) {
		b.WriteByte(text[i])
		switch {
		case text[i] == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case !quoted && (text[i] == ',' || text[i] == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
