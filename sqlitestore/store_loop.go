package sqlitestore

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/seed47132306/terrarium/engine/journal"
)

const (
	// maxGroup is how many records one transaction takes: beyond that, a commit gets no
	// cheaper per record, and waiting callers get later answers.
	maxGroup = 512
	// linger is how long the writer waits for a group to fill up. It does so only when
	// the last group had several records: a single producer gains nothing. In an idle
	// process it takes a millisecond, because the system does not wake it earlier.
	linger = 200 * time.Microsecond
	// lingerFor is how many records must be expected meanwhile, unless a commit waits for
	// the disk: fewer are written sooner one by one than as a group.
	lingerFor = 4

	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// run writes the queue until the store is closed. Only run uses the store's writer, except
// while it is parked. It is in one of these states:
//
//	waiting    the queue is empty
//	lingering  there are records, and more are expected
//	writing    a group of records is in a transaction
//	retrying   writing has failed; waiting callers get the reason, and new records stay queued
//	parked     the file stands still for a cut, or for a move to another file
//	asleep     the file is not open, since nothing was written to it for some time
//	ended      nothing more is written; done is closed
//
// It changes states as follows:
//
//	waiting   -> lingering  fewer records are queued than the last group had, and more are expected soon
//	waiting   -> writing    records are queued; or none, if the file is to be opened or has marks to remove
//	lingering -> writing    as many records are queued as the last time, after 200 µs, or when the store is closed
//	writing   -> waiting    the group is committed and acknowledged
//	writing   -> retrying   the commit has failed, and it is unknown how much of the group was written
//	retrying  -> waiting    the reopened file has the group, or the group is written again
//	retrying  -> ended      the store is closed, and the last attempt has failed as well
//	waiting   -> parked     a cut, or the end of a copy, parks the store
//	parked    -> waiting    the store is resumed or closed
//	waiting   -> asleep     many other stores were written to since
//	asleep    -> writing    records are queued, or the store is to be parked
//	asleep    -> ended      the store is closed
//	waiting   -> ended      the store is closed, by Close or by a cut that has ended it
//
// If writing fails while a caller waits in park, park returns the reason.
func (s *Store) run() {
	defer close(s.done)
	var last arrivals
	for {
		taken, ok := s.take(&last)
		if !ok || len(taken) == 0 && !s.write(nil) {
			return
		}
		for len(taken) > 0 {
			group := taken[:min(len(taken), maxGroup)]
			if !s.write(group) {
				return
			}
			last.group = len(group)
			for _, r := range group {
				r.Recycle()
			}
			clear(group) // the queue must not keep what is written
			taken = taken[last.group:]
		}
	}
}

// arrivals is what the writer knows of the records that it has taken.
type arrivals struct {
	group    int           // how many the last group had
	taken    time.Time     // when records were last taken
	interval time.Duration // between two records, on average over the last few groups
}

// note records that n records are taken.
func (a *arrivals) note(n int, now time.Time) {
	interval := now.Sub(a.taken) / time.Duration(n)
	a.interval += (interval - a.interval) / 4
	if a.taken.IsZero() {
		a.interval = interval
	}
	a.taken = now
}

// dense reports whether several records are expected while the writer lingers.
func (a *arrivals) dense() bool { return a.interval <= linger/lingerFor }

// take waits for records and takes them all. It returns none if the file has to be opened
// first, or has marks to remove. It returns false when there are none and the store is to
// be closed.
func (s *Store) take(last *arrivals) ([]*journal.Record, bool) {
	q := s.queue
	for {
		q.mu.Lock()
		switch {
		case len(q.records) > 0:
			if last.group > 1 && len(q.records) < last.group && (s.durability == journal.Full || last.dense()) && q.mode == running && q.parking == nil {
				q.expected = last.group
				q.mu.Unlock()
				q.linger()
				q.mu.Lock()
				q.expected = 0
			}
			taken := q.records
			q.records = make([]*journal.Record, 0, len(taken))
			q.tired = false
			q.mu.Unlock()
			last.note(len(taken), time.Now())
			return taken, true
		case (s.w.c != nil || s.sleep.asleep) && s.w.due():
			q.mu.Unlock()
			return nil, true
		case q.mode != running:
			q.mu.Unlock()
			return nil, false
		case s.w.c == nil && (!s.sleep.asleep || q.parking != nil): // or it was moved to another file, which could not be opened
			q.mu.Unlock()
			return nil, true
		case q.parking != nil:
			parked, resumed := q.parking, q.resumed
			q.parking = nil
			q.mu.Unlock()
			s.sleep.calm = false // a cut may write to the file, and fail
			close(parked)
			<-resumed
			s.sleep.calm = s.w.c != nil && !s.w.c.Transacting()
			continue
		case q.tired:
			q.tired = false
			q.mu.Unlock()
			s.fallAsleep()
			continue
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-q.stopping:
		}
	}
}

func (q *queue) linger() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.filled:
	case <-q.stopping:
	}
}

