package hibernation

import (
	"runtime/debug"
	"testing"
	"time"
)

// TestDue compares the ticks at which a schedule sweeps. From the tenth to the twelfth tick,
// there is little memory left.
func TestDue(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		bound int64
		every time.Duration // between two ticks
		want  []int         // ticks of the first twenty
	}{
		{"by default", 0, -1, DefaultAfter, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
		{"never", -1, -1, 0, nil},
		{"only under pressure", -1, 1000, time.Second, []int{10, 11, 12}},
		{"after seven seconds, or under pressure", 7 * time.Second, 1000, time.Second, []int{7, 10, 11, 12, 19}},
		{"after less than a second, or under pressure", time.Second / 2, 1000, time.Second / 2, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
		{"enough memory", -1, 2000, time.Second, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(tt.after, tt.bound)
			tick := 0
			s.used = func() int64 {
				if tick >= 10 && tick <= 12 {
					return 901
				}
				return 900
			}
			if s.every != tt.every {
				t.Errorf("a tick every %v, want %v", s.every, tt.every)
			}
			if s.every == 0 {
				return // the schedule never runs
			}
			var got []int
			for tick = 1; tick <= 20; tick++ {
				if s.due() {
					got = append(got, tick)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("the schedule sweeps at the ticks %v, want %v", got, tt.want)
			}
			for i := range got {
				if got[i] != tt.want[i] {
					t.Fatalf("the schedule sweeps at the ticks %v, want %v", got, tt.want)
				}
			}
		})
	}
}

// TestTheLimitOfGoBounds proves that the memory limit of the Go runtime is the bound if no
// other bound is given.
func TestTheLimitOfGoBounds(t *testing.T) {
	if s := New(-1, 0); s.every != 0 && s.most == 0 {
		t.Errorf("without a limit, the schedule ticks every %v", s.every)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 50))
	if s := New(-1, 0); s.most != 1<<50-1<<50/10 || s.every != time.Second {
		t.Errorf("with a limit of %d, the bound is %d", int64(1)<<50, s.most)
	}
	if s := New(-1, -1); s.every != 0 {
		t.Error("the schedule has a bound, although none is wanted")
	}
}

// TestUsed proves that Used counts memory that is in use.
func TestUsed(t *testing.T) {
	const more = 64 << 20
	before := Used()
	b := make([]byte, more)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	if grown := Used() - before; before <= 0 || grown < more/2 {
		t.Errorf("%d bytes were in use, and %d more after an allocation of %d bytes (%d)", before, grown, more, b[0])
	}
}

// TestRun sweeps until the channel is closed.
func TestRun(t *testing.T) {
	s := New(time.Millisecond, -1)
	quit := make(chan struct{})
	n := 0
	s.Run(quit, func() {
		if n++; n == 3 {
			close(quit)
		}
	})
	if n < 3 {
		t.Errorf("the schedule has swept %d times, want at least 3", n)
	}
	New(-1, -1).Run(nil, func() { t.Error("a schedule that never sweeps has swept") })
}
