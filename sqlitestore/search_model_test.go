package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/search"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"golang.org/x/text/unicode/norm"
)

// question is a query that the index answers, and that can be answered by reading every event.
type question struct {
	text string // in parentheses, if it has parts
	fits func(words []string) bool
}

var vocabulary = []string{"frog", "FROG", "newt", "pond", "ponds", "élan", "elan", "10.0.0.7", "x=1", "日本"}

// wordsOf splits a text as the index does, in the simplest way.
func wordsOf(text string) []string {
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(text)))
	return strings.FieldsFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// follows reports whether words contain a sequence.
func follows(words, sequence []string, prefix bool) bool {
	for i := 0; i+len(sequence) <= len(words); i++ {
		same := slices.EqualFunc(words[i:i+len(sequence)], sequence, func(has, wanted string) bool { return has == wanted })
		if prefix && !same {
			last := len(sequence) - 1
			same = slices.Equal(words[i:i+last], sequence[:last]) && strings.HasPrefix(words[i+last], sequence[last])
		}
		if same {
			return true
		}
	}
	return false
}

// ask makes a random question.
func ask(r *rand.Rand, depth int) question {
	if depth == 0 || r.IntN(3) == 0 {
		return askTerm(r)
	}
	a, b := ask(r, depth-1), ask(r, depth-1)
	switch r.IntN(4) {
	case 0:
		return question{"(" + a.text + " " + b.text + ")", func(w []string) bool { return a.fits(w) && b.fits(w) }}
	case 1:
		return question{"(" + a.text + " AND " + b.text + ")", func(w []string) bool { return a.fits(w) && b.fits(w) }}
	case 2:
		return question{"(" + a.text + " OR " + b.text + ")", func(w []string) bool { return a.fits(w) || b.fits(w) }}
	}
	return question{"(" + a.text + " NOT " + b.text + ")", func(w []string) bool { return a.fits(w) && !b.fits(w) }}
}

func askTerm(r *rand.Rand) question {
	term, prefix := vocabulary[r.IntN(len(vocabulary))], false
	switch r.IntN(5) {
	case 0:
		term = `"` + term + " " + vocabulary[r.IntN(len(vocabulary))] + `"`
	case 1:
		term, prefix = []string{"pon", "fro", "newt", "elan"}[r.IntN(4)], true
	}
	sequence := wordsOf(term)
	if prefix {
		term += "*"
	}
	return question{term, func(w []string) bool { return follows(w, sequence, prefix) }}
}

// searchProgram acts at random on a directory with an index, and compares what is found with
// the events.
type searchProgram struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	d      *Directory
	stores []*Store
	last   map[*Store]uint64
	clock  int64
}

func (p *searchProgram) now() int64 {
	p.clock = max(p.clock+1, time.Now().UnixNano())
	return p.clock
}

