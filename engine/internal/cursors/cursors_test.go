package cursors_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/internal/cursors"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestRunsCoverWhatWaits compares the runs of random channels with the messages that wait.
// Every message that waits is in a run, and no other message is. If there is no gap, everything
// after the cursor waits.
func TestRunsCoverWhatWaits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	gapped := 0
	for range 2000 {
		last, dealt := 1+r.Uint64N(12), r.Uint64N(6)
		var messages []uint64
		waits, own := map[uint64]bool{}, map[uint64]bool{}
		for n := uint64(1); n <= 14; n++ {
			if r.IntN(6) == 0 {
				continue
			}
			messages = append(messages, n)
			switch r.IntN(4) {
			case 0:
				own[n] = true
			case 1:
			default:
				waits[n] = true
			}
		}
		runs, gaps := cursors.Runs(messages, dealt, last, func(n uint64) bool { return waits[n] }, func(n uint64) bool { return own[n] })
		inRun := func(n uint64) bool {
			return slices.ContainsFunc(runs, func(x cursors.Run) bool { return x.First <= n && n <= x.Last })
		}
		wanted := false
		for _, n := range messages {
			within := n > dealt && n <= last
			if within && waits[n] && !inRun(n) || !own[n] && !(within && waits[n]) && inRun(n) {
				t.Fatalf("messages %v after %d up to %d of which %v wait and %v are the reader's own: %d in the runs %v", messages, dealt, last, waits, own, n, runs)
			}
			wanted = wanted || within && !waits[n] && !own[n]
		}
		if gaps != wanted {
			t.Fatalf("messages %v after %d up to %d of which %v wait and %v are the reader's own: gaps is %v", messages, dealt, last, waits, own, gaps)
		}
		if gaps {
			gapped++
		}
	}
	if gapped < 100 {
		t.Errorf("only %d channels had gaps", gapped)
	}
}

// TestCursorsFollowTheChange covers each fate of a feed.
func TestCursorsFollowTheChange(t *testing.T) {
	for name, c := range map[string]struct {
		feed    cursors.Feed
		listens bool
		want    string
	}{
		"an edge that stays":                   {cursors.Feed{Live: true, Cursor: 5, Dealt: 4, Last: 9}, true, "k 4"},
		"with nothing to read":                 {cursors.Feed{Live: true, Cursor: 9, Dealt: 9, Last: 9}, true, "k 9"},
		"an edge that is removed":              {cursors.Feed{Live: true, Cursor: 4, Dealt: 4, Last: 9}, false, "k 4-9 as a"},
		"without anything to read":             {cursors.Feed{Live: true, Cursor: 9, Dealt: 9, Last: 9}, false, ""},
		"an edge that is made again":           {cursors.Feed{Live: true, Cursor: 4, Dealt: 4, Last: 9, Again: true}, true, "k 9; k 4-9 as a"},
		"again, with nothing to read":          {cursors.Feed{Live: true, Cursor: 9, Dealt: 9, Last: 9, Again: true}, true, "k 9"},
		"a channel that is removed":            {cursors.Feed{Live: true, Cursor: 4, Dealt: 4, Last: 9, Dropped: true}, false, ""},
		"removed while a turn is running":      {cursors.Feed{Live: true, Cursor: 4, Dealt: 4, Last: 9, Dropped: true, InHand: 5}, false, "k 4-5 as a"},
		"a backlog":                            {cursors.Feed{Cursor: 4, Dealt: 4, Until: 7, Last: 7}, false, "k 4-7 as a"},
		"a backlog beside a new edge":          {cursors.Feed{Cursor: 4, Dealt: 4, Until: 7, Last: 7}, true, "k 9; k 4-7 as a"},
		"a backlog that was read":              {cursors.Feed{Cursor: 7, Dealt: 7, Until: 7, Last: 7}, false, ""},
		"runs of an edge that stays":           {cursors.Feed{Live: true, Last: 9, Divided: true, Runs: []cursors.Run{{2, 3}, {5, 5}}}, true, "k 9; k 1-3 as a; k 4-5 as a"},
		"runs of an edge that is removed":      {cursors.Feed{Live: true, Last: 9, Divided: true, Runs: []cursors.Run{{2, 3}}}, false, "k 1-3 as a"},
		"no runs of an edge that is removed":   {cursors.Feed{Live: true, Last: 9, Divided: true}, false, ""},
		"runs of a backlog, beside a new edge": {cursors.Feed{Last: 7, Until: 7, Divided: true, Runs: []cursors.Run{{2, 3}}}, true, "k 9; k 1-3 as a"},
	} {
		c.feed.Channel, c.feed.Alias = "k", "a"
		heads := map[journal.ChannelID]uint64{"other": 1}
		if c.listens {
			heads["k"] = 9
		}
		got := ""
		for _, row := range cursors.After("r", []cursors.Feed{c.feed}, heads) {
			if row.Channel == "other" && row.Seq == 1 && row.Until == 0 {
				continue
			}
			if got += "; " + fmt.Sprint(row.Channel, " ", row.Seq); row.Until != 0 {
				got += fmt.Sprint("-", row.Until, " as ", row.Alias)
			}
		}
		if c.want != "" {
			c.want = "; " + c.want
		}
		if got != c.want || len(heads) < 1 || c.listens && heads["k"] != 9 {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
