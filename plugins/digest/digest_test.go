package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/sdk/go/terrarium"
	"github.com/seed47132306/terrarium/sdk/go/terrarium/terrariumtest"
)

// digest delivers one line and returns the messages sent.
func digest(t *testing.T, config map[string]any, line string) (sent []string, err error) {
	t.Helper()
	f := terrariumtest.New(creature())
	f.Config, f.Channels = config, []string{"out"}
	if err := f.Init(); err != nil {
		return f.Logs, err
	}
	err = f.Message("in", line)
	for _, s := range f.Sent {
		sent = append(sent, s.Payload)
	}
	return sent, err
}

func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-20 10:01:02 status installed libc6:amd64 2.36-9": `{"time":"2026-11-20T10:01:02","level":"info","action":"status","state":"installed","subject":"libc6:amd64","version":"2.36-9","text":"status installed libc6:amd64 2.36-9"}`,
		"2026-11-20 10:01:02 upgrade libc6:amd64 2.36-8 2.36-9\n": `{"time":"2026-11-20T10:01:02","level":"info","action":"upgrade","subject":"libc6:amd64","from":"2.36-8","version":"2.36-9","text":"upgrade libc6:amd64 2.36-8 2.36-9"}`,
		"2026-11-20 10:01:02 remove cmake:amd64 3.25.1-1 <none>":  `{"time":"2026-11-20T10:01:02","level":"warn","action":"remove","subject":"cmake:amd64","from":"3.25.1-1","text":"remove cmake:amd64 3.25.1-1 \u003cnone\u003e"}`,
		"2026-11-20 10:01:02 startup archives unpack":             `{"time":"2026-11-20T10:01:02","level":"info","action":"startup","subject":"archives","text":"startup archives unpack"}`,
		"2026-11-20 10:01:02 conffile /etc/issue keep":            `{"time":"2026-11-20T10:01:02","level":"info","action":"conffile","state":"keep","subject":"/etc/issue","text":"conffile /etc/issue keep"}`,
		"2026-11-20 10:01:02 dance a b c":                         `{"time":"2026-11-20T10:01:02","level":"info","text":"dance a b c"}`,
		"2026-11-20T10:01:02.5Z sshd[17]: ERROR no route":         `{"time":"2026-11-20T10:01:02.5Z","level":"error","subject":"sshd","text":"ERROR no route"}`,
		"2026-11-20 10:01:02,123 WARNING: disk is full":           `{"time":"2026-11-20T10:01:02.123","level":"warn","text":"WARNING: disk is full"}`,
		"kernel: [info] no error":                                 `{"level":"info","subject":"kernel","text":"[info] no error"}`,
		"an error_count of 0 and warnings":                        `{"level":"info","text":"an error_count of 0 and warnings"}`,
		"Fatal \"quoted\" \\ \t":                                  `{"level":"error","text":"Fatal \"quoted\" \\ \u0009"}`,
		"":                                                        `{"level":"info","text":""}`,
		"\xff WARN":                                               `{"level":"warn","text":"\ufffd WARN","base64":"/yBXQVJO"}`,
		"2026-11-20 10:01:02":                                     `{"time":"2026-11-20T10:01:02","level":"info","text":""}`,
		"2026-11-20 10:01:02x":                                    `{"level":"info","text":"2026-11-20 10:01:02x"}`,
		"2026-11-20 10:01:02 status installed  libc6:amd64":       `{"time":"2026-11-20T10:01:02","level":"info","text":"status installed  libc6:amd64"}`,
	} {
		sent, err := digest(t, nil, line)
		if err != nil || len(sent) != 1 {
			t.Fatalf("%q: %v, %v", line, sent, err)
		}
		if !sameJSON(t, sent[0], want) {
			t.Errorf("%q\n got %s\nwant %s", line, sent[0], want)
		}
	}
}

func sameJSON(t *testing.T, got, want string) bool {
	t.Helper()
	var g, w map[string]string
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if len(g) != len(w) {
		return false
	}
	for k, v := range w {
		if g[k] != v {
			return false
		}
	}
	return true
}

func TestMismatch(t *testing.T) {
	const line = "not \xff dpkg"
	for mismatch, want := range map[string][]string{"": {line}, "pass": {line}, "drop": nil} {
		config := map[string]any{"format": "dpkg"}
		if mismatch != "" {
			config["on_mismatch"] = mismatch
		}
		sent, err := digest(t, config, line)
		if err != nil || strings.Join(sent, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q, %v", mismatch, sent, err)
		}
	}
	if _, err := digest(t, map[string]any{"format": "dpkg", "on_mismatch": "fail"}, line); !errors.Is(err, terrarium.InvalidArgument) {
		t.Errorf("fail: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for name, want := range map[string]string{
		"format":      `error config: format: use "auto" or "dpkg", not "x" (invalid_argument)`,
		"on_mismatch": `error config: on_mismatch: use "pass", "drop" or "fail", not "x" (invalid_argument)`,
	} {
		logs, err := digest(t, map[string]any{name: "x"}, "")
		if !errors.Is(err, terrarium.InvalidArgument) || strings.Join(logs, "") != want {
			t.Errorf("%v: %q", err, logs)
		}
	}
}

// If the machine has a real log, digest understands every line of it.
func TestRealLog(t *testing.T) {
	f, err := os.Open("/var/log/dpkg.log")
	if err != nil {
		t.Log("there is no /var/log/dpkg.log here: nothing to compare with")
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if e, ok := parseDpkg(lines.Bytes()); !ok || e.subject == "" {
			t.Errorf("not understood: %s", lines.Text())
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("2026-11-20 10:01:02 status installed libc6:amd64 2.36-9"))
	f.Add([]byte("2026-11-20T10:01:02+01:00 a[1]: err\x00\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseDpkg(line)
		if !ok {
			e = parseAny(line)
		}
		got := e.appendJSON(nil)
		var members map[string]string
		if err := json.Unmarshal(got, &members); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if (e.raw != nil) == utf8.Valid(line) {
			t.Errorf("%q: the bytes are kept: %v", line, e.raw != nil)
		}
	})
}
