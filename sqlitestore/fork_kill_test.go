package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// forks are the points that only a fork passes. forkPoints are where a fork is ended: at those
// points, at the steps of merging its history, and at random moments.
var (
	forks      = []failpoint.Point{failpoint.Planting, failpoint.Planted, failpoint.Grafted, failpoint.Catalogued, failpoint.Forking, failpoint.Forked}
	exports    = []failpoint.Point{failpoint.Exporting, failpoint.Exported}
	forkPoints = append([]failpoint.Point{failpoint.Stripping, failpoint.Stripped, failpoint.Uniting, failpoint.United, failpoint.Count, failpoint.Count}, forks...)
)

// fork makes a fork or an export, in a process that owns the directory or in one that only
// reads it.
func (a *errand) fork(ctx context.Context, dir string, h failpoint.Hooks) (err error) {
	var from interface {
		Export(context.Context, journal.SessionID, string) error
		Fork(context.Context, journal.SessionID, string) (journal.SessionID, error)
		ForkAt(context.Context, journal.SessionID, journal.Mark, string) (journal.SessionID, journal.EventID, error)
		Close() error
	}
	if a.Owner {
		from, err = Open(ctx, dir, Options{hooks: h})
	} else {
		v, verr := OpenReadOnly(ctx, dir)
		if from, err = v, verr; err == nil {
			v.catalog.hooks = h
		}
	}
	if err != nil {
		return err
	}
	switch a.Word {
	case "export":
		err = from.Export(ctx, a.Session, a.To)
	case "fork-at":
		_, _, err = from.ForkAt(ctx, a.Session, a.At, a.To)
	default:
		_, err = from.Fork(ctx, a.Session, a.To)
	}
	return errors.Join(err, from.Close())
}

// toCopyFrom makes a directory to copy from, and returns the contents of its sessions.
func toCopyFrom(t *testing.T) (random *rand.Rand, from string, want map[journal.SessionID]string) {
	t.Helper()
	seed := seeded.For(t.Name())
	t.Logf("seed %d", seed)
	from = handedOn(t, false)
	return rand.New(rand.NewPCG(seed, 0)), from, answersOf(t, from)
}

// TestKilledForking kills a process that forks a session, as it is or as it was at one of its
// events: at every step and between them. There is either the whole fork or none. Forking again
// either makes the fork or reports that it exists, and nothing else is left over. The source is
// not changed.
func TestKilledForking(t *testing.T) {
	t.Parallel()
	random, from, want := toCopyFrom(t)
	sessions, first := liveSessions(t, from), random.IntN(len(forkPoints))
	for i := range errandKills(t) {
		session := sessions[random.IntN(len(sessions))]
		a := &errand{Word: "fork", Session: session, Owner: random.IntN(2) == 0, To: filepath.Join(t.TempDir(), "fork")}
		if random.IntN(2) == 0 {
			a.Word, a.At = "fork-at", markIn(t, from, session, random)
		}
		o := order{Dir: from, Point: forkPoints[(first+i)%len(forkPoints)], Pass: 1, Lines: 12}
		if _, done := a.sendOff(t, o, random); done && o.Point == failpoint.Forked {
			t.Errorf("the process did not die")
		}
		wantAnswers(t, from, want)
		wantTidy(t, from)
		a.finish(t, from, undisturbed(t, a, from))
		if t.Failed() {
			t.Fatalf("after a process that was to %s and end at %s", a.Word, pointName(o.Point))
		}
	}
}

// exportPoints are where an export is ended.
var exportPoints = append([]failpoint.Point{failpoint.Stripping, failpoint.Stripped, failpoint.Uniting, failpoint.United, failpoint.Finishing, failpoint.Finished, failpoint.Count, failpoint.Count}, exports...)

// TestKilledExporting kills a process that exports a session, or one that adopts such a file,
// as TestKilledForking does.
func TestKilledExporting(t *testing.T) {
	t.Parallel()
	random, from, want := toCopyFrom(t)
	sessions, first := liveSessions(t, from), random.IntN(len(exportPoints))
	for i := range errandKills(t) {
		session := sessions[random.IntN(len(sessions))]
		a := &errand{Word: "export", Session: session, Owner: random.IntN(2) == 0, To: filepath.Join(t.TempDir(), "alone.db")}
		o := order{Dir: from, Point: exportPoints[(first+i)%len(exportPoints)], Pass: 1, Lines: 8}
		if _, done := a.sendOff(t, o, random); done && o.Point == failpoint.Exported {
			t.Errorf("the process did not die")
		}
		wantAnswers(t, from, want)
		wantTidy(t, from)
		copied := undisturbed(t, a, from)
		a.finish(t, from, copied)

		adopting := &errand{Word: "adopt", File: a.To, To: filepath.Join(t.TempDir(), "adopted")}
		o.Point = adoptPoints[(first+i)%len(adoptPoints)]
		adopting.sendOff(t, o, random)
		adopting.finish(t, from, copied)
		if t.Failed() {
			t.Fatalf("after a process that was to end at %s", pointName(o.Point))
		}
	}
}