func (p *searchProgram) open() {
	d, err := Open(p.t.Context(), p.dir, WithoutSyncs)
	if err != nil {
		p.t.Fatal(err)
	}
	p.d, p.stores, p.last = d, nil, map[*Store]uint64{}
	graphs, _, err := d.Saved(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, g := range graphs {
		s, err := d.Open(p.t.Context(), g.Session)
		if err != nil {
			p.t.Fatal(err)
		}
		p.stores = append(p.stores, s.(*Store))
	}
}

func (p *searchProgram) close() {
	if err := p.d.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// log appends some events to one of the stores.
func (p *searchProgram) log() {
	s := p.stores[p.r.IntN(len(p.stores))]
	for range 1 + p.r.IntN(30) {
		p.last[s]++
		var words []string
		for range p.r.IntN(6) {
			words = append(words, vocabulary[p.r.IntN(len(vocabulary))])
		}
		text := strings.Join(words, []string{" ", ", ", "%", "\n"}[p.r.IntN(4)])
		ev := journal.Event{
			ID: journal.EventID{Origin: s.Origin(), Seq: p.last[s]}, Time: p.now(), Kind: journal.EventChannelMessage, Payload: []byte(text),
			Creature: journal.CreatureID(fmt.Sprint("c", p.r.IntN(3))), Channel: journal.ChannelID(fmt.Sprint("h-", p.r.IntN(3))), Seq: 1,
		}
		if p.r.IntN(3) == 0 {
			ev.Kind, ev.Payload, ev.Channel = journal.EventState, []byte("key\x00="+text), ""
		}
		s.Append(&journal.Record{Events: []journal.Event{ev}})
	}
}

// cut splits a store, or merges two.
func (p *searchProgram) cut() {
	cut, children, n := journal.Cut{Kind: "split", At: p.now()}, 2, 1
	if len(p.stores) > 3 || len(p.stores) > 1 && p.r.IntN(2) == 0 {
		cut.Kind, children, n = "merge", 1, 2
	}
	p.r.Shuffle(len(p.stores), func(i, j int) { p.stores[i], p.stores[j] = p.stores[j], p.stores[i] })
	var parents []journal.SessionID
	for _, s := range p.stores[:n] {
		cut.Parents, parents = append(cut.Parents, s), append(parents, s.Info().Session)
	}
	for range children {
		cut.Children = append(cut.Children, journal.CutChild{
			Parents: parents,
			StoreSpec: journal.StoreSpec{Graph: "g", Durability: journal.Normal, First: func(o journal.Origin) *journal.Record {
				return &journal.Record{Events: []journal.Event{{ID: journal.EventID{Origin: o, Seq: 1}, Time: p.now(), Kind: journal.EventLog, Payload: []byte(`{"level":"info","text":"frog pond"}`)}}}
			}},
		})
	}
	made, err := p.d.Cut(p.t.Context(), cut)
	if err != nil {
		p.t.Fatal(err)
	}
	p.stores = p.stores[n:]
	for _, s := range made {
		p.stores, p.last[s.(*Store)] = append(p.stores, s.(*Store)), 1
	}
}

// leap lets the index continue shortly before its next part, as if there had been many more
// events.
func (p *searchProgram) leap() {
	path := filepath.Join(p.dir, search.Name)
	err := search.Trim(p.t.Context(), path, func() (int64, error) { return math.MaxInt32, nil }) // this creates the index, if there is none
	if sqlite.Damaged(err) {
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := sqlite.Open(path, sqlite.ReadWrite)
	if err != nil {
		p.t.Fatal(err)
	}
	const part = 18 // of places, as a power of two
	err = c.Exec("UPDATE progress SET next = ((next >> ?) + 1 << ?) - ?", int64(part), int64(part), int64(1+p.r.IntN(20)))
	if err = errors.Join(err, c.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// index extends the index, which may be stopped at any step.
func (p *searchProgram) index() {
	if p.r.IntN(3) == 0 {
		p.leap()
	}
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	steps := p.r.IntN(4)
	pause := search.Pacing{Rest: func() {
		if steps--; steps == 0 {
			stop()
		}
	}, GiveWay: func() {}}
	until := p.clock - int64(p.r.IntN(40))
	path := filepath.Join(p.dir, search.Name)
	err := search.Extend(ctx, path, p.d, until, pause)
	if sqlite.Damaged(err) {
		err = sqlite.Remove(failpoint.Hooks{}, path)
	}
	if err != nil && ctx.Err() == nil {
		p.t.Fatal(err)
	}
}

// lose removes, damages or keeps the index while the directory is closed.
func (p *searchProgram) lose() {
	path := filepath.Join(p.dir, search.Name)
	switch p.r.IntN(4) {
	case 0:
		if err := sqlite.Remove(failpoint.Hooks{}, path); err != nil {
			p.t.Fatal(err)
		}
	case 1:
		if err := os.WriteFile(path, []byte(strings.Repeat("not a database", 100)), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

type searching interface {
	Sessions(context.Context) ([]journal.SessionInfo, error)
	History(context.Context, journal.SessionID, journal.HistoryQuery) ([]journal.Event, error)
	Search(context.Context, search.Query) (SearchResult, error)
}

// check makes a random query, and reads every event for the expected result.
func (p *searchProgram) check(from searching) {
	p.t.Helper()
	asked := ask(p.r, 2)
	q := search.Query{Text: asked.text, Limit: search.MostFound}
	infos, err := from.Sessions(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if p.r.IntN(2) == 0 {
		q.Session = infos[p.r.IntN(len(infos))].Session
		infos = []journal.SessionInfo{{Session: q.Session}}
	}
	if p.r.IntN(3) == 0 {
		q.Creatures = []journal.CreatureID{"c0", "c2"}
	}
	if p.r.IntN(3) == 0 {
		q.Channels = []journal.ChannelID{"h-1"}
	}
	if p.r.IntN(3) == 0 {
		q.Kinds = []journal.EventKind{journal.EventState, journal.EventLog}
	}
	want := p.expect(from, infos, asked, &q)
	for _, limit := range []int{search.MostFound, 1 + p.r.IntN(5)} {
		q.Limit = limit
		got, err := from.Search(p.t.Context(), q)
		if err != nil {
			p.t.Fatalf("%+v: %v", q, err)
		}
		shown := want[:min(len(want), limit)]
		same := slices.EqualFunc(got.Found, shown, func(f search.Found, ev journal.Event) bool {
			return f.ID == ev.ID && string(f.Payload) == string(ev.Payload)
		})
		if !same || got.More != (len(want) > limit) {
			p.t.Fatalf("%+v found %d, more %v; want %d of %d\n%+v\n%+v", q, len(got.Found), got.More, len(shown), len(want), got.Found, shown)
		}
	}
}

func (p *searchProgram) expect(from searching, infos []journal.SessionInfo, asked question, q *search.Query) (want []journal.Event) {
	seen := map[journal.EventID]bool{}
	for _, i := range infos {
		events, err := from.History(p.t.Context(), i.Session, journal.HistoryQuery{Limit: 1 << 20})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, ev := range events {
			if !seen[ev.ID] && q.Fits(&ev) && asked.fits(wordsOf(search.TextOf(&ev))) {
				want = append(want, ev)
			}
			seen[ev.ID] = true
		}
	}
	slices.SortFunc(want, func(a, b journal.Event) int { return int(b.Time - a.Time) })
	return want
}

// TestSearchModel compares what searches find with what reading every event finds. Meanwhile
// sessions are cut; the index is extended now and then, stopped, lost and damaged; and the
// directory is closed and read by others.
func TestSearchModel(t *testing.T) {
	for seed := range uint64(seeds(t, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &searchProgram{t: t, r: rand.New(rand.NewPCG(seed, 8)), dir: t.TempDir()}
			p.open()
			p.stores = append(p.stores, createStore(t, p.d))
			for range 40 {
				switch p.r.IntN(10) {
				case 0:
					p.cut()
				case 1, 2:
					p.index()
				case 3:
					p.close()
					p.lose()
					p.look()
					p.open()
				case 4, 5:
					p.check(p.d)
				default:
					p.log()
				}
			}
			p.check(p.d)
			p.close()
		})
	}
}

// look searches a directory that is not in use, as another process would.
func (p *searchProgram) look() {
	v, err := OpenReadOnly(p.t.Context(), p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.check(v)
	p.check(v)
	if err := v.Close(); err != nil {
		p.t.Fatal(err)
	}
}
