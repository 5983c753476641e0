//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/connector/mqtt"
	"github.com/seed47132306/terrarium/connector/mqtt/mqtttest"
	"github.com/seed47132306/terrarium/internal/seeded"
)

// TestKillMQTT sends messages of a broker through a creature back to the broker, with both
// versions of the protocol and both qualities of service that lose nothing, and kills the service
// several times at any moment. Each message is handled once: the broker gets it at least once,
// always with the id of one event.
func TestKillMQTT(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	broker, err := mqtttest.Start(mqtttest.Options{Username: "it", Secret: "a password"})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	dir := t.TempDir()
	recipe := fmt.Sprintf(`
variable "password" {
  sensitive = true
  default   = "a password"
}
locals {
  broker = "mqtt://%s"
}
channel "in" {}
channel "out" {}
source "mqtt" "one" {
  channel       = channel.in
  broker        = local.broker
  client_id     = "one"
  username      = "it"
  password      = var.password
  topics        = ["in/1"]
  max_in_flight = 1000
}
source "mqtt" "two" {
  channel       = channel.in
  broker        = local.broker
  client_id     = "two"
  username      = "it"
  password      = var.password
  version       = "3.1.1"
  topics        = ["in/2"]
  qos           = 2
  max_in_flight = 1000
}
sink "mqtt" "out" {
  channel  = channel.out
  broker   = local.broker
  username = "it"
  password = var.password
  topic    = "out"
}
creature "relay" {
  module = "builtin:relay"
  listen = [channel.in]
  send   = [channel.out]
}
`, broker.Address())
	if err := os.WriteFile(filepath.Join(dir, "r.hcl"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string]map[string]int{} // how often a payload came, by the id of the event
	if err := broker.Subscribe("out", 1, func(m mqtttest.Message) {
		mu.Lock()
		defer mu.Unlock()
		if got[m.Payload] == nil {
			got[m.Payload] = map[string]int{}
		}
		got[m.Payload][m.Properties[mqtt.IDProperty]]++
	}); err != nil {
		t.Fatal(err)
	}
	start := func() *served {
		s := startService(t, dir, nil, "r.hcl")
		s.stderr.await(t, "subscribes to in/1")
		s.stderr.await(t, "subscribes to in/2")
		return s
	}
	random := rand.New(rand.NewPCG(seeded.For(t.Name()), 0))
	want := map[string]bool{}
	for range kills(t, 4) {
		s := start()
		killed := make(chan struct{})
		time.AfterFunc(time.Duration(random.IntN(300))*time.Millisecond, func() {
			s.cmd.Process.Kill()
			close(killed)
		})
		for over, n := false, 0; !over && n < 500; n++ {
			for qos := range byte(2) {
				payload := fmt.Sprint("message ", len(want))
				want[payload] = true
				if err := broker.Publish(fmt.Sprint("in/", qos+1), payload, qos+1, false); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-killed:
				over = true
			default:
			}
		}
		<-killed
		s.wait()
		broker.Cut()
	}
	s := start()
	count := func() (n, again int) {
		mu.Lock()
		defer mu.Unlock()
		for _, ids := range got {
			for _, times := range ids {
				again += times - 1
			}
		}
		return len(got), again
	}
	soonEvery(20*time.Millisecond, func() bool { n, _ := count(); return n == len(want) })
	if code := s.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("the service ends with %d:\n%s", code, s.stderr)
	}
	n, again := count()
	t.Logf("%d messages, of which %d came again", n, again)
	if n != len(want) {
		t.Errorf("the broker has %d messages, want %d", n, len(want))
	}
	mu.Lock()
	defer mu.Unlock()
	for payload, ids := range got {
		if len(ids) != 1 || !want[payload] {
			t.Errorf("%q was handled as %v", payload, ids)
		}
	}
}
