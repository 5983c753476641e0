package sqlitestore

import (
	"sync"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// A session continues while its history is merged. The causes of its new events may be events
// that its file does not know, such as those of a graph that it was merged with. Here, such an
// event is written between two steps of the copying.
func TestCausesThatAFileMeetsWhileItIsCopied(t *testing.T) {
	t.Parallel()
	cause := journal.EventID{Origin: journal.Origin{1}, Seq: 7}
	const before = 30 // events; more than one step copies
	var children []*Store
	written := make(chan struct{})
	more := sync.OnceFunc(func() {
		for _, s := range children {
			rec := whole(s.origin, before, 1, 100)
			rec.Events[0].Cause = cause
			s.Append(rec)
			if err := s.Wait(t.Context(), before+1); err != nil {
				t.Errorf("Wait: %v", err)
			}
		}
	})
	d, err := Open(t.Context(), t.TempDir(), smallChunks(func(p failpoint.Point, _ string) error {
		switch p {
		case failpoint.Noting:
			<-written
		case failpoint.Uniting:
			more()
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	parent := createStore(t, d)
	parent.Append(whole(parent.origin, 0, 200, 100))
	made, err := d.Cut(t.Context(), splitOf(parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range made {
		children = append(children, s.(*Store))
		s.Append(whole(s.Origin(), 0, before, 100))
		if err := s.Wait(t.Context(), before); err != nil {
			t.Error(err)
		}
	}
	close(written)
	if err := d.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range children {
		events, err := s.History(t.Context(), journal.HistoryQuery{Own: true, Newest: true, Limit: 1})
		if err != nil || len(events) != 1 || events[0].Cause != cause || !s.Info().Complete {
			t.Errorf("the last event is %+v, %v; want the cause %s", events, err, cause)
		}
	}
}
