package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/internal/seeded"
)

// TestKillStopWhen kills a recipe that would talk without end, at random moments, and resumes
// it. It stops after exactly as many turns as its block says, and the log has one stop.
func TestKillStopWhen(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	const turns = 4000
	recipe := fmt.Sprintf(`
channel "ping" {}
channel "pong" {}
creature "ann" {
  module = "builtin:relay"
  listen = [channel.ping]
  send   = [channel.pong]
}
creature "bob" {
  module = "builtin:relay"
  listen = [channel.pong]
  send   = [channel.ping]
}
stop_when "enough" {
  turns = %d
}
`, turns)
	if err := os.WriteFile(filepath.Join(dir, "talk.hcl"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	most := kills(t, 6)
	for i := range most {
		args := []string{"run", "talk.hcl", "--session", "S", "--input", "ping=hello.txt", "--output", "pong"}
		if i > 0 {
			args = []string{"resume", "S", "--output", "pong"}
		} else if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, dir, args...)
		for range 1 + random.IntN(turns/2/(most+1)) {
			if _, err := p.out.ReadString('\n'); err != nil {
				break // it has stopped already
			}
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.wait()
	}
	p := start(t, dir, "resume", "S", "--output", "pong")
	if code := p.wait(); code != exitOK || !strings.Contains(p.stderr.String(), fmt.Sprintf("talk has stopped, because stop_when.enough holds: turns %d of %d", turns, turns)) {
		t.Fatalf("exit code %d\n%s", code, p.stderr)
	}
	if got := strings.Count(once(t, dir, "", "events", "S", "--kind", "turn_ended"), "\n"); got != turns {
		t.Errorf("there were %d turns, want %d", got, turns)
	}
	if got := strings.Count(once(t, dir, "", "events", "S", "--kind", "recipe_stopped"), "\n"); got != 1 {
		t.Errorf("the log has %d stops", got)
	}
}
