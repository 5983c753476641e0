//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

// TestHibernatedInStatus waits until the creatures of a service hibernate, and reads this in its
// status.
func TestHibernatedInStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "r.hcl", `
channel "in" {}
creature "echo" {
  for_each = toset(["a", "b"])
  module   = "builtin:echo"
  listen   = [channel.in]
}
`)
	startService(t, dir, nil, "r.hcl", "--hibernate-after", "10ms")
	if !soonEvery(50*time.Millisecond, func() bool {
		return strings.Contains(once(t, dir, "", "status", "S"), "2 of 2 creatures hibernate until their next delivery")
	}) {
		t.Errorf("the status is\n%s", once(t, dir, "", "status", "S"))
	}
}
