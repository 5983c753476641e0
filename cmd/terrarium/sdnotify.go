package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// notify sends the state of the service to the service manager, if there is one that has
// requested it. A failure is only reported.
func (x *service) notify(lines ...string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		x.log.Warn("the service manager cannot be reached", "error", err.Error())
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		x.log.Warn("the service manager cannot be reached", "error", err.Error())
	}
}

// notifyReloading says that the recipes are being read again.
func (x *service) notifyReloading() {
	x.notify("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic().Microseconds()))
}

// keepAlive tells the service manager that the engine answers, twice in each interval of
// its watchdog.
func (x *service) keepAlive(ctx context.Context) {
	interval, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC"))
	if err != nil || interval <= 0 {
		return
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return
	}
	tick := time.NewTicker(time.Duration(interval) * time.Microsecond / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := x.t.Status(""); err == nil {
				x.notify("WATCHDOG=1")
			}
		case <-ctx.Done():
			return
		}
	}
}
