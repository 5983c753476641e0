package engine

import (
	"context"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/internal/errtext"
	"github.com/seed47132306/terrarium/engine/journal"
)

// Reader reads a channel from outside, with a cursor of its own, which the store keeps:
// messages that were acknowledged are not read again, all others are. It is not a member of
// the graph, and no creature can see it.
//
// In a graph with a store a slow reader reads from the log later; in one without, outside
// publishers wait for it. Next and Ack must be called by one goroutine at a time.
type Reader struct {
	e    *core
	name string
	home graphPointer
	news chan struct{} // holds a token when Next should look again
	acks chan struct{} // holds a token when WaitRead should look again

	// The graph's mu guards the fields below.
	mb      mailbox
	feed    *feed
	held    *Incoming // what Next could not wait for; returned again
	given   uint64    // number of the last message that Next has returned
	covered uint64    // up to which every message was returned or reported as missed
	closed  bool
	ended   bool // the channel was removed
}

// Incoming is a message that a [Reader] reads.
type Incoming = journal.Incoming

// ReaderOptions configure a [Reader].
type ReaderOptions = journal.ReaderOptions

const readerPrefix = "reader:"

// Read starts reading a channel under a name. A second reader with the same name on the
// same channel is refused with already_exists. The caller must close the reader.
func (e *Engine) Read(channel journal.ChannelID, name string, o ReaderOptions) (*Reader, error) {
	l := e.core.rlock()
	defer l.runlock()
	ch := l.channels[channel]
	if ch == nil {
		err := errtext.Gone("channel", string(channel))
		err.Op = "read"
		return nil, err
	}
	if o.Buffer <= 0 {
		o.Buffer = abi.DefaultLimits.Mailbox
	}
	r := &Reader{e: &e.core, name: name, news: make(chan struct{}, 1), acks: make(chan struct{}, 1)}
	r.mb = mailbox{reader: r, bound: o.Buffer}
	g := ch.home.enter()
	defer g.leave()
	for _, other := range g.readers {
		if other.name == name && other.feed.id == channel {
			return nil, errtext.ReaderExists(name, ch.name, channel)
		}
	}
	cursor, known := ch.cursors[r.readerID()]
	if !known && !o.FromStart {
		cursor = ch.head
	}
	r.feed, r.covered = r.mb.addFeed(ch, ch.name, cursor), cursor
	if g.store == nil {
		// Earlier messages are not stored, and Next reports that.
		r.feed.offered, r.mb.lagging = ch.head, false
	}
	if !known {
		// The starting position is stored at once: otherwise a reader that is closed
		// before its first Ack would begin elsewhere the next time.
		r.keepCursor(g)
	}
	r.home.store(g.graph)
	g.readers = append(g.readers, r)
	r.signal()
	return r, nil
}

func (r *Reader) readerID() journal.ReaderID { return journal.ReaderID(readerPrefix + r.name) }

// signal tells a waiting Next to look again.
func (r *Reader) signal() { token(r.news) }

