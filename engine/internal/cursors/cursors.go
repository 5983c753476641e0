// Package cursors works out which cursors a reader has after a change of its channels: the
// rows of the first record of a new store. A cursor says how far a channel was read. A
// backlog is a range of messages that are still to be read.
package cursors

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// Run is a range of messages, both ends included.
type Run struct{ First, Last uint64 }

// Runs returns what is left to read of a channel, unless that is simply everything after
// dealt: a cursor cannot express gaps. messages are the numbers of the channel's messages
// in the log, in order; last is the last one to be read. waits reports whether a message is
// in memory for the reader, and skipped whether the reader must not get it.
func Runs(messages []uint64, dealt, last uint64, waits, skipped func(uint64) bool) (runs []Run, gaps bool) {
	runs, open := []Run{}, false
	for _, n := range messages {
		switch {
		case n <= dealt || n > last:
		case waits(n) && open:
			runs[len(runs)-1].Last = n
		case waits(n):
			runs, open = append(runs, Run{n, n}), true
		case !skipped(n):
			open, gaps = false, true
		}
	}
	return runs, gaps
}

// Feed is what a reader has of one channel before the change.
type Feed struct {
	Channel journal.ChannelID
	Alias   string
	Live    bool   // there is an edge; otherwise only a backlog
	Cursor  uint64 // the last message dealt with
	Dealt   uint64 // up to which everything has been dealt with
	Until   uint64 // the last message of a backlog
	Last    uint64 // the last message to read so far
	InHand  uint64 // the message being handled; 0: none
	Dropped bool   // the change removes the channel
	Again   bool   // the change removes the edge and adds it again
	Divided bool   // only Runs are left to read
	Runs    []Run
}

// After returns the cursors after the change, by channel. heads are the last messages of the
// channels that the reader listens on then. The channels in feeds keep their places, and the
// others begin at the end.
func After(reader journal.ReaderID, feeds []Feed, heads map[journal.ChannelID]uint64) (rows []journal.CursorRow) {
	heads = maps.Clone(heads) // of the channels that have no cursor yet
	for i := range feeds {
		f := &feeds[i]
		_, listens := heads[f.Channel]
		listens = listens && f.Live
		if f.Divided {
			for _, r := range f.Runs {
				rows = append(rows, journal.CursorRow{Reader: reader, Channel: f.Channel, Seq: r.First - 1, Until: r.Last, Alias: f.Alias})
			}
			if listens {
				rows = append(rows, journal.CursorRow{Reader: reader, Channel: f.Channel, Seq: f.Last})
				delete(heads, f.Channel)
			}
			continue
		}
		row := journal.CursorRow{Reader: reader, Channel: f.Channel, Seq: f.Dealt, Until: f.Until, Alias: f.Alias}
		switch {
		case !f.Live:
		case listens && f.Again:
			row.Until = f.Last // and the restored edge begins there
		case listens:
			row.Until, row.Alias = 0, ""
			delete(heads, f.Channel)
		case f.Dropped:
			row.Until = f.InHand // its turn will commit; the rest becomes dead letters
		case f.Last == f.Cursor:
			continue
		default:
			row.Until = f.Last
		}
		if f.Live && listens && !f.Again || row.Until > row.Seq {
			rows = append(rows, row)
		}
	}
	for id, head := range heads {
		rows = append(rows, journal.CursorRow{Reader: reader, Channel: id, Seq: head})
	}
	slices.SortFunc(rows, func(a, b journal.CursorRow) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Until, b.Until))
	})
	return rows
}
