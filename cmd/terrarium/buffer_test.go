package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer collects what a process writes, and can be read meanwhile.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{} // holds a token after a write
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{news: make(chan struct{}, 1)} }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await waits until something has been written.
func (b *lockedBuffer) await(t *testing.T, text string) {
	t.Helper()
	stuck := time.After(deadline)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.news:
		case <-stuck:
			t.Fatalf("%q was never written:\n%s", text, b)
		}
	}
}
