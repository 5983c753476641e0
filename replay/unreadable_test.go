package replay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
)

// unreadable is a directory with one session, whose store cannot be read.
type unreadable struct{ replay.Source }

var errUnreadable = errors.New("the store cannot be read")

func (unreadable) Catalogue(context.Context) ([]journal.SessionInfo, error) {
	return []journal.SessionInfo{{Session: "s", Live: true}}, nil
}

func (unreadable) History(context.Context, journal.SessionID, journal.HistoryQuery) ([]journal.Event, error) {
	return nil, errUnreadable
}

// A session whose first event cannot be read is not one without turns.
func TestUnreadableSession(t *testing.T) {
	if r, err := replay.Run(t.Context(), replay.Options{Source: unreadable{}, Host: struct{ abi.Host }{}}); !errors.Is(err, errUnreadable) {
		t.Errorf("%+v, %v", r, err)
	}
}
