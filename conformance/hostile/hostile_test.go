package hostile_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/hostile"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/ramdisk"
	"github.com/seed47132306/terrarium/internal/seeded"
	"github.com/seed47132306/terrarium/plugins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ramdisk.Tests(m)) }

// patience is how long the test waits for a module. It is not a limit of the
// module: all those are far below.
const patience = 5 * time.Minute

// pending lists ends that do not hold yet, as data: "module" or "module/end",
// and why. TERRARIUM_PENDING=1 runs them anyway.
const pendingFile = "testdata/pending.txt"

// TestGallery runs every module, one after the other against one live engine,
// so that it also detects after-effects. make test has every module once: a quarter of them
// here, the others in TestAllAtOnce.
func TestGallery(t *testing.T) {
	pending := readPending(t)
	arena := &arena{}
	defer arena.close(t)
	known := map[string]bool{}
	for n, m := range hostile.Modules() {
		for i := range m.Ends {
			end := &m.Ends[i]
			name := m.Name
			if end.By != "" {
				name += "/" + end.By
			}
			known[m.Name], known[name] = true, true
			if !seeded.Part(n+1, 4) && !endsInStop(&m) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				for _, key := range []string{m.Name, name} {
					if why, ok := pending[key]; ok && os.Getenv("TERRARIUM_PENDING") == "" {
						t.Skip(why)
					}
				}
				arena.attack(t, &m, end)
			})
		}
	}
	for name := range pending {
		if !known[name] {
			t.Errorf("%s lists %s, which is not a module", pendingFile, name)
		}
	}
}

// TestFloodsAgainstAStore runs the guests that a limit of the turn ends, in an
// engine with stores on disk. Storms are excluded: with a store no message is
// dropped, so the victim would have to handle all of them. make test has one module in five.
func TestFloodsAgainstAStore(t *testing.T) {
	pending := readPending(t)
	arena := &arena{dir: t.TempDir()}
	defer arena.close(t)
	for i, m := range hostile.Modules() {
		end := &m.Ends[0]
		if !seeded.Part(i, hostilePart) || end.In != abi.ExportHandle || end.Code != abi.LimitExceeded {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			if why, ok := pending[m.Name]; ok && os.Getenv("TERRARIUM_PENDING") == "" {
				t.Skip(why)
			}
			arena.attack(t, &m, end)
		})
	}
}

// TestSizeAloneIsRefused runs modules that are refused for their size at a
// harmless size, at which they must work.
func TestSizeAloneIsRefused(t *testing.T) {
	arena := &arena{}
	defer arena.close(t)
	for _, m := range hostile.Modules() {
		if m.Harmless == nil {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			arena.attack(t, &hostile.Module{Name: m.Name, Build: m.Harmless}, &hostile.End{In: abi.ExportHandle})
		})
	}
}

// TestTruncatedAnywhere cuts a creature short at every byte.
func TestTruncatedAnywhere(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	whole, err := plugins.Get("echo")
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		m, err := h.Compile(t.Context(), whole[:n])
		if err == nil {
			// The rest may be a complete module without its last sections.
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			continue
		}
		if abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("cut at byte %d of %d: %v", n, len(whole), err)
		}
	}
}

// hostilePart is the part that make test has of the tests that repeat some of the modules in
// other circumstances.
const hostilePart = 5

// endsInStop reports whether a module attacks when its creature stops, which it does not in
// TestAllAtOnce.
func endsInStop(m *hostile.Module) bool { return m.Ends[0].In == abi.ExportStop }

// TestAllAtOnce runs all modules at the same time, in one engine; in make test, those
// that TestGallery leaves out then.
func TestAllAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pending := readPending(t)
	var modules []hostile.Module
	for i, m := range hostile.Modules() {
		_, all := pending[m.Name]
		_, first := pending[m.Name+"/"+m.Ends[0].By]
		// Three of four in make test: TestGallery has the fourth.
		if (seeded.Part(i, 2) || seeded.Part(i+3, 4)) && !all && !first && !endsInStop(&m) {
			modules = append(modules, m)
		}
	}
	stage, err := hostile.NewStage(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	reports, err := stage.RunAll(ctx, modules)
	if err != nil {
		t.Fatal(err, stage.Close(ctx))
	}
	for i, r := range reports {
		m := &modules[i]
		for _, problem := range r.Problems(m, &m.Ends[0]) {
			t.Errorf("%s: %s", m.Name, problem)
		}
	}
	if err := stage.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestClosingEndsWhatRunsAway closes engines under guests that would run for
// an hour. make test has one module in five.
func TestClosingEndsWhatRunsAway(t *testing.T) {
	pending := readPending(t)
	for i, m := range hostile.Modules() {
		if !seeded.Part(i, hostilePart) || m.Ends[0].In != abi.ExportHandle || m.Ends[0].Code != abi.OutOfFuel {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			if why, ok := pending[m.Name]; ok && os.Getenv("TERRARIUM_PENDING") == "" {
				t.Skip(why)
			}
			stage, err := hostile.NewStage(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stage.CloseDuring(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// arena is a stage that is reused for every module, until one breaks it.
type arena struct {
	dir   string // of the session; empty without stores
	stage *hostile.Stage
}

func (a *arena) attack(t *testing.T, m *hostile.Module, end *hostile.End) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if a.stage == nil {
		stage, err := hostile.NewStage(ctx, a.dir)
		if err != nil {
			t.Fatal(err)
		}
		a.stage = stage
	}
	defer func() {
		if t.Failed() {
			a.close(t)
		}
	}()
	report, err := a.stage.Run(ctx, m, end)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range report.Problems(m, end) {
		t.Error(problem)
	}
	t.Logf("%v in %s after %v: %.300s", report.Code, report.In, report.Took.Round(time.Microsecond), report.Text)
	t.Logf("neighbours %+v, peak %d MiB more", report.Neighbours, (report.Peak-report.Before.Resident)>>20)
}

// close closes the engine, which must always succeed.
func (a *arena) close(t *testing.T) {
	t.Helper()
	if a.stage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := a.stage.Close(ctx); err != nil {
		t.Errorf("the engine does not close: %v", err)
	}
	a.stage = nil
}

// readPending reads lines such as "name  reason".
func readPending(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile(pendingFile)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if line == "" || line[0] == '#' {
			continue
		}
		name, why, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("%s: %q gives no reason", pendingFile, line)
		}
		list[name] = strings.TrimSpace(why)
	}
	return list
}

// TestTheGalleryIsInOrder checks what no run of a module can.
func TestTheGalleryIsInOrder(t *testing.T) {
	modules := hostile.Modules()
	if len(modules) < 20 {
		t.Errorf("the gallery has %d modules", len(modules))
	}
	seen := map[string]bool{}
	for _, m := range modules {
		if seen[m.Name] {
			t.Errorf("%s appears twice", m.Name)
		}
		seen[m.Name] = true
		if m.Name == "" || m.Attacks == "" || len(m.Ends) == 0 {
			t.Errorf("%q does not say what it attacks or how it has to end", m.Name)
		}
		if first, again := m.Build(), m.Build(); !bytes.Equal(first, again) {
			t.Errorf("%s is built differently each time", m.Name)
		}
		by := slices.IndexFunc(m.Ends, func(e hostile.End) bool { return e.By == "" })
		if by >= 0 && len(m.Ends) > 1 {
			t.Errorf("%s has several ends, and one of them has no name", m.Name)
		}
	}
}