// token puts a token into a channel with room for one.
func token(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Next waits for the next message, and until it is as durable as its graph promises. It returns
// stopped when the reader or the engine is closed, and not_found when the channel was removed and
// its messages have been read. For messages that are no longer kept it returns unavailable, once,
// with a [Missed] that says which; the next call continues after them.
func (r *Reader) Next(ctx context.Context) (Incoming, error) {
	for {
		in, store, what, err := r.takeMessage()
		if err != nil {
			return Incoming{}, err
		}
		switch what {
		case doHandle:
			if store != nil && in.ID.Origin == store.Origin() {
				// After a cut, all that the parents had logged is durable.
				if err := store.Wait(ctx, in.ID.Seq); err != nil && r.home.logsTo(store) {
					r.putBack(in)
					return Incoming{}, err
				}
			}
			return in, nil
		case doRefill:
			if err := refillMailbox(ctx, &r.mb, &r.home); err != nil {
				return Incoming{}, err
			}
			if ctx.Err() != nil {
				return Incoming{}, context.Cause(ctx)
			}
			continue
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			return Incoming{}, context.Cause(ctx)
		case <-r.e.closing:
			if r.drained() {
				return Incoming{}, errtext.Closed
			}
		}
	}
}

// putBack keeps a message that was taken out and could not be returned.
func (r *Reader) putBack(in Incoming) {
	if g := r.home.enter(); !g.none() {
		r.held = &in
		g.leave()
	}
}

func (r *Reader) drained() bool {
	g := r.home.enter()
	if g.none() {
		return true
	}
	defer g.leave()
	return r.held == nil && !r.mb.waiting()
}

// takeMessage takes out the next message, or says what to do instead.
func (r *Reader) takeMessage() (Incoming, journal.Store, todo, error) {
	g := r.home.enter()
	if g.none() {
		return Incoming{}, nil, doNothing, errtext.Gone("channel", string(r.feed.id))
	}
	defer g.leave()
	switch {
	case r.closed:
		return Incoming{}, nil, doNothing, &abi.Error{Code: abi.Stopped, Op: "read", Message: "the reader is closed"}
	case r.held != nil:
		in := *r.held
		r.held = nil
		return in, g.store, doHandle, nil
	case r.gap(g) > r.covered:
		err := r.missed(g, r.gap(g))
		token(r.acks)
		return Incoming{}, nil, doNothing, err
	case r.mb.window.Len() > 0:
		d := r.mb.pop()
		if g.store == nil {
			r.mb.noteLoad(g)
		}
		m := d.msg
		r.given, r.covered = m.Seq, m.Seq
		in := Incoming{ID: m.LogID(), Seq: m.Seq, Time: m.Time, Sender: m.SenderName, Headers: journal.DecodeHeaders(m.Headers)}
		in.Payload = m.Payload
		if m.Pooled {
			in.Payload = append([]byte(nil), m.Payload...)
		}
		m.Release()
		return in, g.store, doHandle, nil
	case r.mb.lagging:
		return Incoming{}, nil, doRefill, nil
	case r.ended:
		return Incoming{}, nil, doNothing, errtext.Gone("channel", string(r.feed.id))
	}
	token(r.acks) // if the rest was never logged, that is known only now
	return Incoming{}, nil, doNothing, nil
}

// gap is the number of the last message that will not come, if it is above covered. While
// more can be read from the store it is not known.
func (r *Reader) gap(section) uint64 {
	switch {
	case r.mb.window.Len() > 0:
		return r.mb.window.At(0).msg.Seq - 1
	case r.mb.lagging:
		return 0
	}
	return r.feed.offered
}

// missed is the error that says that nothing up to a number will come.
func (r *Reader) missed(_ section, last uint64) error {
	m := &Missed{Channel: r.feed.id, From: r.covered + 1, To: last}
	r.covered = last
	return errtext.PartMissing(m.Channel, m)
}

// Missed is the cause of the error that [Reader.Next] returns for messages that it cannot return.
type Missed = journal.Missed

// Ack moves the cursor past a message, so that a later reader of the same name continues after it.
// When Ack returns, the new position is in the log and as durable as later events are.
func (r *Reader) Ack(seq uint64) {
	g := r.home.enter()
	if g.none() {
		return
	}
	defer g.leave()
	if seq <= r.feed.cursor {
		return
	}
	r.feed.cursor = seq
	token(r.acks)
	r.keepCursor(g)
}

// keepCursor stores how far the reader has got.
func (r *Reader) keepCursor(g section) {
	if ch := r.feed.ch; ch != nil {
		if ch.cursors == nil {
			ch.cursors = map[journal.ReaderID]uint64{}
		}
		ch.cursors[r.readerID()] = r.feed.cursor
	}
	if rec := g.newRecord(); rec != nil {
		putCursor(rec, r.readerID(), r.feed)
		g.append(rec)
	}
}

// WaitRead waits until every message that the channel has at the time of the call has
// been acknowledged. It must be called by one goroutine at a time.
func (r *Reader) WaitRead(ctx context.Context) error {
	last := r.lastMessage()
	for !r.hasRead(last) {
		select {
		case <-r.acks:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// lastMessage is the number of the last message to read so far.
func (r *Reader) lastMessage() uint64 {
	g := r.home.enter()
	if g.none() {
		return 0
	}
	defer g.leave()
	return r.feed.lastMessage()
}

// hasRead reports whether everything up to a number has been acknowledged, or at least
// everything that could be read: messages from before the graph had a log may be lost. A
// closed reader counts as having read everything.
func (r *Reader) hasRead(last uint64) bool {
	g := r.home.enter()
	if g.none() {
		return true
	}
	defer g.leave()
	none := r.held == nil && !r.mb.waiting() && r.gap(g) <= r.covered && r.feed.cursor >= r.given
	return r.closed || none || r.feed.cursor >= last
}

// Pending is how many messages are waiting to be read.
func (r *Reader) Pending() uint64 {
	g := r.home.enter()
	if g.none() {
		return 0
	}
	defer g.leave()
	n := r.mb.pending()
	if r.held != nil {
		n++
	}
	return n
}

// Close ends reading. The cursor stays at the last acknowledged message.
func (r *Reader) Close() {
	g := r.home.enter()
	if g.none() {
		return
	}
	defer g.leave()
	if r.closed {
		return
	}
	r.closed, r.held = true, nil
	for r.mb.window.Len() > 0 {
		r.mb.pop().msg.Release()
	}
	if g.store == nil {
		r.mb.noteLoad(g)
	}
	if r.feed.ch != nil {
		r.feed.ch.dropFeed(r.feed)
	}
	g.readers = without(g.readers, r)
	r.signal()
	token(r.acks)
}

// move moves the reader to the graph that its channel has moved to.
func (r *Reader) move(from, to section) {
	if r.mb.over {
		r.mb.over = false
		if from.over--; from.over == 0 {
			from.admit()
		}
	}
	from.readers = without(from.readers, r)
	to.readers = append(to.readers, r)
	r.home.store(to.graph)
	if to.store == nil {
		r.mb.noteLoad(to)
	}
}

// seal notes that the channel was removed.
func (r *Reader) seal(_ section, s *feed) {
	r.mb.detach(s)
	r.ended = true
	r.signal()
}
