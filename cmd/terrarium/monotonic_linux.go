package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time of the clock that systemd compares messages by.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
