package stores

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/storetest"
)

// trial is one run of a check: a [storetest.T] without go test.
type trial struct {
	ctx context.Context
	top string // for temporary directories

	mu       sync.Mutex
	seen     []string // what is wrong
	skipped  string   // why it does not apply
	cleanups []func()
	dirs     []string
	ended    bool // what is reported later is not recorded
}

var _ storetest.T = (*trial)(nil)

// maxSeen is how many mistakes of a check are kept, and maxText the length of each.
const maxSeen, maxText = 10, 4000

// perform runs the check, and what it has registered with Cleanup.
func (t *trial) perform(c *storetest.Check, s *Subject) {
	t.guarded(func() {
		c.Run(t, func(_ storetest.T, dir string) journal.Storage {
			storage, err := s.Open(t.ctx, dir)
			if err != nil || storage == nil {
				t.Fatalf("the directory cannot be opened: %v", err)
			}
			return storage
		})
	})
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		var last func()
		if n > 0 {
			last, t.cleanups = t.cleanups[n-1], t.cleanups[:n-1]
		}
		t.mu.Unlock()
		if last == nil {
			break
		}
		t.guarded(last)
	}
	t.mu.Lock()
	dirs := t.dirs
	t.mu.Unlock()
	for _, dir := range dirs {
		_ = os.RemoveAll(dir) // the directory of the run is removed with all that is left
	}
}

// guarded runs f in a goroutine of its own, which Fatal and Skip end, and waits for it.
func (t *trial) guarded(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		returned := false
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("panic: %v\n%s", v, stack())
			} else if !returned && !t.concluded() {
				t.Error("the store has ended the goroutine of its caller")
			}
		}()
		f()
		returned = true
	}()
	<-ended
}

// stack names the functions that have panicked, the innermost first.
func stack() string {
	var pcs [24]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	var out []string
	for more := true; more && len(out) < 6; {
		var f runtime.Frame
		f, more = frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			out = append(out, "in "+f.Function)
		}
	}
	return strings.Join(out, "\n")
}

func (t *trial) concluded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen) > 0 || t.skipped != ""
}

// end returns what was seen, and lets nothing more be recorded.
func (t *trial) end() (seen []string, skipped string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.seen, t.skipped
}

func (t *trial) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = strings.TrimSuffix(text, "\n")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	if !t.ended && len(t.seen) < maxSeen {
		t.seen = append(t.seen, text)
	}
}

// Helper implements [storetest.T].
func (t *trial) Helper() {}

// Error implements [storetest.T].
func (t *trial) Error(args ...any) { t.note(fmt.Sprintln(args...)) }

// Errorf implements [storetest.T].
func (t *trial) Errorf(format string, args ...any) { t.note(fmt.Sprintf(format, args...)) }

// Fatal implements [storetest.T].
func (t *trial) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

// Fatalf implements [storetest.T].
func (t *trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Skip implements [storetest.T].
func (t *trial) Skip(args ...any) {
	t.mu.Lock()
	t.skipped = strings.TrimSuffix(fmt.Sprintln(args...), "\n")
	t.mu.Unlock()
	runtime.Goexit()
}

// Context implements [storetest.T].
func (t *trial) Context() context.Context { return t.ctx }

// TempDir implements [storetest.T].
func (t *trial) TempDir() string {
	dir, err := os.MkdirTemp(t.top, "check-")
	if err != nil {
		t.Fatalf("no temporary directory: %v", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs = append(t.dirs, dir)
	return dir
}

// Cleanup implements [storetest.T].
func (t *trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}