// write writes a group, and tries again after errors. It returns false when it stopped
// trying because the store is to be closed.
func (s *Store) write(group []*journal.Record) bool {
	err := s.wakeUp()
	if err == nil {
		err = s.w.commit(group)
	}
	if err != nil {
		err = s.retry(group, err)
	}
	if err != nil {
		s.lastErr = err
		return false
	}
	s.sleep.calm = true
	s.sleep.in.used(s) // before a caller that has waited for the group uses another store
	s.acknowledge(group)
	return true
}

// retry reopens the file, checks whether the group was written after all and, if not,
// writes the same records again. It repeats this until the group is written, or until the
// store is to be closed.
func (s *Store) retry(group []*journal.Record, err error) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: firstRetry, MaxInterval: lastRetry, Multiplier: 2, RandomizationFactor: 0.3}
	pauses.Reset()
	for {
		s.fail(storageError("append", s.path(), err))
		lastTry := !s.pause(pauses.NextBackOff())
		var present bool
		if err = s.reopen(); err == nil {
			present, err = s.w.holds(group)
		}
		if err == nil && present && s.durability == journal.Full {
			err = s.w.sync() // the file has it, but perhaps not the disk
		}
		if err == nil && !present {
			err = s.w.commit(group)
		}
		if err == nil {
			s.err.Store(nil)
			return nil
		}
		if lastTry {
			return unwritten(s.path(), err)
		}
	}
}

// pause waits before the next try. It returns false if that try is the last.
func (s *Store) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.queue.stopping:
		return false
	}
}

func (s *Store) fail(err error) {
	s.err.Store(&err)
	s.durable.fail(err)
	s.written.fail(err)
	s.queue.refusePark(err)
	s.tell()
}

// goOn records that writing works again.
func (s *Store) goOn() {
	s.err.Store(nil)
	s.durable.open()
	s.written.open()
	s.tell()
}

// acknowledge announces that a group is written, and makes room in the queue.
func (s *Store) acknowledge(group []*journal.Record) {
	if len(group) > 0 { // before any caller gets an acknowledgement
		s.syncs.wrote(s.path(), s.syncEvery())
	}
	var size int64
	seq := s.highest.Load()
	for _, r := range group {
		size += recordSize(r)
		if n := len(r.Events); n > 0 {
			seq = r.Events[n-1].ID.Seq
		}
	}
	if s.w.size += size; s.w.small && s.w.size >= s.owner.smallest() && !s.pages.outgrown.Swap(true) {
		s.owner.outgrew()
	}
	s.queue.wrote(size)
	s.highest.Store(seq)
	s.noteReached(seq)
	if s.asDurable() { // before the records, so that a caller that has waited for the records finds their events durable
		s.durable.advance(seq)
	}
	s.written.advance(s.written.reached.Load() + uint64(len(group)))
	s.tell()
	s.checkpoints.wrote(s.path(), storeCommitBytes+size)
}

// noteReached records how far the log has come, before any caller gets an
// acknowledgement.
func (s *Store) noteReached(seq uint64) {
	if seq == 0 {
		return
	}
	if s.said == nil {
		s.said = s.acks.Take(s.info.Session, s.origin)
	}
	s.said.Say(seq, s.w.chain)
}

// park waits until everything is written, and parks the writer. Records that are appended
// from then on stay queued. Parking ends with resume or Close. While writing fails, park
// returns the reason.
func (s *Store) park(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	parked := s.queue.park()
	if parked == nil {
		return stopped("cut", s.path())
	}
	if err := s.Err(); err != nil { // only a failure from now on is sent to parked
		s.queue.resume()
		return err
	}
	select {
	case err := <-parked:
		if err != nil {
			s.queue.resume()
		}
		return err
	case <-ctx.Done():
		s.queue.resume()
		return ctx.Err()
	}
}
