package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
)

// tallying counts lines, and reports on request: a direct message is one. Its creatures
// can be given so few writes that every turn fails.
const tallying = `
terrarium { name = "tallying" }
channel "lines" {}
channel "reports" {}
creature "counts" {
  module = "builtin:tally"
  listen = [channel.lines]
  send   = [channel.reports]
  config = { key = "field:1" }
  %s
}
creature "hears" {
  module = "builtin:tally"
  listen = [channel.reports]
}
`

// stateOf is what a creature of a running exec holds.
func (p *process) stateOf(creature string) map[string]string {
	p.t.Helper()
	var got struct{ State map[string]string }
	if err := json.Unmarshal(p.ask(`{"op":"state","creature":"`+creature+`"}`), &got); err != nil {
		p.t.Fatal(err)
	}
	return got.State
}

// letters are the ids of the dead letters of a running exec.
func (p *process) letters() (ids []string) {
	p.t.Helper()
	var got struct {
		DeadLetters []struct{ ID string } `json:"dead_letters"`
	}
	if err := json.Unmarshal(p.ask(`{"op":"dead_letters","graph":"counts"}`), &got); err != nil {
		p.t.Fatal(err)
	}
	for _, l := range got.DeadLetters {
		ids = append(ids, l.ID)
	}
	return ids
}

// TestRedeliveredToATally has a tally fail at lines, and delivers them to it again: in a
// process that is killed before the tally gets them, and between two processes. Each counts as
// a line that it heard on its channel, once, and none as a request for a report.
func TestRedeliveredToATally(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "tallying.hcl", fmt.Sprintf(tallying, "limits { state_writes = 1 }"))
	args := []string{"exec", "--session", "S", "--recipe", "tallying.hcl"}
	p := start(t, dir, args...)
	for _, line := range []string{"a 1", "b 2", "a 3", "b 4"} {
		p.ask(`{"op":"send","channel":"lines","payload":"` + line + `","durable":true}`)
	}
	p.ask(`{"op":"wait_idle"}`)
	if got := p.letters(); len(got) != 4 {
		t.Fatalf("the dead letters are %q, want 4\n%s", got, p.stderr)
	}
	p.in.Close()
	p.wait()

	write(t, dir, "tallying.hcl", fmt.Sprintf(tallying, ""))
	p = start(t, dir, args...)
	p.ask(`{"op":"stop_creature","creature":"counts"}`)
	for _, id := range p.letters()[:2] {
		p.ask(`{"op":"redeliver","graph":"counts","message":"` + id + `"}`)
	}
	p.ask(`{"op":"send","channel":"lines","payload":"b 5","durable":true}`) // and so is what came before
	p.signal(syscall.SIGKILL)

	if out := once(t, dir, "", "session", "redeliver", "S", "--all"); !strings.Contains(out, "Put back 2 dead letters") {
		t.Errorf("session redeliver printed %q", out)
	}
	p = start(t, dir, args...)
	p.ask(`{"op":"start_creature","creature":"counts"}`)
	p.ask(`{"op":"wait_idle"}`)
	want := map[string]string{"count/a": "2", "count/b": "3", "keys": "2", "total": "5"}
	if got := p.stateOf("counts"); !maps.Equal(got, want) {
		t.Errorf("it has counted %v, want %v", got, want)
	}
	if got := p.stateOf("hears"); len(got) > 0 {
		t.Errorf("it has reported: %v", got)
	}
	if got := p.letters(); len(got) > 0 {
		t.Errorf("the dead letters are %q, want none", got)
	}
	p.ask(`{"op":"send_to","creature":"counts","payload":"what have you counted?"}`)
	p.ask(`{"op":"wait_idle"}`)
	if got := p.stateOf("hears"); got["total"] != "1" {
		t.Errorf("asked for one report, it has sent %v", got)
	}
	p.in.Close()
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}
