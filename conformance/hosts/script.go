package hosts

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/abi"
)

// Addresses in the memory of the probe; see modules/probe.c.
const (
	scriptBase = 0x10000
	bufferBase = 0x20000
	fill       = 0xAA
)

// ownCalls are the functions of the probe itself.
var ownCalls = map[string]uint32{
	"memory_grow": 100, "trap": 101, "loop": 102, "recurse": 103, "count": 104, "early": 105, "kind": 106, "given_size": 107,
	"repeat": 108, "phases": 109, "peek": 110, "poke": 111, "abort": 112,
	"args_sizes_get": 200, "environ_sizes_get": 201, "clock_time_get": 202, "fd_prestat_get": 203, "fd_read": 204, "fd_write": 205,
	"poll_oneoff": 206, "random_get": 207, "proc_exit": 208,
}

// call is a line of a script: a call, and what must come of it.
type call struct {
	line   int
	text   string
	number uint32
	args   []int64
	buffer [2]uint32 // address and length; none if the length is 0
	result string    // the expectation; empty: anything
	bytes  string    // of the buffer; empty: anything
}

// script is what the probe does in one turn.
type script struct {
	calls    []call
	data     []byte
	byOutput bool // it reports as output, because log lines are what is tested
	byStatus bool // it returns the result of the last call instead of reporting
}

// parseScript reads a script, one call on each line:
//
//	NAME ARGUMENT… [= RESULT] [-> BYTES]
//
// An argument is a number, the name of a source, level.NAME or feature.NAME, a quoted text
// (its address and length; "x"*N repeats it), or @N: the address and length of a buffer of
// N bytes. RESULT is a number, the name of an error, >N, or $NAME, which must be equal
// wherever it is used; !$NAME must differ. BYTES is the text at the beginning of the
// buffer, with nothing written after it; ~"text" for a part of it; !"text" for another beginning; untouched; or $NAME.
func parseScript(text string) (*script, error) {
	s := &script{}
	lines := strings.Split(text, "\n")
	count := 0
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			count++
		}
	}
	base := scriptBase + 16 + 64*count
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		c := call{line: i + 1, text: line}
		if err := s.parse(&c, line, base); err != nil {
			return nil, fmt.Errorf("line %d, %s: %w", i+1, line, err)
		}
		s.calls = append(s.calls, c)
	}
	return s, nil
}

func (s *script) parse(c *call, line string, base int) error {
	name, rest, _ := strings.Cut(line, " ")
	var ok bool
	if c.number, ok = functionNumber(name); !ok {
		return fmt.Errorf("there is no function %s", name)
	}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		switch {
		case strings.HasPrefix(rest, "->"):
			c.bytes = strings.TrimSpace(rest[2:])
			if c.buffer[1] == 0 {
				return fmt.Errorf("-> needs a buffer, such as @16")
			}
			return nil
		case rest[0] == '=':
			var want string
			want, rest, _ = strings.Cut(strings.TrimSpace(rest[1:]), " ")
			c.result = want
		case rest[0] == '"':
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return fmt.Errorf("%s: %w", rest, err)
			}
			rest = rest[len(quoted):]
			text, _ := strconv.Unquote(quoted)
			if strings.HasPrefix(rest, "*") {
				word, _, _ := strings.Cut(rest[1:], " ")
				n, err := strconv.Atoi(word)
				if err != nil {
					return err
				}
				text, rest = strings.Repeat(text, n), rest[1+len(word):]
			}
			c.args = append(c.args, int64(base+len(s.data)), int64(len(text)))
			s.data = append(s.data, text...)
		default:
			word, more, _ := strings.Cut(rest, " ")
			if err := c.argument(word); err != nil {
				return err
			}
			rest = more
		}
	}
	return nil
}

// argument adds an argument that is one word.
func (c *call) argument(word string) error {
	if n, ok := strings.CutPrefix(word, "@"); ok {
		size, err := strconv.ParseUint(n, 10, 15)
		if err != nil {
			return err
		}
		c.buffer = [2]uint32{bufferBase, uint32(size)}
		c.args = append(c.args, bufferBase, int64(size))
		return nil
	}
	if n, ok := functionNumber(word); ok && len(c.args) == 1 && c.number == ownCalls["repeat"] {
		c.args = append(c.args, int64(n))
		return nil
	}
	v, err := number(word)
	if err != nil {
		return err
	}
	c.args = append(c.args, v)
	return nil
}

func functionNumber(name string) (uint32, bool) {
	if n, ok := ownCalls[name]; ok {
		return n, true
	}
	at := slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Name == name })
	return uint32(at), at >= 0
}

