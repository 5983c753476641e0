package hosts_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/conformance/hosts"
	"github.com/seed47132306/terrarium/conformance/report"
	"github.com/seed47132306/terrarium/conformance/requirements"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/guesttools"
)

// actsAs makes the test program an adapter in another process.
const actsAs = "TERRARIUM_TEST_ADAPTER"

func TestMain(m *testing.M) {
	if role := os.Getenv(actsAs); role != "" {
		act(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// act is an adapter, a good one or one that misbehaves after its first answer.
func act(role string) {
	ctx := context.Background()
	a, err := hosts.NewOwn(ctx, host.Options{})
	if err != nil {
		panic(err)
	}
	switch role {
	case "good":
		err = hosts.Serve(ctx, a, os.Stdin, os.Stdout)
	case "dies at once":
		os.Exit(3)
	case "hangs at once":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "refuses hello":
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var q hosts.Request
			if err = json.Unmarshal(in.Bytes(), &q); err == nil {
				err = json.NewEncoder(os.Stdout).Encode(&hosts.Response{ID: q.ID, Error: "not today"})
			}
		}
	case "leaves its pipes to a child":
		child := exec.Command("sleep", "20")
		child.Stdin, child.Stdout = os.Stdin, os.Stdout
		if err = child.Start(); err == nil {
			select {}
		}
	case "does not read":
		fmt.Println(`{"id":1,"host":"x"}`)
		time.Sleep(time.Hour)
	case "nonsense":
		_, err = fmt.Println("hello, world")
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		in, out := io.Pipe()
		go func() { _ = hosts.Serve(ctx, a, os.Stdin, out); out.Close() }()
		err = spoil(role, in)
	}
	if err != nil {
		panic(err)
	}
}

// spoil passes the answers on, but spoils the tenth.
func spoil(role string, answers io.Reader) error {
	buffer := make([]byte, 1<<20)
	for n := 1; ; n++ {
		size, err := answers.Read(buffer)
		if err != nil {
			return nil
		}
		line := buffer[:size]
		if n == 10 {
			switch role {
			case "dies":
				os.Exit(3)
			case "hangs":
				select {}
			case "answers twice":
				line = slices.Concat(line, line)
			case "answers another":
				line = []byte(`{"id":999}` + "\n")
			case "half":
				line = append(line[:len(line)/2:len(line)/2], '\n')
			case "floods":
				for {
					if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
						os.Exit(1)
					}
				}
			}
		}
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
}

func ownHost(ctx context.Context) (hosts.Adapter, error) { return hosts.NewOwn(ctx, host.Options{}) }

// process starts the test program as an adapter.
func process(t *testing.T, role string, o hosts.ProcessOptions) func(ctx context.Context) (hosts.Adapter, error) {
	t.Helper()
	return func(ctx context.Context) (hosts.Adapter, error) {
		return hosts.Start(ctx, []string{"env", actsAs + "=" + role, os.Args[0]}, o)
	}
}

func cases(t *testing.T) []*hosts.Case {
	t.Helper()
	list, err := hosts.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func run(t *testing.T, start func(ctx context.Context) (hosts.Adapter, error), list []*hosts.Case) *report.Report {
	t.Helper()
	r, err := hosts.Run(t.Context(), start, list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOwnHostConforms runs the suite in this process and through another one: the
// verdicts are the same.
func TestOwnHostConforms(t *testing.T) {
	inside := run(t, ownHost, cases(t))
	outside := run(t, process(t, "good", hosts.ProcessOptions{}), cases(t))
	for i, x := range inside.Results {
		if x.Verdict != report.Passed {
			t.Errorf("%s: %s %s %q", x.Check, x.Verdict, x.Reason, x.Seen)
		}
		if y := outside.Results[i]; y.Check != x.Check || y.Verdict != x.Verdict {
			t.Errorf("%s: %s in this process, and %s %s %q in another", x.Check, x.Verdict, y.Verdict, y.Reason, y.Seen)
		}
	}
}

// Whatever an adapter does, the check that it spoils is inconclusive, and the run continues
// with another process.
func TestAdaptersThatMisbehave(t *testing.T) {
	t.Parallel()
	list := cases(t)[:12]
	// Only adapters that are silent may be too slow: the others must not be, on any machine.
	options := func(want report.Reason, patience time.Duration) hosts.ProcessOptions {
		if want != report.AdapterSilent {
			patience = time.Minute
		}
		return hosts.ProcessOptions{Timeout: patience, MaxAnswer: 1 << 20}
	}
	for role, want := range map[string]report.Reason{
		"dies": report.AdapterLost, "hangs": report.AdapterSilent, "answers twice": report.AdapterNonsense,
		"answers another": report.AdapterNonsense, "half": report.AdapterNonsense, "floods": report.AdapterFlood,
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel() // most of the time goes by in waiting
			r := run(t, process(t, role, options(want, 2*time.Second)), list)
			if len(r.Results) != len(list) {
				t.Fatalf("%d results of %d", len(r.Results), len(list))
			}
			spoilt := 0
			for _, x := range r.Results {
				switch {
				case x.Verdict == report.Passed:
				case x.Verdict == report.Inconclusive && x.Reason == want && x.Seen[0] != "":
					spoilt++
				default:
					t.Errorf("%s: %s %s %q", x.Check, x.Verdict, x.Reason, x.Seen)
				}
			}
			if spoilt == 0 || r.Count(report.Passed) == 0 {
				t.Errorf("%d checks are inconclusive, %d passed", spoilt, r.Count(report.Passed))
			}
		})
	}
	for role, want := range map[string]report.Reason{"dies at once": report.AdapterLost, "hangs at once": report.AdapterSilent, "nonsense": report.AdapterNonsense,
		"refuses hello": report.AdapterError, "leaves its pipes to a child": report.AdapterSilent} {
		t.Run(role, func(t *testing.T) {
			t.Parallel() // most of the time goes by in waiting
			r := run(t, process(t, role, options(want, 200*time.Millisecond)), list)
			if first := r.Results[0]; r.Count(report.Inconclusive) != len(list) || first.Reason != want {
				t.Errorf("%s %s %q", first.Verdict, first.Reason, first.Seen)
			}
			// It is not started forever.
			if last := r.Results[len(list)-1]; !strings.Contains(last.Seen[0], "not started again") {
				t.Errorf("%q", last.Seen)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		start := func(ctx context.Context) (hosts.Adapter, error) {
			return hosts.Start(ctx, []string{filepath.Join(t.TempDir(), "none")}, options(report.AdapterLost, 0))
		}
		if r := run(t, start, list); r.Count(report.Inconclusive) != len(list) || !strings.Contains(r.Results[0].Seen[0], "does not start") {
			t.Errorf("%+v", r.Results[0])
		}
	})
}

// attacks are modules of the suite in the place of hostile ones.
func attacks() (out []hosts.Attack) {
	for _, name := range []string{"plain", "no_handle", "plain", "starts_and_traps", "plain"} {
		wasm, err := os.ReadFile("modules/" + name + ".wasm")
		if err != nil {
			panic(err)
		}
		refused := name != "plain"
		out = append(out, hosts.Attack{Check: "hostile/" + name, About: name, Module: func() []byte { return wasm }, Refused: refused, Fails: refused})
	}
	return out
}

// An adapter that an attack ends has failed, and the run continues with another one.
func TestAttacksThatEndTheAdapter(t *testing.T) {
	t.Parallel()
	o := hosts.ProcessOptions{Timeout: 2 * time.Second, MaxAnswer: 1 << 20}
	for role, fails := range map[string]bool{"good": false, "dies": true, "hangs": true} {
		r, err := hosts.RunAttacks(t.Context(), process(t, role, o), attacks(), hosts.AttackOptions{Timeout: o.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Results) != 5 || (r.Count(report.Failed) > 0) != fails || r.Count(report.Passed) == 0 || !fails && r.Count(report.Inconclusive) > 0 {
			t.Errorf("%s: %+v", role, r.Results)
		}
	}
	wrong := attacks()
	for i := range wrong {
		wrong[i].Refused, wrong[i].Fails = i%2 == 0, i%2 == 0 // the opposite
	}
	wrong[1].Module = wrong[0].Module
	r, err := hosts.RunAttacks(t.Context(), ownHost, wrong, hosts.AttackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range r.Results {
		if i%2 == 0 && (x.Verdict != report.Failed || x.Seen[0] != "the module is accepted") {
			t.Errorf("%s: %s %q", x.Check, x.Verdict, x.Seen)
		}
	}
	wrong[0].Refused = false
	if r, err = hosts.RunAttacks(t.Context(), ownHost, wrong[:1], hosts.AttackOptions{}); err != nil || r.Results[0].Verdict != report.Failed || !strings.Contains(r.Results[0].Seen[0], "nothing fails") {
		t.Errorf("%+v, %v", r, err)
	}
}

// late is an adapter whose turns take long, by a clock of its own, and that is lost when a
// creature is removed.
type late struct {
	hosts.Adapter
	now    *time.Time
	takes  map[hosts.Op]time.Duration
	resets int // until it is lost
}

func (a *late) Do(ctx context.Context, q *hosts.Request) (*hosts.Response, error) {
	*a.now = a.now.Add(a.takes[q.Op])
	if q.Op == hosts.OpReset {
		if a.resets--; a.resets == 0 {
			return nil, errors.New("lost")
		}
	}
	return a.Adapter.Do(ctx, q)
}

// A turn that ends long after its deadline is a failure, and so is an adapter that is lost
// when the attack is removed. Loading includes compiling, which no deadline of a turn bounds.
func TestAttacksThatTakeLong(t *testing.T) {
	for name, c := range map[string]struct {
		takes  map[hosts.Op]time.Duration
		resets int
		seen   string
	}{
		"in time":        {takes: map[hosts.Op]time.Duration{hosts.OpLoad: time.Hour, hosts.OpDeliver: 14 * time.Second, hosts.OpStop: 15 * time.Second}},
		"a late turn":    {takes: map[hosts.Op]time.Duration{hosts.OpDeliver: 16 * time.Second}, seen: "deliver took 16s, and the deadline of a turn is 10s"},
		"a late stop":    {takes: map[hosts.Op]time.Duration{hosts.OpStop: time.Minute}, seen: "stop took 1m0s"},
		"a lost removal": {resets: 2, seen: "the attack has ended the adapter: lost"},
	} {
		now := time.Unix(0, 0)
		start := func(ctx context.Context) (hosts.Adapter, error) {
			a, err := ownHost(ctx)
			return &late{a, &now, c.takes, c.resets}, err
		}
		r, err := hosts.RunAttacks(t.Context(), start, attacks()[:1], hosts.AttackOptions{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		if x := r.Results[0]; (x.Verdict == report.Passed) != (c.seen == "") || c.seen != "" && !strings.Contains(x.Seen[0], c.seen) {
			t.Errorf("%s: %s %q", name, x.Verdict, x.Seen)
		}
	}
}

func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hosts.Run(ctx, ownHost, cases(t)); err == nil {
		t.Error("a run whose context has ended returns a report")
	}
}

// TestModulesAreCurrent builds the modules of the suite again.
func TestModulesAreCurrent(t *testing.T) {
	sources, err := filepath.Glob("modules/*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no modules: %v", err)
	}
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		guesttools.Missing(t, "wat2wasm is not installed (Debian: wabt)")
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(t.TempDir(), "module.wasm")
		args := []string{source, "-o", target}
		if strings.Contains(string(text), ";; build with") {
			_, flags, _ := strings.Cut(string(text), ";; build with ")
			flags, _, _ = strings.Cut(flags, "\n")
			args = append(args, strings.Fields(flags)...)
		}
		if out, err := exec.Command("wat2wasm", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
		compare(t, target, strings.TrimSuffix(source, ".wat")+".wasm")
	}
}

// TestProbesAreCurrent builds the probes again, with the compiler that built them.
func TestProbesAreCurrent(t *testing.T) {
	version, err := exec.Command("clang", "--version").Output()
	if err != nil || !strings.Contains(string(version), "version 14.") {
		guesttools.Missing(t, "clang 14 is not installed (Debian: clang, lld)")
	}
	for probe, with := range map[string]string{"probe": "-DWITH_NOTICE", "probe_wasi": "-DWITH_WASI"} {
		target := filepath.Join(t.TempDir(), "probe.wasm")
		args := strings.Fields("--target=wasm32 -nostdlib -O1 -fno-builtin -mbulk-memory -Wall -Wno-infinite-recursion -Wl,--no-entry -Wl,--global-base=1024 -Wl,-z,stack-size=32768 -Wl,--initial-memory=262144 -Wl,--strip-all modules/probe.c")
		if out, err := exec.Command("clang", append(args, with, "-o", target)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		compare(t, target, "modules/"+probe+".wasm")
	}
}

func compare(t *testing.T, built, kept string) {
	t.Helper()
	want, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(kept)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what its source gives (%v)", kept, err)
	}
}

// TestPythonHost runs the suite over the host in Python, which was written from the page
// alone. Its baseline names what it does not do.
func TestPythonHost(t *testing.T) {
	text, err := os.ReadFile("python/host.py")
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, `"""`) {
			code++
		}
	}
	if code > 500 {
		t.Errorf("the host has %d lines of code; 500 show that the contract is small", code)
	}
	guesttools.Use(t)
	if tools, err := filepath.Abs("../../bin/toolchains/python"); err == nil {
		t.Setenv("PYTHONPATH", tools+string(filepath.ListSeparator)+os.Getenv("PYTHONPATH")) // where make toolchains puts wasmtime
	}
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import wasmtime").Run() != nil {
		const missing = "Python with the package wasmtime is not installed (pip install wasmtime)"
		guesttools.Missing(t, missing)
	}
	judge(t, []string{python, "python/host.py"}, "python/baseline.yaml")
}

// TestWazeroHost runs the suite over the host on wazero's interpreter, which has no meter:
// checks that need fuel do not apply to it, and none is expected to fail.
func TestWazeroHost(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "host.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./wazero").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := judge(t, []string{binary}, "wazero/baseline.yaml")
	for _, x := range r.Results {
		fuel := slices.Contains([]string{"limits/fuel", "limits/fuel-repeats", "fuel/left"}, x.Check)
		if (x.Verdict == report.NotApplicable) != fuel {
			t.Errorf("%s: %s", x.Check, x.Verdict)
		}
	}
}

// judge runs the suite over another host. It must meet nine requirements of ten, and fail
// exactly the checks of its baseline.
func judge(t *testing.T, command []string, baseline string) *report.Report {
	t.Helper()
	r := run(t, func(ctx context.Context) (hosts.Adapter, error) {
		return hosts.Start(ctx, command, hosts.ProcessOptions{Errors: t.Output()})
	}, cases(t))
	listed, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := report.ParseBaseline(baseline, listed, func(check string) bool {
		return slices.ContainsFunc(cases(t), func(c *hosts.Case) bool { return c.Check == check })
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := requirements.Load("abi-1")
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(set, expected, func(string) bool { return true })
	if passed, scored := r.Score(); !r.Conforms || 10*passed < 9*scored {
		var b strings.Builder
		_ = r.Text(&b) // a Builder never fails
		t.Errorf("%d of %d requirements\n%s", passed, scored, b.String())
	}
	return r
}
