package stores_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/conformance/stores"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// Stores are in memory, so that those whose trials are abandoned end soon.
func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }

// misbehaving is a store that does something else in place of retiring a session.
type misbehaving struct {
	*sqlitestore.Directory
	retire func() error
}

func (m misbehaving) Retire(context.Context, journal.SessionID) error { return m.retire() }

func subject(retire func() error) *stores.Subject {
	return &stores.Subject{Name: "wrong", Open: func(ctx context.Context, dir string) (journal.Storage, error) {
		d, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
		return misbehaving{d, retire}, err
	}}
}

// few are checks that are made; the first retires a session, and the last does not apply
// to a store that does not prune.
var few = []string{"restart/sessions", "append/every-field", "history/filters", "cut/first", "retention/newest"}

func run(t *testing.T, s *stores.Subject) []report.Result {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	results, err := stores.Run(t.Context(), s, func(check string) bool { return slices.Contains(few, check) })
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(few) {
		t.Errorf("%d results of %d checks", len(results), len(few))
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("the run left %v, %v", left, err)
	}
	return results
}

// Whatever a check meets, it is a verdict, and the other checks are made.
func TestStoresThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct {
		retire  func() error
		verdict report.Verdict
		seen    string
	}{
		"fails":                     {func() error { return errors.New("not today") }, report.Failed, "not today"},
		"panics":                    {func() error { panic("out of order") }, report.Failed, "panic: out of order\nin github.com/seed47132306/terrarium/conformance/stores_test."},
		"ends its caller":           {func() error { runtime.Goexit(); return nil }, report.Failed, "ended the goroutine"},
		"says nothing, and is idle": {func() error { return nil }, report.Failed, "live sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range run(t, subject(c.retire)) {
				switch {
				case r.Check == "restart/sessions":
					if r.Verdict != c.verdict || !strings.Contains(strings.Join(r.Seen, "\n"), c.seen) {
						t.Errorf("%s: %s %q", r.Check, r.Verdict, r.Seen)
					}
				case r.Check == "retention/newest":
					if r.Verdict != report.NotApplicable || r.Reason != report.LacksFeature {
						t.Errorf("%s: %s %s %q", r.Check, r.Verdict, r.Reason, r.Seen)
					}
				case r.Verdict != report.Passed || r.Subject != "wrong" || len(r.Rules) == 0 || r.About == "":
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestStoresThatCannotBeOpened(t *testing.T) {
	for _, r := range run(t, &stores.Subject{Open: func(context.Context, string) (journal.Storage, error) { return nil, nil }}) {
		if r.Verdict != report.Failed || !strings.Contains(r.Seen[0], "cannot be opened") {
			t.Errorf("%s: %s %q", r.Check, r.Verdict, r.Seen)
		}
	}
}

// A check that never ends is left behind, and the rest is made; after a few of them the
// rest is not tried.
func TestStoresThatHang(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	hang := subject(func() error { <-release; return nil })
	hang.Limit, hang.Grace = 2*time.Second, time.Millisecond
	results, err := stores.Run(t.Context(), hang, func(check string) bool { return slices.Contains(few, check) })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Check != "restart/sessions" {
			if r.Verdict == report.Failed {
				t.Errorf("%s: %s %q", r.Check, r.Verdict, r.Seen)
			}
			continue
		}
		if r.Verdict != report.Inconclusive || r.Reason != report.StoreSilent || !strings.Contains(r.Seen[0], "did not end within 2s") {
			t.Errorf("%s: %s %s %q", r.Check, r.Verdict, r.Reason, r.Seen)
		}
	}

	never := &stores.Subject{Limit: time.Millisecond, Grace: time.Millisecond, Open: func(context.Context, string) (journal.Storage, error) { <-release; return nil, errors.New("late") }}
	results, err = stores.Run(t.Context(), never, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if last := results[len(results)-1]; last.Verdict != report.Inconclusive || last.Reason != report.Unreached {
		t.Errorf("the last check is %s (%s) %q", last.Verdict, last.Reason, last.Seen)
	}
	r := report.Report{Results: results}
	set, err := requirements.Load("store-1")
	if err != nil {
		t.Fatal(err)
	}
	if r.Settle(set, nil, func(string) bool { return true }); r.Conforms {
		t.Error("a store that never answers conforms")
	}
}

func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stores.Run(ctx, subject(nil), func(string) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("a run whose context has ended: %v", err)
	}
}