// number reads a number or the name of one.
func number(word string) (int64, error) {
	if v, err := strconv.ParseInt(word, 0, 64); err == nil {
		return v, nil
	}
	if name, ok := strings.CutPrefix(word, "feature."); ok {
		if at := slices.IndexFunc(abi.Features, func(f abi.FeatureInfo) bool { return f.Name == name }); at >= 0 {
			return int64(at), nil
		}
	}
	if name, ok := strings.CutPrefix(word, "level."); ok {
		if at := slices.Index(abi.LevelNames[:], name); at >= 0 {
			return int64(at), nil
		}
	}
	if at := slices.IndexFunc(abi.Sources, func(s abi.SourceInfo) bool { return s.Name == word }); at >= 0 {
		return int64(at), nil
	}
	return 0, fmt.Errorf("%q is neither a number nor the name of a source, level.NAME or feature.NAME", word)
}

// encode returns the bytes that the probe reads.
func (s *script) encode(status int32) []byte {
	b := []byte("TPRB")
	flags := uint32(0)
	if s.byOutput {
		flags = 1
	}
	if s.byStatus {
		flags |= 2
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(status))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.calls)))
	for _, c := range s.calls {
		b = binary.LittleEndian.AppendUint32(b, c.number)
		b = binary.LittleEndian.AppendUint32(b, c.buffer[0])
		b = binary.LittleEndian.AppendUint32(b, c.buffer[1])
		b = binary.LittleEndian.AppendUint32(b, 0)
		for i := range 6 {
			v := int64(0)
			if i < len(c.args) {
				v = c.args[i]
			}
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	}
	return append(b, s.data...)
}

// judge compares a report with the expectations, and returns what is wrong. vars holds
// the values of $NAME.
func (s *script) judge(report string, vars map[string]string) []string {
	if len(s.calls) == 0 {
		return nil
	}
	parts := strings.Split(report, " ")
	if len(parts) != len(s.calls) {
		return []string{fmt.Sprintf("the probe reported %d calls instead of %d: %.200q", len(parts), len(s.calls), report)}
	}
	var wrong []string
	for i := range s.calls {
		c := &s.calls[i]
		digits, dump, _ := strings.Cut(parts[i], ":")
		v, err := strconv.ParseUint(digits, 16, 64)
		buffer, err2 := hex.DecodeString(dump)
		if err != nil || err2 != nil {
			return append(wrong, fmt.Sprintf("the report of %s is not one: %.100q", c.text, parts[i]))
		}
		if got := int64(v); !matchesResult(c.result, got, vars) {
			wrong = append(wrong, fmt.Sprintf("%s returned %s", c.text, resultText(got)))
		}
		if why := matchesBytes(c.bytes, buffer, vars); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", c.text, why))
		}
	}
	return wrong
}

func resultText(v int64) string {
	if code := abi.CodeOfStatus(int32(v)); v < 0 && v >= -int64(len(abi.Codes)) {
		return fmt.Sprintf("%d (%s)", v, code)
	}
	return strconv.FormatInt(v, 10)
}

func matchesResult(want string, got int64, vars map[string]string) bool {
	if want == "" || want == "?" {
		return true
	}
	if least, ok := strings.CutPrefix(want, ">"); ok {
		n, err := number(least)
		return err == nil && got > n
	}
	if strings.Contains(want, "$") {
		return matchesVariable(want, strconv.FormatInt(got, 10), vars)
	}
	if code, ok := abi.ParseCode(want); ok {
		return got == int64(code.Status())
	}
	n, err := number(want)
	return err == nil && got == n
}

func matchesVariable(want, got string, vars map[string]string) bool {
	name, differs := strings.CutPrefix(want, "!")
	old, known := vars[name]
	if differs {
		return known && old != got
	}
	if !known {
		vars[name] = got
		return true
	}
	return old == got
}

// matchesBytes returns what is wrong with the contents of a buffer, or "".
func matchesBytes(want string, got []byte, vars map[string]string) string {
	if want == "" {
		return ""
	}
	shown := func(b []byte) string { return fmt.Sprintf("the buffer has %.200q", bytes.TrimRight(b, "\xaa")) }
	switch {
	case want == "untouched":
		if len(bytes.Trim(got, "\xaa")) > 0 {
			return shown(got)
		}
	case strings.Contains(want[:1], "$") || strings.HasPrefix(want, "!$"):
		if !matchesVariable(want, string(got), vars) {
			return shown(got)
		}
	case want[0] == '!':
		text, err := strconv.Unquote(want[1:])
		if err != nil || bytes.HasPrefix(got, []byte(text)) {
			return shown(got)
		}
	case want[0] == '~':
		text, err := strconv.Unquote(want[1:])
		if err != nil || !bytes.Contains(got, []byte(text)) {
			return shown(got)
		}
	default:
		text, err := strconv.Unquote(want)
		if err != nil || len(text) > len(got) || string(got[:len(text)]) != text || len(bytes.Trim(got[len(text):], "\xaa")) > 0 {
			return shown(got)
		}
	}
	return ""
}
