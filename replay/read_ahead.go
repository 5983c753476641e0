package replay

import (
	"context"
	"errors"
	"sync"

	"github.com/seed47132306/terrarium/engine/journal"
)

// A page of the log is handed over when it has so many events, or so many bytes.
const (
	pageEvents = 512
	pageBytes  = 1 << 20
)

// pagesAhead is the number of pages that are read ahead.
const pagesAhead = 4

// entry is an event of the log.
type entry struct {
	event   journal.Event
	session journal.SessionID
	before  journal.Position // only of the event of a turn
}

// pages reads the log ahead, in a goroutine of its own, while turns run. Its other methods
// are called by one goroutine.
type pages struct {
	read  chan []entry // closed at the end of the log, or after an error
	stop  context.CancelFunc
	ended sync.WaitGroup
	err   error // valid once read is closed
}

func startReading(ctx context.Context, o Options) (*pages, error) {
	log, err := journal.NewReplay(ctx, o.Source, journal.FromStart, o.Sessions)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &pages{read: make(chan []entry, pagesAhead), stop: stop}
	p.ended.Go(func() {
		defer close(p.read)
		p.err = p.readAll(ctx, log)
	})
	return p, nil
}

func (p *pages) readAll(ctx context.Context, log *journal.Replay) error {
	for more := true; more; {
		page, bytes := make([]entry, 0, pageEvents), int64(0)
		for len(page) < pageEvents && bytes < pageBytes {
			var e entry
			var err error
			if e.event, e.session, more, err = log.Next(ctx); err != nil {
				if len(page) > 0 { // what was read before counts; an empty page is the end
					err = errors.Join(err, p.hand(ctx, page))
				}
				return err
			}
			if !more {
				break
			}
			if endsTurn(&e.event) {
				e.before = log.Before()
			}
			bytes += e.event.Size()
			page = append(page, e)
		}
		if err := p.hand(ctx, page); err != nil {
			return err
		}
	}
	return nil
}

// hand passes a page on.
func (p *pages) hand(ctx context.Context, page []entry) error {
	select {
	case p.read <- page:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next returns the next events of the log; none at its end.
func (p *pages) next(ctx context.Context) ([]entry, error) {
	select {
	case page, more := <-p.read:
		if !more {
			return nil, p.err
		}
		return page, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close waits for the goroutine to end.
func (p *pages) close() {
	if p == nil {
		return
	}
	p.stop()
	p.ended.Wait()
}

// shared is a source for several goroutines.
type shared struct {
	mu sync.Mutex
	Source
}

// Catalogue implements [Source].
func (s *shared) Catalogue(ctx context.Context) ([]journal.SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source.Catalogue(ctx)
}

// History implements [Source].
func (s *shared) History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source.History(ctx, session, q)
}

// Messages implements [Source].
func (s *shared) Messages(ctx context.Context, session journal.SessionID, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Source.Messages(ctx, session, channel, after, until, limit, bytes)
}
