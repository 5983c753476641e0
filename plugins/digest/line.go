package main

import (
	"strings"
	"unicode/utf8"
)

// parseAny finds what it can in any line: a time at the start, a program's
// name after it, and a word that names a level.
func parseAny(line []byte) entry {
	e := entry{}
	if !utf8.Valid(line) {
		e.raw = line
	}
	rest := strings.TrimRight(string(line), "\r\n")
	e.time, rest = cutTime(rest)
	e.level = levelOf(rest)
	e.subject, rest = cutProgram(rest)
	e.text = rest
	return e
}

// cutTime cuts an ISO 8601 date and time, in one word or two, from the start
// of a line.
func cutTime(line string) (time, rest string) {
	const date, clock = len("2026-11-20"), len("10:01:02")
	if len(line) < date+1+clock || !isDate(line[:date]) || !isTime(line[date+1:date+1+clock]) {
		return "", line
	}
	if between := line[date]; between != ' ' && between != 'T' && between != 't' {
		return "", line
	}
	end := date + 1 + clock
	for end < len(line) && strings.IndexByte(".,0123456789Zz+-:", line[end]) >= 0 {
		end++
	}
	if end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != ']' {
		return "", line
	}
	tail := strings.TrimRight(strings.Replace(line[date+1:end], ",", ".", 1), ":.+-")
	return line[:date] + "T" + tail, strings.TrimLeft(line[end:], " \t]")
}

// levels maps words to the levels they mean.
var levels = map[string]string{
	"TRACE": "debug", "DEBUG": "debug",
	"INFO": "info", "NOTICE": "info",
	"WARN": "warn", "WARNING": "warn",
	"ERROR": "error", "ERR": "error", "FATAL": "error", "CRITICAL": "error", "CRIT": "error", "SEVERE": "error",
	"ALERT": "error", "EMERG": "error", "PANIC": "error",
}

// maxLevelBytes is how far into a line levelOf searches for a level.
const maxLevelBytes = 4096

// levelOf returns the level of the first such word in the line, else info.
func levelOf(line string) string {
	if len(line) > maxLevelBytes {
		line = line[:maxLevelBytes]
	}
	for len(line) > 0 {
		start := strings.IndexFunc(line, isLetter)
		if start < 0 {
			break
		}
		line = line[start:]
		end := strings.IndexFunc(line, func(r rune) bool { return !isLetter(r) })
		if end < 0 {
			end = len(line)
		}
		if level, ok := levels[strings.ToUpper(line[:end])]; ok {
			return level
		}
		line = line[end:]
	}
	return "info"
}

func isLetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' || r == '_' || r >= utf8.RuneSelf }

// cutProgram cuts "name:" or "name[123]:" from the start of a line, unless the
// name is a level.
func cutProgram(line string) (program, rest string) {
	word, rest, ok := strings.Cut(line, ": ")
	if !ok || word == "" || len(word) > 64 || strings.ContainsAny(word, " \t\"'(){}=") {
		return "", line
	}
	name, _, _ := strings.Cut(word, "[")
	if _, isLevel := levels[strings.ToUpper(name)]; isLevel || name == "" {
		return "", line
	}
	return name, strings.TrimLeft(rest, " ")
}
