package replay

import (
	"context"

	"github.com/seed47132306/terrarium/engine/journal"
)

// mailBytes is the number of message bytes that are remembered until a turn handles them.
// Messages of a longer backlog are read again.
const mailBytes = 32 << 20

// oneTurnBytes takes the place of mailBytes if only one turn is run: its message is read again.
const oneTurnBytes = 1 << 20

// eventBytes is the cost of a remembered message besides its bytes.
const eventBytes = 256

// mailPage is the number of messages of a backlog that are read at a time.
const mailPage = 512

// mail finds the messages that turns handle: among the messages read last, or otherwise in
// the store.
type mail struct {
	source Source
	bound  int
	bytes  int
	recent map[letterBox]*journal.Event
	order  []letterBox // oldest first
	pages  map[reading][]journal.Event
	paged  int // bytes of pages, including messages that have been handled
}

// letterBox is the place of a message.
type letterBox struct {
	channel journal.ChannelID
	seq     uint64
}

// reading is a reader's progress through a channel.
type reading struct {
	creature journal.CreatureID
	channel  journal.ChannelID
}

func newMail(source Source, bound int) *mail {
	return &mail{source: source, bound: bound, recent: map[letterBox]*journal.Event{}, pages: map[reading][]journal.Event{}}
}

// remember keeps a message, and drops older ones to make room.
func (m *mail) remember(ev *journal.Event) {
	if !ev.Kind.IsMessage() {
		return
	}
	place := letterBox{ev.Channel, ev.Seq}
	kept := *ev // a copy, which does not keep the page of the event in memory
	m.recent[place] = &kept
	m.order = append(m.order, place)
	m.bytes += size(ev)
	for m.bytes > m.bound && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		if old := m.recent[oldest]; old != nil {
			m.bytes -= size(old)
			delete(m.recent, oldest)
		}
	}
}

func size(ev *journal.Event) int { return eventBytes + len(ev.Payload) + len(ev.Headers) }

// find returns the message that a turn handled, or nil if the log does not have it.
func (m *mail) find(ctx context.Context, t *recorded) (*journal.Event, error) {
	if ev := m.recent[letterBox{t.event.Channel, t.event.Seq}]; ev != nil && ev.ID == t.cause() {
		return ev, nil
	}
	reader := reading{t.creature, t.event.Channel}
	page := m.pages[reader]
	for len(page) > 0 && page[0].Seq < t.event.Seq {
		page = page[1:]
	}
	if len(page) == 0 || page[0].Seq > t.event.Seq {
		var err error
		if page, err = m.source.Messages(ctx, t.session, t.event.Channel, t.event.Seq-1, 0, mailPage, int64(m.bound/4)); err != nil {
			return nil, err
		}
		for i := range page {
			m.paged += size(&page[i])
		}
		if m.paged > m.bound { // of all readers together; they are read again
			clear(m.pages)
			m.paged = 0
		}
	}
	m.pages[reader] = page
	if len(page) == 0 || page[0].ID != t.cause() {
		return nil, nil
	}
	return &page[0], nil
}