// adoptPoints are where a process that adopts an exported file is ended.
var adoptPoints = []failpoint.Point{failpoint.Planting, failpoint.Remaking, failpoint.Rewriting, failpoint.Remade, failpoint.Installing, failpoint.Installed, failpoint.Forking, failpoint.Forked, failpoint.Count}

func liveSessions(t *testing.T, dir string) (out []journal.SessionID) {
	t.Helper()
	for session, e := range entriesOf(t, dir) {
		if e.Live {
			out = append(out, session)
		}
	}
	slices.Sort(out)
	return out
}

// markIn returns a place among the events that a session wrote itself.
func markIn(t *testing.T, dir string, session journal.SessionID, random *rand.Rand) journal.Mark {
	t.Helper()
	c, _, err := storefile.Schema.Open(t.Context(), entriesOf(t, dir)[session].Path, sqlite.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	wrote, err := storefile.OwnHighest(t.Context(), c)
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	var own []journal.Event
	for _, e := range history(t, mustView(t, dir), session) {
		if _, is := wrote[e.ID.Origin]; is {
			own = append(own, e)
		}
	}
	at := own[random.IntN(len(own))]
	return journal.Mark{Event: at.ID, Since: at.Time}
}

// finish runs the errand again, after a kill, and checks the result.
func (a *errand) finish(t *testing.T, from, want string) {
	t.Helper()
	there := !missing(a.To)
	if there {
		a.wantMade(t, want)
	}
	err := a.do(t.Context(), from, Options{})
	switch {
	case there && abi.CodeOf(err) != abi.AlreadyExists:
		t.Errorf("to %s to a place where the copy exists: %v, want already_exists", a.Word, err)
	case !there && err != nil:
		t.Errorf("to %s again: %v", a.Word, err)
	case !there:
		a.wantMade(t, want)
	}
	names, err := filepath.Glob(a.To + "*")
	if err != nil || len(names) != 1 {
		t.Errorf("the files of the copy are %v, %v; want only the copy", names, err)
	}
}

// undisturbed returns the content of a copy whose making is not interrupted.
func undisturbed(t *testing.T, a *errand, from string) string {
	t.Helper()
	plain := *a
	plain.To = filepath.Join(t.TempDir(), "undisturbed")
	if err := plain.do(t.Context(), from, Options{}); err != nil {
		t.Fatal(err)
	}
	return plain.made(t)
}

// made returns the content of the copy, if it exists. An export is adopted for that.
func (a *errand) made(t *testing.T) string {
	t.Helper()
	if a.Word != "export" {
		return forkedIn(t, a.To)
	}
	dir := filepath.Join(t.TempDir(), "adopted")
	if err := Adopt(t.Context(), a.To, dir); err != nil {
		t.Fatal(err)
	}
	return forkedIn(t, dir)
}

// wantMade checks that the copy is whole, and that a process can continue with it.
func (a *errand) wantMade(t *testing.T, want string) {
	t.Helper()
	if a.Word != "export" {
		wantForked(t, a.To, want)
	} else if got := a.made(t); got != want {
		t.Errorf("the copy has %.800s\nwant %.800s", got, want)
	}
}

// wantForked checks that a fork is whole, and that a process can continue with it.
func wantForked(t *testing.T, dir, want string) {
	t.Helper()
	if got := forkedIn(t, dir); got != want {
		t.Errorf("the fork has %.800s\nwant %.800s", got, want)
	}
	wantTidy(t, dir)
	next := duplicate(t, dir)
	if err := openAll(t.Context(), next, Options{}); err != nil {
		t.Error(err)
	}
	wantTidy(t, next)
}

// forkedIn returns the content of the live session of a fork, without what belongs only to the
// fork.
func forkedIn(t *testing.T, dir string) string {
	t.Helper()
	v := mustView(t, dir)
	live := liveSessions(t, dir)
	if len(live) != 1 {
		t.Fatalf("%d sessions are live, want 1", len(live))
	}
	wantWhole(t, v, live[0])
	g, err := v.Saved(t.Context(), live[0])
	if err != nil {
		t.Fatal(err)
	}
	g.Path, g.Session = "", ""
	out := fmt.Sprint(g, history(t, v, live[0]))
	letters, err := v.DeadLetters(t.Context(), live[0], "", journal.EventID{}, 1<<30)
	out += fmt.Sprint(letters, err)
	for _, c := range g.Creatures {
		state, err := v.State(t.Context(), live[0], c.ID)
		out += fmt.Sprint(c.ID, state, err)
	}
	return out
}
