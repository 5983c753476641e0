package search

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
)

// indexed is an event that the index has found.
type indexed struct {
	place   int64
	id      journal.EventID
	session journal.SessionID
}

// partBits is how many places a part has, as a power of two. A word that is in one event
// of each part costs one lookup per part, and a word that is in all events costs the
// length of a part.
const partBits = 18

func partOf(place int64) int64 { return place >> partBits }

// find returns the matches before a place, the last one first, until take returns false.
func (ix *index) find(ctx context.Context, match string, before int64, take func(indexed) bool) error {
	before = min(before, ix.next)
	r := run{first: before}
	newest := partOf(before - 1)
	if !words.parts {
		newest = min(newest, 0)
	}
	for part := newest; part >= 0; part-- {
		err := ix.c.QueryWithin(ctx, words.find, []driver.Value{match, part, before}, func(v []driver.Value) error {
			var place int64
			if err := sqlite.TakeRow(v, &place); err != nil {
				return err
			}
			if place < r.first {
				if err := ix.runOf(place, &r); err != nil {
					return err
				}
			}
			if !take(indexed{place, journal.EventID{Origin: r.origin, Seq: uint64(r.seq + place - r.first)}, r.session}) {
				return errNoMore
			}
			return nil
		})
		if errors.Is(err, errNoMore) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run is a sequence of consecutive events of one origin.
type run struct {
	first, seq int64
	origin     journal.Origin
	session    journal.SessionID
}

// runOf finds the run of events that contains an event.
func (ix *index) runOf(place int64, r *run) error {
	return ix.c.Query("SELECT r.first, r.seq, o.uuid, o.session FROM run r JOIN origin o ON o.no = r.origin WHERE r.first <= ? ORDER BY r.first DESC LIMIT 1",
		[]driver.Value{place}, func(v []driver.Value) error {
			var session string
			err := sqlite.TakeRow(v, &r.first, &r.seq, (*[16]byte)(&r.origin), &session)
			r.session = journal.SessionID(session)
			return err
		})
}

// tagged returns the text of an event with words for its kind, creature and channel, so
// that the event can be selected without being read.
func tagged(ev *journal.Event) string {
	text := TextOf(ev)
	if text == "" {
		return ""
	}
	return strings.ReplaceAll(text, "%", " ") + " " + kindTag(ev.Kind) + " " + tag("c", string(ev.Creature)) + " " + tag("h", string(ev.Channel))
}

func kindTag(k journal.EventKind) string { return "%k" + strconv.Itoa(int(k)) }

// tag returns the word that stands for an id. Ids that differ only in punctuation have the
// same word, so matches are compared again.
func tag(of, id string) string {
	if id == "" {
		return ""
	}
	return "%" + of + strings.Map(func(r rune) rune {
		if r > 127 || !inWord(r) {
			return '%'
		}
		return r
	}, id)
}

// matchFor translates a query into a query of the index.
func matchFor(text asked, q *Query) string {
	parts := []string{text.match}
	add := func(tags []string) {
		if len(tags) > 0 {
			parts = append(parts, join(tags, " OR "))
		}
	}
	var kinds, creatures, channels []string
	for _, k := range q.Kinds {
		kinds = append(kinds, quoted(kindTag(k)))
	}
	for _, c := range q.Creatures {
		creatures = append(creatures, quoted(tag("c", string(c))))
	}
	for _, ch := range q.Channels {
		channels = append(channels, quoted(tag("h", string(ch))))
	}
	add(kinds)
	add(creatures)
	add(channels)
	return strings.Join(parts, " AND ")
}

func quoted(word string) string { return `"` + word + `"` }

// errNoMore ends a query that has found enough.
var errNoMore = errors.New("enough")
