//go:build !linux

package main

import "time"

// monotonic is only for systemd, which runs on Linux.
func monotonic() time.Duration { return 0 }
