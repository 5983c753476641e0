package sqlitestore

import "context"

// call is work for the goroutine that makes files, because only one file may be made at a
// time.
type call struct {
	do     func(ctx context.Context) error
	answer chan error // has room for one
}

// call runs f in the hydrator's goroutine, and waits for it.
func (h *hydrator) call(ctx context.Context, f func(ctx context.Context) error) error {
	c := call{f, make(chan error, 1)}
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return stopped("prune", h.d.dir)
	}
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	nudge(h.wake)
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer runs the waiting calls.
func (h *hydrator) answer(ctx context.Context) {
	h.mu.Lock()
	calls := h.calls
	h.calls = nil
	h.mu.Unlock()
	for _, c := range calls {
		c.answer <- c.do(ctx)
	}
}
