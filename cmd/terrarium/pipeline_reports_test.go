package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// reports are what the lives of a session have reported.
type reports struct {
	t          *testing.T
	dir        string
	durability journal.Durability
	random     *rand.Rand
	acked      map[string]uint64 // the highest durable entry of each producer
	out        map[string]*printed
	died       struct{ starting, within, after int }
	again      int            // outputs that were printed before
	cuts       map[string]int // that were completed, by kind
	present    lifeNotes      // of the present life
}

// lifeNotes is what one life has reported: anything at all, that a cut begins but not
// yet that it has happened, that all is done.
type lifeNotes struct{ spoke, cutting, done bool }

func newReports(t *testing.T, d journal.Durability, seed uint64) *reports {
	return &reports{
		t: t, dir: filepath.Join(t.TempDir(), "S"), durability: d, random: rand.New(rand.NewPCG(seed, 0)),
		acked: map[string]uint64{}, cuts: map[string]int{}, out: map[string]*printed{"a": newPrinted(), "b": newPrinted()},
	}
}

// printed is one output: the entries in the order of the channel. Each life
// continues somewhere in it or at its end.
type printed struct {
	ids   []string
	texts []string
	place map[string]int    // by id
	next  map[string]uint64 // by sender: the number that is due
	at    int               // where the present life is
}

func newPrinted() *printed {
	return &printed{place: map[string]int{}, next: map[string]uint64{}}
}

// add records an output of the present life.
func (p *printed) add(id, sender string, n uint64) error {
	text := fmt.Sprintf("%s %d", sender, n)
	i, known := p.place[id]
	switch {
	case !known && n != p.next[sender]+1:
		return fmt.Errorf("%s is printed after number %d", text, p.next[sender])
	case !known && p.at >= 0 && p.at != len(p.ids):
		return fmt.Errorf("%s (%s) is printed where %s (%s) was before", text, id, p.texts[p.at], p.ids[p.at])
	case known && (p.texts[i] != text || p.at >= 0 && p.at != i):
		return fmt.Errorf("%s is printed as %s at place %d, but stood at %d as %s", id, text, p.at, i, p.texts[i])
	case !known:
		i = len(p.ids)
		p.ids, p.texts, p.place[id], p.next[sender] = append(p.ids, id), append(p.texts, text), i, n
	}
	p.at = i + 1
	return nil
}

// take records one line.
func (b *reports) take(word string, rest []string) error {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(rest[i], 10, 64)
		if err != nil {
			b.t.Errorf("%s %v: %v", word, rest, err)
		}
		return n
	}
	switch word {
	case "mark":
		if n := number(1); n < b.acked[rest[0]] {
			return fmt.Errorf("the session has taken in %d entries of %s, but %d were durable", n, rest[0], b.acked[rest[0]])
		} else if n > b.acked[rest[0]] {
			b.acked[rest[0]] = n // it is in the store
		}
	case "ack":
		b.acked[rest[0]] = number(1)
	case "out":
		out := b.out[rest[0]]
		if _, known := out.place[rest[1]]; known {
			b.again++
		}
		return out.add(rest[1], rest[2], number(3))
	case "cutting":
		b.present.cutting = true
	case "cut":
		b.present.cutting = false
		b.cuts[rest[0]]++
	case "done":
		b.present.done = true
	case "error":
		return errors.New(strings.Join(rest, " "))
	}
	return nil
}

// marks is the most that any producer has fed as far as is known.
func (b *reports) marks() (n uint64) {
	for _, acked := range b.acked {
		n = max(n, acked)
	}
	for _, p := range b.out {
		for _, next := range p.next {
			n = max(n, next)
		}
	}
	return n
}

// checkOutputs checks that everything was printed. That it was in order, and
// the same entry always under the same id, has been checked line by line.
func (b *reports) checkOutputs(goal uint64) {
	b.t.Helper()
	for _, producers := range feeders {
		for _, p := range producers {
			if n := b.out[p[:1]].next[p]; n != goal {
				b.t.Errorf("of %s %d entries were printed, want %d", p, n, goal)
			}
		}
	}
	if n := len(b.out["a"].ids) + len(b.out["b"].ids); n != 8*int(goal) {
		b.t.Errorf("%d outputs, want %d", n, 8*goal)
	}
}

// checkSession checks the session that the lives have left.
func (b *reports) checkSession(goal uint64) {
	b.t.Helper()
	ctx := b.t.Context()
	b.checkSound()
	e, err := terrarium.New(ctx, terrarium.Options{Dir: b.dir})
	if err != nil {
		b.t.Fatal(err)
	}
	defer e.Close(ctx)
	if _, problems, err := e.Restore(ctx); err != nil || len(problems) > 0 {
		b.t.Fatalf("Restore: %v, problems %v", err, problems)
	}
	if err := e.WaitIdle(ctx); err != nil {
		b.t.Fatal(err)
	}
	for channel, producers := range feeders {
		feed, side := strings.TrimPrefix(channel, "in."), channel[3:4]
		for _, p := range producers {
			for _, ledger := range []string{"first." + feed, "second." + side, "last." + side} {
				b.checkLedger(e, ledger, p, goal)
			}
			if got, want := string(b.state(e, "count."+side, "count/"+p)), fmt.Sprint(goal); got != want {
				b.t.Errorf("count.%s has %s of %s, want %s", side, got, p, want)
			}
		}
	}
	graphs, err := e.Status("")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, g := range graphs {
		if letters, err := e.DeadLetters(ctx, g.ID, "", journal.EventID{}, 1); err != nil || len(letters) > 0 {
			b.t.Errorf("dead letters: %+v, %v", letters, err)
		}
	}
}

// checkLedger checks the last number and the sum that a ledger has of a sender.
func (b *reports) checkLedger(e *terrarium.Terrarium, ledger, sender string, goal uint64) {
	b.t.Helper()
	var sum uint64
	for n := range goal {
		sum += value(sender, n+1)
	}
	got := b.state(e, ledger, sender)
	if len(got) != 16 {
		b.t.Errorf("%s has %d bytes for %s", ledger, len(got), sender)
		return
	}
	if n, s := binary.LittleEndian.Uint64(got), binary.LittleEndian.Uint64(got[8:]); n != goal || s != sum {
		b.t.Errorf("%s has %d entries of %s with the sum %d, want %d with %d", ledger, n, sender, s, goal, sum)
	}
}

func (b *reports) state(e *terrarium.Terrarium, creature, key string) []byte {
	b.t.Helper()
	id, err := e.FindCreature("", creature)
	if err != nil {
		b.t.Fatal(err)
	}
	entries, err := e.State(b.t.Context(), id, key)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Key == key {
			return entry.Value
		}
	}
	return nil
}

// checkSound verifies every live session of the directory.
func (b *reports) checkSound() {
	b.t.Helper()
	v, err := sqlitestore.OpenReadOnly(b.t.Context(), b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	sessions, err := v.Sessions(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	live := 0
	for _, s := range sessions {
		if !s.Live {
			continue
		}
		live++
		report, err := v.Verify(b.t.Context(), s.Session)
		if err != nil || !operations.NewVerifyResult(&report).Sound() {
			b.t.Errorf("%s: %+v, %v", s.Session, report, err)
		}
	}
	if live == 0 {
		b.t.Error("no session is live")
	}
	b.t.Logf("%d sessions, %d of them live", len(sessions), live)
}
