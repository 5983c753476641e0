package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
)

// TestALongReadDoesNotHoldUpTheBackground reads an ended session slowly, as an export does. The
// history of that session is in the files of an open store. Nevertheless that store is cut and
// closed meanwhile.
func TestALongReadDoesNotHoldUpTheBackground(t *testing.T) {
	d := openPaced(t, pacing{})
	parent := createStore(t, d)
	logged(parent, 1, 140) // too many to be copied by the cut
	child := cutAgain(t, d, parent, 10)
	settle(t, d)
	err := d.catalog.withFamily(t.Context(), "export", parent.info.Session, func(e catalog.Entry, f *family) error {
		if e.File != "" || f.lent != nil {
			t.Fatalf("the file is %q, lent %v", e.File, f.lent != nil)
		}
		cutAgain(t, d, child, 20)
		return d.keeper.settle(t.Context()) // this must not wait for the read
	})
	if err != nil || d.keeper.waiting() > 0 {
		t.Errorf("Settle returns %v, and %d stores are not closed", err, d.keeper.waiting())
	}
}

// readModel has the expected history of each ended session.
type readModel struct {
	mu       sync.Mutex
	all, own map[journal.SessionID][]journal.Event
	ended    []journal.SessionID
}

func (m *readModel) end(s journal.SessionID, all, own []journal.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[s], m.own[s] = all, own
	m.ended = append(m.ended, s)
}

// check reads an ended session with a random query.
func (m *readModel) check(t *testing.T, in historian, r *rand.Rand) {
	m.mu.Lock()
	s := m.ended[r.IntN(len(m.ended))]
	q, want := journal.HistoryQuery{Limit: 1 << 20}, m.all[s]
	if q.Own = r.IntN(2) == 0; q.Own {
		want = m.own[s]
	}
	m.mu.Unlock()
	switch r.IntN(3) {
	case 0:
		i := r.IntN(len(want))
		q.After, want = want[i].ID, want[i+1:]
	case 1:
		q.Newest, q.Limit = true, 1+r.IntN(300)
		want = want[max(0, len(want)-q.Limit):]
	}
	got, err := in.History(t.Context(), s, q)
	same := slices.EqualFunc(got, want, func(a, b journal.Event) bool {
		return a.ID == b.ID && a.Time == b.Time && bytes.Equal(a.Payload, b.Payload)
	})
	if err != nil || !same {
		t.Errorf("%T, session %s, %+v: %d events, want %d, %v", in, s, q, len(got), len(want), err)
	}
}

// historian is a directory or a view.
type historian interface {
	History(ctx context.Context, session journal.SessionID, q journal.HistoryQuery) ([]journal.Event, error)
}

// cutter cuts random stores after each of them has written some events.
type cutter struct {
	*readModel
	d         *Directory
	r         *rand.Rand
	clock     int64
	live      []*Store
	inherited map[*Store][]journal.Event
}

// cut makes one or two children of one or two stores.
func (c *cutter) cut(t *testing.T) {
	c.r.Shuffle(len(c.live), func(i, j int) { c.live[i], c.live[j] = c.live[j], c.live[i] })
	parents := c.live[:min(len(c.live), 1+c.r.IntN(2))]
	cut := journal.Cut{Kind: journal.CutRearrange}
	var ids []journal.SessionID
	var whole []journal.Event
	written := map[*Store][]journal.Event{}
	for _, p := range parents {
		for seq := range uint64(140) { // too many to be copied by the cut
			c.clock++
			written[p] = append(written[p], journal.Event{ID: journal.EventID{Origin: p.Origin(), Seq: seq + 1}, Time: c.clock,
				Kind: journal.EventLog, Payload: bytes.Repeat([]byte{byte(c.clock)}, 100)})
		}
		p.Append(&journal.Record{Events: slices.Clone(written[p])})
		whole = inOrder(whole, inOrder(c.inherited[p], written[p]))
		cut.Parents, ids = append(cut.Parents, p), append(ids, p.info.Session)
	}
	for range max(1, 4-len(c.live)) {
		cut.Children = append(cut.Children, journal.CutChild{Parents: ids, StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal}})
	}
	cut.At = c.clock
	if err := c.d.Pace(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := c.d.Cut(t.Context(), cut)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parents {
		c.end(p.info.Session, inOrder(c.inherited[p], written[p]), written[p])
	}
	c.live = slices.Clone(c.live[len(parents):])
	for _, s := range made {
		c.inherited[s.(*Store)] = whole
		c.live = append(c.live, s.(*Store))
	}
}

// inOrder merges two histories.
func inOrder(a, b []journal.Event) []journal.Event {
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(a, b journal.Event) int { return cmp.Compare(a.Time, b.Time) })
	return slices.CompactFunc(out, func(a, b journal.Event) bool { return a.ID == b.ID })
}

// TestEndedSessionsReadTheSameWhileFilesMove cuts stores as fast as the directory allows, and
// meanwhile reads the ended sessions, through the directory and through views.
func TestEndedSessionsReadTheSameWhileFilesMove(t *testing.T) {
	seeded.Long(t)
	d := openPaced(t, pacing{remains: 8, buried: 3, patience: time.Hour})
	m := &readModel{all: map[journal.SessionID][]journal.Event{}, own: map[journal.SessionID][]journal.Event{}}
	c := &cutter{readModel: m, d: d, r: rand.New(rand.NewPCG(1, 2)), inherited: map[*Store][]journal.Event{}}
	for range 3 {
		c.live = append(c.live, createStore(t, d))
	}
	c.cut(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for n := range uint64(4) {
		readers.Go(func() {
			for r := rand.New(rand.NewPCG(3, n)); ; {
				select {
				case <-stop:
					return
				default:
				}
				if n > 0 {
					m.check(t, d, r)
					continue
				}
				v, err := OpenReadOnly(t.Context(), d.dir)
				if err != nil {
					t.Error(err)
					return
				}
				m.check(t, v, r)
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	func() {
		defer readers.Wait()
		defer close(stop)
		for range 24 {
			c.cut(t)
		}
	}()
	settle(t, d)
	for range 50 {
		m.check(t, d, c.r)
	}
}
