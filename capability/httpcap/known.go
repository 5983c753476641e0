package httpcap

import "sync"

const (
	// mostKnown is how many heads of requests a grant remembers. When there are more, it
	// starts over: the heads then differ from request to request, and remembering them is
	// of no use.
	mostKnown = 64
	// mostKnownBytes bounds each of them, so that a grant keeps at most 256 KiB.
	mostKnownBytes = 4 << 10
)

// known remembers the heads that the grant allows. A head is read when a turn makes the request,
// before each attempt, and for each attempt. Creatures repeat their heads: what differs is
// usually the body. Whether a head is allowed follows from the head and the settings alone.
type known struct {
	mu    sync.Mutex
	heads map[string]checkedHead
}

// checkedHead is a head and where it leads. It is shared, and must not be changed.
type checkedHead struct {
	head
	to *target
}

func (k *known) find(raw []byte) (checkedHead, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.heads[string(raw)]
	return h, ok
}

func (k *known) keep(raw []byte, h checkedHead) {
	if len(raw) > mostKnownBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heads == nil || len(k.heads) >= mostKnown {
		k.heads = map[string]checkedHead{}
	}
	k.heads[string(raw)] = h
}
