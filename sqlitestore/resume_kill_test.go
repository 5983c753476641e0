package sqlitestore

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
)

// resumePoints are where a life that resumes is ended, besides random moments: at the steps of
// cuts, at those right before and after them, and when sessions end.
var resumePoints = []failpoint.Point{
	failpoint.Opened, failpoint.Appending, failpoint.Appended, failpoint.Parked, failpoint.Filling, failpoint.Filled, failpoint.Cutting, failpoint.Cut, failpoint.Frozen,
	failpoint.Creating, failpoint.Created, failpoint.Noting, failpoint.Copied, failpoint.Stripped, failpoint.United, failpoint.Standing, failpoint.Finished, failpoint.Completing,
	failpoint.Completed, failpoint.Moved, failpoint.Releasing, failpoint.Released, failpoint.Removed, failpoint.Swept,
}

const killsPerResumed = 6 // of one directory

// TestKilledResuming kills a process that resumes a session whose recipe is edited every time.
// Creatures are added, removed, and listen elsewhere, so that ponds are merged and split. The
// process dies at the steps of that and at random moments, and the next process continues by
// itself.
//
// After every life, each creature is either as it was before the edit or as it is after the
// edit. Every acknowledged message exists once, no creature has received a message twice, no
// dead letter is missing, and every session is sound. When a recipe has been applied, the shape
// is that of the recipe. In the end, the keepers of the ponds have received everything, and the
// other creatures have received everything since the last life applied the recipe.
func TestKilledResuming(t *testing.T) {
	t.Parallel()
	seeded.Long(t)
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	cache, died := t.TempDir(), map[string]int{}
	for todo := errandKills(t); todo > 0; todo -= killsPerResumed {
		b := &resumeReports{t: t, dir: t.TempDir(), cache: cache, random: random, letters: map[journal.EventID]bool{}}
		b.live(failpoint.Count + 1) // the first life must leave a session
		for range min(todo, killsPerResumed) {
			point := failpoint.Count
			if random.IntN(3) > 0 {
				point = resumePoints[random.IntN(len(resumePoints))]
			}
			died[b.live(point)]++
		}
		b.finish()
	}
	t.Logf("lives ended at %v", died)
}

// resumeReports is what the lives of one directory have reported, and what follows from it.
type resumeReports struct {
	t          *testing.T
	dir, cache string
	random     *rand.Rand
	is         edition           // the recipe as it is now
	was        map[string]string // where each creature listened after the previous life
	goal       uint64
	acked      [ponds]uint64
	letters    map[journal.EventID]bool
}

// edit edits the recipe.
func (b *resumeReports) edit() {
	b.is = edition{}
	for _, name := range []string{"otter", "heron", "toad"} {
		if b.random.IntN(3) > 0 {
			b.is[name] = b.random.Perm(ponds)[:1+b.random.IntN(3)]
		}
	}
}

// live lets a process resume the directory with an edited recipe until it dies at the
// point, checks what it leaves, and returns where it ended.
func (b *resumeReports) live(point failpoint.Point) string {
	b.t.Helper()
	b.edit()
	b.goal += 20 + b.random.Uint64N(40)
	o := order{Dir: b.dir, Seed: b.random.Uint64(), Point: point, Pass: 1 + b.random.Int32N(2), Lines: 150}
	lines, done := b.send(o)
	for i := range lines {
		b.listen(&lines[i])
	}
	b.check(done)
	switch {
	case b.t.Failed():
		b.t.Fatalf("after a life that was to end at %s, pass %d", pointName(min(point, failpoint.Count)), o.Pass)
	case done:
		return "its own end"
	}
	return pointName(point)
}

func (b *resumeReports) send(o order) ([]progress, bool) {
	b.t.Helper()
	a := &errand{Word: "resume", Resume: &resuming{Cache: b.cache, Edition: b.is, Goal: b.goal}}
	return a.sendOff(b.t, o, b.random)
}

// listen notes what a life reports.
func (b *resumeReports) listen(line *progress) {
	b.t.Helper()
	switch line.Word {
	case "ok":
		b.acked[line.At] = max(b.acked[line.At], line.Seq)
	case "applied":
		var got resumed
		if err := json.Unmarshal([]byte(line.Text), &got); err != nil {
			b.t.Fatal(err)
		}
		if want := b.is.graphs(); !slices.Equal(got.Graphs, want) {
			b.t.Errorf("the graphs are %q, want %q", got.Graphs, want)
		}
		if want := b.is.listens(); !maps.Equal(got.Listens, want) {
			b.t.Errorf("the creatures listen on %v, want %v", got.Listens, want)
		}
		for i, n := range got.Marks {
			if n < b.acked[i] {
				b.t.Errorf("pond %d has %d messages, but %d were acknowledged", i, n, b.acked[i])
			}
		}
	}
}

// finish lets a process resume until its end, and checks that every creature has received what
// it must, and that nothing is left to be done.
func (b *resumeReports) finish() {
	b.t.Helper()
	b.edit()
	b.goal += 20
	lines, done := b.send(order{Dir: b.dir, Point: failpoint.Count + 1})
	if !done {
		b.t.Fatal("the last life did not reach its end")
	}
	var since [ponds]uint64
	for i := range lines {
		if b.listen(&lines[i]); lines[i].Word == "applied" {
			var got resumed
			if err := json.Unmarshal([]byte(lines[i].Text), &got); err != nil {
				b.t.Fatal(err)
			}
			since = got.Marks
		}
	}
	b.check(true)
	b.checkHeard(since)
	wantTidy(b.t, b.dir)
	for _, e := range entriesOf(b.t, b.dir) {
		if e.Live != e.Complete && e.File != "" {
			b.t.Errorf("the directory has settled, but there is %+v", e)
		}
	}
}
