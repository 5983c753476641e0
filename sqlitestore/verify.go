package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// verification checks one session: the files of its family, each by itself, and
// the history that they make up together. All of it reads one snapshot.
type verification struct {
	ctx      context.Context
	snapshot *familySnapshot
	report   journal.VerifyReport
	// inherited is the highest number that each origin of the ancestors must have.
	inherited map[journal.Origin]uint64
	// unlogged is a time, or 0: the log may lack messages that were sent before it,
	// because a graph without a store became part of this one, or history has been
	// pruned.
	unlogged int64
	// acknowledged is how far the history must reach under the session's own origins.
	acknowledged map[journal.Origin]catalog.Ack
	// pruned is the time before which one of the files may have been pruned, while others
	// still have the events; 0: none was pruned.
	pruned int64
}

// Verify checks a session, live or ended: the file itself, and that its log has
// every event once and every channel in order. It reads the whole file. Damage
// that SQLite finds is part of the report; the code storage means that the file
// could not be read at all.
func (a *archive) Verify(ctx context.Context, session journal.SessionID) (report journal.VerifyReport, err error) {
	if s := a.inUse(session); s != nil {
		if err := s.flush(ctx); err != nil {
			return report, err
		}
	}
	k := a.catalog
	err = k.withFamily(ctx, "verify", session, func(e catalog.Entry, f *family) (err error) {
		if f.own != nil {
			if err := f.own.belongs(ctx, e); err != nil {
				return err
			}
		}
		inherited, err := k.Inherited(ctx, session)
		if err != nil {
			return err
		}
		acknowledged, err := k.Acknowledged(ctx, e) // before reading the log, which may be written to
		if err != nil {
			return err
		}
		if report, err = f.verify(ctx, e, inherited, acknowledged); err != nil {
			return err
		}
		odd, err := k.oddDescription(ctx, e, f)
		report.Damage = append(report.Damage, odd...)
		return err
	})
	return report, err
}

// oddDescription compares the catalogue's description of an ended session, on which lists
// of sessions rely, with the session's file. It returns errMoved if the session got
// another file after e was read.
func (k *sessions) oddDescription(ctx context.Context, e catalog.Entry, f *family) (lines []string, err error) {
	if f.own == nil || e.Live {
		return nil, nil
	}
	described, err := k.Described(ctx)
	if err != nil {
		return nil, err
	}
	events, known := described[e.Session]
	if !known {
		return nil, nil
	}
	// The background may have described the session meanwhile.
	now, err := k.Entry(ctx, "verify", e.Session)
	if err != nil {
		return nil, err
	}
	of, err := f.own.describe(ctx)
	if sqlite.Damaged(err) {
		return nil, nil // which is in the report already
	}
	if err != nil {
		return nil, err
	}
	meta, err := textOf(now.Meta)
	if err != nil {
		return nil, err
	}
	if of.Events != events {
		lines = append(lines, fmt.Sprintf("the catalogue says that the file of session %s has %d events, and it has %d", e.Session, events, of.Events))
	}
	if of.Meta != meta {
		lines = append(lines, fmt.Sprintf("the catalogue says that the metadata of session %s is %s, and its file says %s", e.Session, sqlite.Shorten(meta), sqlite.Shorten(of.Meta)))
	}
	if len(lines) > 0 && k.moved(ctx, e) {
		return nil, errMoved
	}
	return lines, nil
}

func (f *family) verify(ctx context.Context, e catalog.Entry, inherited map[journal.Origin]uint64, acknowledged map[journal.Origin]catalog.Ack) (report journal.VerifyReport, err error) {
	snapshot, err := f.look(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, snapshot.end()) }()
	v := verification{ctx: ctx, snapshot: snapshot, inherited: inherited, acknowledged: acknowledged, report: journal.VerifyReport{Session: e.Session}}
	for _, p := range f.ancestors {
		if !e.Complete && e.File != "" {
			v.report.IncompleteFrom = append(v.report.IncompleteFrom, p.session)
		}
	}
	for _, p := range f.missing {
		v.report.IncompleteFrom = append(v.report.IncompleteFrom, p)
		v.damage(fmt.Sprintf("the file of session %s, which has a part of the history, is missing or damaged", p))
	}
	for _, check := range []func() error{v.files, v.gaps, v.numbers, v.ends, v.changes, v.channels, v.turns, v.liveRows, v.states} {
		err := check()
		if sqlite.Damaged(err) {
			v.stumbled(err.Error())
		} else if err != nil {
			return v.report, err
		}
	}
	return v.report, nil
}

func (v *verification) damage(lines ...string) { v.report.Damage = append(v.report.Damage, lines...) }

// stumbled reports an error that interrupted a check: once, however many checks it
// affects.
func (v *verification) stumbled(line string) {
	if !slices.Contains(v.report.Damage, line) {
		v.damage(line)
	}
}

