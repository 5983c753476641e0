package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

const (
	// hubEvents is the number of events that a hub holds for slow readers.
	hubEvents = streamBuffer
	// gather is how long a reader of a hub waits for more events after the first, so that
	// many events take few writes.
	gather = 20 * time.Millisecond
)

// hub encodes each event once, without contents, for all streams that want no more. It
// subscribes to the engine while it has readers.
type hub struct {
	t *terrarium.Terrarium

	mu      sync.Mutex // guards the fields below
	readers int
	sub     *engine.Subscription
	ended   chan struct{} // closed when the goroutine that reads sub has ended
	entries [hubEvents]entry
	next    uint64        // place of the next entry; place n is entries[n%hubEvents]
	first   uint64        // place of the first entry since sub was started
	news    chan struct{} // closed when there are entries, if a reader waits; nil if none does
}

// entry is an encoded event.
type entry struct {
	kind journal.EventKind
	text []byte
}

// join adds a reader, which has to leave, and returns the place of the next event.
func (b *hub) join(ctx context.Context) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers++
	if b.sub == nil {
		b.first = b.next
		b.sub, b.ended = b.t.Subscribe(engine.Filter{}, hubEvents), make(chan struct{})
		go b.read(context.WithoutCancel(ctx), b.sub, b.ended) // it ends with the last reader, not with the first
	}
	return b.next
}

// leave removes a reader. The last one ends the subscription.
func (b *hub) leave() {
	b.mu.Lock()
	b.readers--
	var ended chan struct{}
	if b.readers == 0 {
		b.sub.Close()
		ended, b.sub = b.ended, nil
	}
	b.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// read encodes events until the subscription is closed.
func (b *hub) read(ctx context.Context, sub *engine.Subscription, ended chan struct{}) {
	defer close(ended)
	for ob := range sub.All(ctx) {
		e := entry{ob.Event.Kind, encodeEvent(nil, sub, &ob, false)}
		b.mu.Lock()
		if b.sub != sub { // closed: a later subscription has the following events
			b.mu.Unlock()
			return
		}
		b.entries[b.next%hubEvents] = e
		b.next++
		if b.news != nil {
			close(b.news)
			b.news = nil
		}
		b.mu.Unlock()
	}
}

// oldest is the place of the oldest entry.
func (b *hub) oldest() uint64 {
	if b.next-b.first > hubEvents {
		return b.next - hubEvents
	}
	return b.first
}

// take appends the events from a place on to a part. It returns the place after them, or a
// channel that is closed when there are some.
func (b *hub) take(part *bytes.Buffer, place uint64, wants func(journal.EventKind) bool) (after uint64, news <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if oldest := b.oldest(); place < oldest {
		appendLagged(part, oldest-place)
		place = oldest
	}
	if place == b.next {
		if b.news == nil {
			b.news = make(chan struct{})
		}
		return place, b.news
	}
	for ; place < b.next && part.Len() < maxPart; place++ {
		if e := &b.entries[place%hubEvents]; wants(e.kind) {
			part.Write(e.text)
		}
	}
	return place, nil
}

// appendLagged appends the event that says how many others were left out.
func appendLagged(part *bytes.Buffer, missed uint64) {
	text := encodeRecord(nil, operations.EventRecord{
		TS: time.Now().UTC().Format(time.RFC3339Nano), Kind: journal.EventLagged, Payload: journal.LaggedPayload{Missed: missed},
	})
	part.Write(text)
}

// encodeEvent appends an event as a server-sent event.
func encodeEvent(to []byte, sub *engine.Subscription, ob *engine.Observed, contents bool) []byte {
	r := operations.NewObservedRecord(sub, ob)
	if !contents {
		r = r.WithoutContent()
	}
	return encodeRecord(to, r)
}

func encodeRecord(to []byte, r operations.EventRecord) []byte {
	b := bytes.NewBuffer(to)
	if r.Cursor != "" {
		fmt.Fprintf(b, "id: %s\n", r.Cursor)
	}
	fmt.Fprintf(b, "event: %s\ndata: ", r.Kind)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil { // cannot be: the types are of this module
		b.WriteString("{}\n")
	}
	b.WriteByte('\n')
	return b.Bytes()
}
