package main

import (
	"strings"
	"unicode/utf8"
)

// maxWords is the most words in a line of dpkg.log, date and time included.
const maxWords = 6

// parseDpkg reads a line of /var/log/dpkg.log:
//
//	2026-11-20 10:01:02 startup archives unpack
//	2026-11-20 10:01:02 status installed libc6:amd64 2.36-9
//	2026-11-20 10:01:02 upgrade libc6:amd64 2.36-8 2.36-9
//	2026-11-20 10:01:02 conffile /etc/issue keep
func parseDpkg(line []byte) (entry, bool) {
	if len(line) > 4096 || !utf8.Valid(line) {
		return entry{}, false
	}
	text := strings.TrimRight(string(line), "\r\n")
	words := strings.Split(text, " ")
	if len(words) < 5 || len(words) > maxWords || !isDate(words[0]) || !isTime(words[1]) {
		return entry{}, false
	}
	for _, w := range words {
		if w == "" {
			return entry{}, false
		}
	}
	e := entry{time: words[0] + "T" + words[1], level: "info", action: words[2], text: strings.Join(words[2:], " ")}
	args := words[3:]
	switch e.action {
	case "startup":
		e.subject = args[0]
		return e, len(args) == 2
	case "conffile":
		e.subject, e.state = args[0], args[1]
		return e, len(args) == 2
	case "status":
		if len(args) != 3 {
			return entry{}, false
		}
		e.state, e.subject, e.version = args[0], args[1], known(args[2])
		return e, true
	case "remove", "purge", "disappear":
		e.level = "warn" // something is being removed
	case "install", "upgrade", "configure", "trigproc":
	default:
		return entry{}, false
	}
	if len(args) != 3 {
		return entry{}, false
	}
	e.subject, e.from, e.version = args[0], known(args[1]), known(args[2])
	return e, true
}

// known returns a version, or "" for the placeholder <none>.
func known(version string) string {
	if version == "<none>" {
		return ""
	}
	return version
}

// isDate reports whether s looks like 2026-11-20.
func isDate(s string) bool { return like(s, "0000-00-00") }

// isTime reports whether s looks like 10:01:02.
func isTime(s string) bool { return like(s, "00:00:00") }

// like reports whether s has a digit wherever shape has a 0, and otherwise
// equals shape.
func like(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		if shape[i] == '0' != digit || (!digit && s[i] != shape[i]) {
			return false
		}
	}
	return true
}