// files checks each file by itself.
func (v *verification) files() error {
	for _, s := range v.snapshot.files {
		for _, find := range []func(context.Context) ([]string, error){s.integrity, s.oddIndex} {
			lines, err := find(v.ctx)
			v.damage(lines...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// gaps determines what may be missing: when the last graph without a store became part of
// the session, and what has been pruned.
func (v *verification) gaps() error {
	for _, s := range v.snapshot.files {
		var pruned int64
		err := sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
			var unlogged int64
			err := scan(&unlogged, &pruned)
			v.unlogged = max(v.unlogged, unlogged, pruned)
			return err
		}, "SELECT (SELECT coalesce(max(created), 0) FROM ancestor WHERE parent = '"+storefile.VolatileParent+"'),"+
			" (SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM store WHERE key = '"+storefile.Pruned+"')")
		if err != nil {
			return err
		}
		v.pruned = max(v.pruned, pruned)
	}
	return nil
}

// numbers counts the events and looks for gaps in the numbers of each origin, which begin
// at 1, and for incomplete origins of ancestors.
func (v *verification) numbers() error {
	spans, err := v.snapshot.spans(v.ctx)
	if err != nil {
		return err
	}
	has := map[journal.Origin]uint64{}
	for _, s := range spans {
		if err := v.numbersOf(s); err != nil {
			return err
		}
		has[s.origin] = uint64(s.high & storefile.SeqMask)
	}
	for _, origin := range slices.SortedFunc(maps.Keys(v.inherited), func(a, b journal.Origin) int { return bytes.Compare(a[:], b[:]) }) {
		if highest, before := v.inherited[origin], has[origin]; before < highest && !(v.pruned > 0 && before == 0) {
			v.missing(journal.EventID{Origin: origin, Seq: before + 1}, journal.EventID{Origin: origin, Seq: highest})
		}
	}
	return nil
}

// numbersOf checks the events of one origin, each by itself and in the chain.
func (v *verification) numbersOf(s span) error {
	last := s.low >> storefile.SeqBits << storefile.SeqBits
	if v.pruned > 0 {
		last = s.low - 1
	}
	chain, linked := storefile.ChainSeed(s.origin), last&storefile.SeqMask == 0
	return eachEvent(v.ctx, s.in.tx, func(p *packedEvent) error {
		v.report.Events++
		if p.id != last+1 {
			v.missing(journal.EventID{Origin: s.origin, Seq: uint64(last+1) & storefile.SeqMask}, journal.EventID{Origin: s.origin, Seq: uint64(p.id-1) & storefile.SeqMask})
			linked = false
		}
		last = p.id
		_, err := s.in.unpackEvent(v.ctx, p)
		switch own := storefile.ChainOf(p.sum); {
		case abi.CodeOf(err) == abi.Storage:
			v.damage("the event " + v.idOf(s, p.id) + " is not what was logged: its checksum differs")
		case err != nil:
			return err
		case own != 0 && linked && own != storefile.ChainOn(chain, storefile.DigestOf(p.sum)):
			v.damage("the event " + v.idOf(s, p.id) + " is not the one that was logged after the previous event: its checksum belongs to another")
		}
		chain, linked = storefile.ChainOf(p.sum), true
		return nil
	}, "SELECT "+eventFields+" FROM event WHERE id >= ? AND id <= ? ORDER BY id", s.low, s.high)
}

// idOf returns the readable form of a packed id of a span.
func (v *verification) idOf(s span, id int64) string {
	return journal.EventID{Origin: s.origin, Seq: uint64(id & storefile.SeqMask)}.String()
}

// changes checks the changes that the files record besides events.
func (v *verification) changes() error {
	for _, s := range v.snapshot.files {
		err := sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
			var event, part, first, base, sum int64
			var rows string
			if err := scan(&event, &part, &first, &base, &rows, &sum); err != nil {
				return err
			}
			id, err := s.r.unpack(v.ctx, s.tx, event)
			if _, wanted := v.snapshot.only[id.Origin]; err != nil || v.snapshot.only != nil && !wanted {
				return err
			}
			if storefile.ChangeDigest(id.Origin, event, part, first, base, rows) != sum {
				v.damage(fmt.Sprintf("change %d after the event %s is not what was logged: its checksum differs", part, id))
			}
			return nil
		}, "SELECT event, part, first, base, rows, sum FROM change ORDER BY event, part")
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) missing(first, last journal.EventID) {
	text := first.String()
	if first != last {
		text += " to " + last.String()
	}
	v.report.Missing = append(v.report.Missing, text)
}

// sent is a message in the log of a channel.
type sent struct {
	in      *snapshot
	id, ts  int64
	seq     int64
	channel string
}

// messages lists the messages of all channels in one file.
func (v *verification) messages(s *snapshot) iter.Seq2[sent, error] {
	return func(yield func(sent, error) bool) {
		enough := errors.New("enough")
		err := sqlite.Each(v.ctx, s.tx, func(scan func(...any) error) error {
			m := sent{in: s}
			if err := scan(&m.id, &m.ts, &m.channel, &m.seq); err != nil {
				return err
			}
			if !yield(m, nil) {
				return enough
			}
			return nil
		}, "SELECT id, ts, channel, seq FROM event WHERE "+isMessage+" AND channel IS NOT NULL AND seq IS NOT NULL ORDER BY channel, seq, id")
		if err != nil && !errors.Is(err, enough) {
			yield(sent{}, err)
		}
	}
}

// stream is one file's messages, with the next one read ahead.
type stream struct {
	next func() (sent, error, bool)
	stop func()
	head sent
}

// allMessages lists the messages of all channels of the family, in order, each once.
func (v *verification) allMessages(each func(m sent, id journal.EventID) error) error {
	var streams []*stream
	defer func() {
		for _, s := range streams {
			s.stop()
		}
	}()
	advance := func(s *stream) (bool, error) {
		m, err, more := s.next()
		s.head = m
		return more, err
	}
	var live []*stream
	for _, file := range v.snapshot.files {
		s := &stream{}
		s.next, s.stop = iter.Pull2(v.messages(file))
		streams = append(streams, s)
		more, err := advance(s)
		if err != nil {
			return err
		}
		if more {
			live = append(live, s)
		}
	}
	seen := map[journal.EventID]bool{} // the messages with the present number
	var last sent
	for len(live) > 0 {
		s := slices.MinFunc(live, func(a, b *stream) int {
			return cmp.Or(cmp.Compare(a.head.channel, b.head.channel), cmp.Compare(a.head.seq, b.head.seq))
		})
		m := s.head
		id, err := m.in.r.unpack(v.ctx, m.in.tx, m.id)
		if err != nil {
			return err
		}
		if m.channel != last.channel || m.seq != last.seq {
			clear(seen)
		}
		_, wanted := v.snapshot.family.only[id.Origin]
		if !seen[id] && (wanted || v.snapshot.family.only == nil) {
			if err := each(m, id); err != nil {
				return err
			}
		}
		if len(streams) > 1 {
			seen[id] = true
		}
		last = m
		more, err := advance(s)
		if err != nil {
			return err
		}
		if !more {
			live = slices.DeleteFunc(live, func(o *stream) bool { return o == s })
		}
	}
	return nil
}

// channels checks the numbers of the messages of each channel. It does not rely on the
// index of messages.
func (v *verification) channels() error {
	heads, err := v.heads()
	if err != nil {
		return err
	}
	var last sent
	var lastID journal.EventID
	end := func() {
		head, owned := heads[last.channel]
		if head > last.seq && last.ts >= v.unlogged {
			v.gap(last.channel, last.seq+1, head)
		} else if owned && head < last.seq {
			v.damage(fmt.Sprintf("the head of channel %s is %d, but %s is its message %d", last.channel, head, lastID, last.seq))
		}
		delete(heads, last.channel)
	}
	err = v.allMessages(func(m sent, id journal.EventID) error {
		before, beforeID := last, lastID
		if m.channel != before.channel {
			end()
			before = sent{channel: m.channel}
		}
		last, lastID = m, id
		switch {
		case m.seq == before.seq && before.in != nil:
			v.report.Duplicate = append(v.report.Duplicate, fmt.Sprintf("channel %s number %d: %s and %s", m.channel, m.seq, beforeID, id))
			return nil
		case m.seq > before.seq+1 && before.ts >= v.unlogged && !v.lossy():
			v.gap(m.channel, before.seq+1, m.seq-1)
		}
		if before.in != nil && m.ts <= before.ts {
			v.report.OutOfOrder = append(v.report.OutOfOrder, fmt.Sprintf("channel %s number %d: %s is not later than %s, number %d",
				m.channel, m.seq, id, beforeID, before.seq))
		}
		return nil
	})
	if err != nil {
		return err
	}
	end()
	v.silent(heads)
	return nil
}

// lossy reports whether files of ancestors are missing. The report names their events, so
// it need not name the gaps that these leave in channels.
func (v *verification) lossy() bool { return len(v.snapshot.family.missing) > 0 }

// heads returns the heads of the channels that the session owns.
func (v *verification) heads() (map[string]int64, error) {
	heads := map[string]int64{}
	if v.snapshot.family.own == nil {
		return heads, nil
	}
	err := sqlite.Each(v.ctx, v.snapshot.files[0].tx, func(scan func(...any) error) error {
		var channel string
		var seq int64
		err := scan(&channel, &seq)
		heads[channel] = seq
		return err
	}, "SELECT channel, seq FROM head")
	return heads, err
}

func (v *verification) gap(channel string, first, last int64) {
	text := fmt.Sprintf("channel %s number %d", channel, first)
	if last != first {
		text += fmt.Sprintf(" to %d", last)
	}
	v.report.Missing = append(v.report.Missing, text)
}

// silent reports channels that have a head and no message at all.
func (v *verification) silent(heads map[string]int64) {
	if v.unlogged > 0 || v.lossy() {
		return
	}
	for _, channel := range slices.Sorted(maps.Keys(heads)) {
		if heads[channel] > 0 {
			v.gap(channel, 1, heads[channel])
		}
	}
}

// liveRows checks that rows fit together.
func (v *verification) liveRows() error {
	if v.snapshot.family.own == nil {
		return nil
	}
	lines, err := v.snapshot.files[0].oddRows(v.ctx)
	v.damage(lines...)
	return err
}
