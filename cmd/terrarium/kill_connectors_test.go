//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/internal/seeded"
)

const hookSecret = "a secret of the test of webhooks"

// TestKillConnectors sends lines of a file and requests of a webhook through a creature into a
// file, and kills the service several times at any moment. The senders repeat what was not
// answered. Everything is in the file at the end, once.
func TestKillConnectors(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	dir := t.TempDir()
	recipe := `
variable "secret" {
  sensitive = true
  default   = "` + hookSecret + `"
}
channel "in" {}
channel "out" {}
source "file" "log" {
  channel = channel.in
  path    = "log"
}
source "webhook" "hook" {
  channel = channel.in
  path    = "/hooks/it"
  secret  = var.secret
}
sink "file" "out" {
  channel = channel.out
  path    = "out"
}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.in]
  send   = [channel.out]
}
`
	if err := os.WriteFile(filepath.Join(dir, "r.hcl"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	random := rand.New(rand.NewPCG(seeded.For(t.Name()), 0))
	want := map[string]bool{}
	round, requests := 0, 0
	request := func(s *served) (answered bool) {
		answered = postHook(t.Context(), s, fmt.Sprint("request ", requests), fmt.Sprint("key ", requests))
		if want[fmt.Sprint("request ", requests)] = true; answered {
			requests++
		}
		return answered
	}
	for ; round < kills(t, 4); round++ {
		s := startService(t, dir, nil, "r.hcl")
		for i := range 200 {
			line := fmt.Sprint("line ", round, " ", i)
			want[line] = true
			if _, err := fmt.Fprintln(log, line); err != nil {
				t.Fatal(err)
			}
		}
		killed := time.AfterFunc(time.Duration(random.IntN(300))*time.Millisecond, func() { s.cmd.Process.Kill() })
		for request(s) {
		}
		killed.Stop()
		s.cmd.Process.Kill()
		s.wait()
	}
	s := startService(t, dir, nil, "r.hcl")
	for range 3 {
		if !request(s) {
			t.Fatalf("the service does not take a request:\n%s", s.stderr)
		}
	}
	got := map[string]int{}
	for since := time.Now(); time.Since(since) < deadline && len(got) < len(want); time.Sleep(20 * time.Millisecond) {
		if got, err = delivered(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the service ends with %d:\n%s", code, s.stderr)
	}
	if got, err = delivered(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	for payload := range want {
		if got[payload] != 1 {
			t.Errorf("%q is in the file %d times", payload, got[payload])
		}
	}
	if len(got) != len(want) || requests < 3 {
		t.Errorf("the file has %d messages, want %d, %d of them from requests", len(got), len(want), requests)
	}
}

// soonEvery repeats something until it succeeds, which it must in the end.
func soonEvery(pause time.Duration, try func() bool) bool {
	for since := time.Now(); time.Since(since) < deadline; time.Sleep(pause) {
		if try() {
			return true
		}
	}
	return false
}

// postHook sends a request to the webhook, and reports whether it was taken.
func postHook(ctx context.Context, s *served, body, key string) bool {
	return postHookWith(ctx, s, hookSecret, body, key)
}

func postHookWith(ctx context.Context, s *served, secret, body, key string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/hooks/it", strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Idempotency-Key", key)
	answer, err := s.client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusAccepted
}

// delivered counts the payloads of the whole lines of a file that a sink writes.
func delivered(path string) (map[string]int, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var r struct{ Payload string }
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		out[r.Payload]++
	}
	return out, nil
}

// TestReloadConnectors takes a webhook away and changes the secret of another one while the
// service runs.
func TestReloadConnectors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(hooks string) {
		t.Helper()
		text := hooks + `
channel "in" {}
creature "relay" {
  module = "builtin:echo"
  listen = [channel.in]
}
`
		if err := os.WriteFile(filepath.Join(dir, "r.hcl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := func(name, secret string) string {
		return `variable "` + name + `" {
  sensitive = true
  default   = "` + secret + `"
}
source "webhook" "` + name + `" {
  channel = channel.in
  path    = "/hooks/` + name + `"
  secret  = var.` + name + `
}
`
	}
	write(hook("it", hookSecret) + hook("other", hookSecret))
	s := startService(t, dir, nil, "r.hcl")
	if !postHook(t.Context(), s, "a", "1") {
		t.Fatalf("the webhook does not take a request:\n%s", s.stderr)
	}
	text := once(t, dir, "", "status", "S")
	if !strings.Contains(text, "takes POST /hooks/other") || !strings.Contains(text, "working") {
		t.Errorf("the status is\n%s", text)
	}
	const newSecret = "another secret, which is long enough"
	write(hook("it", newSecret))
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.stderr.await(t, "the recipe was applied")
	if postHook(t.Context(), s, "b", "2") {
		t.Error("the webhook still takes the former secret")
	}
	if !postHookWith(t.Context(), s, newSecret, "c", "3") {
		t.Error("the webhook does not take the new secret when the recipe was applied")
	}
	if text := once(t, dir, "", "status", "S"); strings.Contains(text, "/hooks/other") || !strings.Contains(text, "takes POST /hooks/it") {
		t.Errorf("after the recipe has changed, the status is\n%s", text)
	}
}
