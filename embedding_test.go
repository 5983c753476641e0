package terrarium_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/plugins"
	"github.com/seed47132306/terrarium/sqlitestore"
)

func wasm(t *testing.T, name string) []byte {
	t.Helper()
	b, err := plugins.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func opened(t *testing.T, o terrarium.Options) *terrarium.Terrarium {
	t.Helper()
	x, err := terrarium.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close(context.Background()) }) // tests that need its error close it themselves
	return x
}

// program is the files of a program: a recipe in a folder with a module beside it, one above
// it, and a sub-recipe.
func program(t *testing.T) fstest.MapFS {
	return fstest.MapFS{
		"modules/tally.wasm": {Data: wasm(t, "tally")},
		"modules/relay.wasm": {Data: wasm(t, "relay")},
		"team/team.hcl": {Data: []byte(`
terrarium { name = "team" }
channel "lines" {}
creature "counts" {
  module = "../modules/tally.wasm"
  listen = [channel.lines]
}
creature "relays" {
  module = "${path.recipe}/../modules/relay.wasm"
  listen = [channel.lines]
}
recipe "sub" { source = "./sub" }
catalog "more" {
  folder    = "fs:/modules"
  spawnable = 1
}
`)},
		"team/sub/main.hcl": {Data: []byte(`creature "echo" { module = "builtin:echo" }`)},
	}
}

func count(t *testing.T, x *terrarium.Terrarium, name string) string {
	t.Helper()
	id, err := x.FindCreature("", name)
	if err != nil {
		t.Fatal(err)
	}
	state, err := x.State(t.Context(), id, "total")
	if err != nil || len(state) != 1 {
		t.Fatalf("its state is %v, %v", state, err)
	}
	return string(state[0].Value)
}

func send(t *testing.T, x *terrarium.Terrarium, channel, text string) error {
	t.Helper()
	id, err := x.FindChannel("", channel)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Send(t.Context(), id, terrarium.Outgoing{Payload: []byte(text), Durable: true})
	if err == nil {
		err = x.WaitIdle(t.Context())
	}
	return err
}

func closed(t *testing.T, x *terrarium.Terrarium) {
	t.Helper()
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A session of a recipe in a file system continues: with ApplyFS again, with Resume from
// Options.FS or from the session's copy, and with Restore.
func TestApplyFS(t *testing.T) {
	files, dir := program(t), t.TempDir()
	again := map[string]func(x *terrarium.Terrarium) error{
		"1 apply": func(x *terrarium.Terrarium) error {
			a, err := x.ApplyFS(t.Context(), files, "team", terrarium.RecipeOptions{})
			if err == nil && len(a.Creatures) != 3 {
				err = fmt.Errorf("it applied %v", a.Creatures)
			}
			return err
		},
		"2 apply": func(x *terrarium.Terrarium) error {
			_, err := x.ApplyFS(t.Context(), files, "team", terrarium.RecipeOptions{})
			return err
		},
		"3 resume": func(x *terrarium.Terrarium) error {
			r, err := x.Resume(t.Context(), terrarium.ResumeOptions{})
			if err == nil && (len(r.Recipes) != 1 || r.Recipes[0].Copied || r.Recipes[0].Path != "fs:/team") {
				err = fmt.Errorf("it resumed %+v", r.Recipes)
			}
			return err
		},
		"4 restore": func(x *terrarium.Terrarium) error {
			_, problems, err := x.Restore(t.Context())
			return errors.Join(append(problems, err)...)
		},
		"5 resume of the copy": func(x *terrarium.Terrarium) error {
			r, err := x.Resume(t.Context(), terrarium.ResumeOptions{RecipeOptions: terrarium.RecipeOptions{FS: fstest.MapFS{
				"modules/tally.wasm": files["modules/tally.wasm"], "modules/relay.wasm": files["modules/relay.wasm"],
			}, Modules: map[string]terrarium.ModuleResolver{}}})
			if err == nil && (len(r.Recipes) != 1 || !r.Recipes[0].Copied) {
				err = fmt.Errorf("it resumed %+v", r.Recipes)
			}
			return err
		},
	}
	for i, name := range []string{"1 apply", "2 apply", "3 resume", "4 restore", "5 resume of the copy"} {
		x := opened(t, terrarium.Options{Dir: dir, FS: files})
		if err := again[name](x); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := send(t, x, "lines", "a line"); err != nil {
			t.Fatal(err)
		}
		if got, want := count(t, x, "counts"), fmt.Sprint(i+1); got != want {
			t.Errorf("after %s it has counted %s lines instead of %s", name, got, want)
		}
		closed(t, x)
	}

	x := opened(t, terrarium.Options{Dir: dir})
	_, problems, err := x.Restore(t.Context())
	if err != nil || len(problems) != 2 || !strings.Contains(problems[0].Error(), "give Options.FS the same files") {
		t.Errorf("without the files it restores with %v, %v", problems, err)
	}
}

// Values of variables are files of the program too.
func TestVarFilesInFS(t *testing.T) {
	files := fstest.MapFS{
		"a.hcl":      {Data: []byte("variable \"name\" { type = string }\nchannel \"c\" { description = var.name }\ncreature \"e\" {\n module = \"builtin:echo\"\n listen = [channel.c]\n}")},
		"values.hcl": {Data: []byte(`name = "pond"`)},
	}
	x := opened(t, terrarium.Options{FS: files})
	if _, err := x.Apply(t.Context(), "fs:/a.hcl", terrarium.RecipeOptions{VarFiles: []string{"fs:/values.hcl"}}); err != nil {
		t.Fatal(err)
	}
	graphs, err := x.Status("")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, g := range graphs {
		for _, c := range g.Channels {
			found = found || c.Description == "pond"
		}
	}
	if !found {
		t.Errorf("the channels are in %+v", graphs)
	}
	if _, err := x.Apply(t.Context(), "fs:/a.hcl", terrarium.RecipeOptions{VarFiles: []string{"fs:/../values.hcl"}}); err == nil {
		t.Error("a file out of the file system has values")
	}
}

func TestHostileFS(t *testing.T) {
	huge := fstest.MapFS{"a.hcl": {Data: []byte("#" + strings.Repeat("x", 2<<20))}}
	creature := func(module string) fstest.MapFS {
		return fstest.MapFS{"in/a.hcl": {Data: []byte(`creature "a" { module = "` + module + `" }`)}, "x.wasm": {Data: []byte("no module")}}
	}
	for name, c := range map[string]struct {
		files fs.FS
		path  string
		want  string
	}{
		"no recipe":         {fstest.MapFS{}, "a.hcl", "Recipe not found"},
		"out of it":         {creature("x"), "../a.hcl", "not a path in a file system"},
		"too large":         {huge, "a.hcl", "larger than"},
		"out of the folder": {fstest.MapFS{"a/a.hcl": {Data: []byte(`locals { x = file("../b") }`)}, "b": {Data: []byte("b")}}, "a", "outside the recipe's folder"},
		"file of the host":  {fstest.MapFS{"a.hcl": {Data: []byte(`locals { x = file("/etc/hostname") }`)}}, ".", "outside the recipe's folder"},
		"module of host":    {creature("/etc/hostname"), "in", "Module outside the recipe"},
		"module out of it":  {creature("../../x.wasm"), "in", "leads out of the program's file system"},
		"bad module":        {creature("../x.wasm"), "in", "Module refused"},
		"similar module":    {creature("../y.wasm"), "in", `Did you mean "x.wasm"`},
		"catalog of host":   {fstest.MapFS{"a.hcl": {Data: []byte("catalog \"c\" {\n folder = \"/etc\"\n spawnable = 1\n}")}}, ".", "Folder outside the recipe"},
		"missing catalog":   {fstest.MapFS{"a.hcl": {Data: []byte("catalog \"c\" {\n folder = \"fs:/c\"\n spawnable = 1\n}")}}, ".", "Folder not found"},
		"folder as recipe":  {fstest.MapFS{"a.hcl/x": {}}, ".", "No recipe in this folder"},
		"source not there":  {fstest.MapFS{"a.hcl": {Data: []byte(`recipe "r" { source = "./b" }`)}}, ".", "Sub-recipe not found"},
		"source is a file":  {fstest.MapFS{"a.hcl": {Data: []byte(`recipe "r" { source = "./b" }`)}, "b": {}}, ".", "Sub-recipe cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			x := opened(t, terrarium.Options{})
			_, err := x.ApplyFS(t.Context(), c.files, c.path, terrarium.RecipeOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it answers %v instead of %s", err, c.want)
			}
		})
	}
}

// Modules of the program are found by recipes, specifications, replacements and restores.
func TestModules(t *testing.T) {
	sum := sha256.Sum256(wasm(t, "tally"))
	modules := map[string]terrarium.ModuleResolver{"own": func(_ context.Context, name string) (terrarium.Module, error) {
		switch name {
		case "tally", "C:\\odd/..:name":
			return terrarium.Module{Wasm: wasm(t, "tally"), SHA256: strings.ToUpper(hex.EncodeToString(sum[:]))}, nil
		case "other":
			return terrarium.Module{Wasm: wasm(t, "echo"), SHA256: hex.EncodeToString(sum[:])}, nil
		case "empty":
			return terrarium.Module{}, nil
		case "large":
			return terrarium.Module{Wasm: make([]byte, abi.MaxModuleBytes+1)}, nil
		}
		return terrarium.Module{}, fmt.Errorf("no module %q: %w", name, fs.ErrNotExist)
	}}
	files := func(module string) fs.FS {
		return fstest.MapFS{"a.hcl": {Data: []byte("channel \"lines\" {}\ncreature \"counts\" {\n module = \"own:" + module + "\"\n listen = [channel.lines]\n}")}}
	}
	dir := t.TempDir()
	x := opened(t, terrarium.Options{Dir: dir, Modules: modules})
	if _, err := x.ApplyFS(t.Context(), files("tally"), "a.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.AddCreature(t.Context(), terrarium.CreatureSpec{Name: "odd", Module: "own:C:\\odd/..:name"}); err != nil {
		t.Error(err)
	}
	id, _ := x.FindCreature("", "counts")
	if _, err := x.ReplaceModule(t.Context(), id, terrarium.ReplaceOptions{Module: "own:tally", Check: 10}); err != nil {
		t.Error(err)
	}
	if err := send(t, x, "lines", "a line"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]abi.Code{"missing": abi.NotFound, "other": abi.Conflict, "empty": abi.NotFound, "large": abi.TooLarge} {
		if _, err := x.AddCreature(t.Context(), terrarium.CreatureSpec{Name: name, Module: "own:" + name}); abi.CodeOf(err) != want {
			t.Errorf("%s answers %v", name, err)
		}
		if _, err := x.ApplyFS(t.Context(), files(name), "a.hcl", terrarium.RecipeOptions{}); err == nil || !strings.Contains(err.Error(), "Module") {
			t.Errorf("a recipe with %s answers %v", name, err)
		}
	}
	closed(t, x)
	x = opened(t, terrarium.Options{Dir: dir, Modules: modules})
	if _, problems, err := x.Restore(t.Context()); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if got := count(t, x, "counts"); got != "1" {
		t.Errorf("it has counted %s", got)
	}

	for _, name := range []string{"builtin", "fs", "c", "Own", "a b", ""} {
		if _, err := terrarium.New(t.Context(), terrarium.Options{Modules: map[string]terrarium.ModuleResolver{name: modules["own"]}}); abi.CodeOf(err) != abi.InvalidArgument {
			t.Errorf("the scheme %q answers %v", name, err)
		}
	}
}

// quiet is a policy in Go: it denies messages that shout.
type quiet struct{}

func (quiet) Judges(kind journal.PolicyKind) bool { return kind == journal.JudgeRemove }
func (quiet) JudgesSend(string) bool              { return true }
func (quiet) Send(_ context.Context, e *deploy.SendEvent) (d deploy.SendDecision) {
	if strings.HasSuffix(string(e.Payload), "!") {
		d.Denials = []deploy.Verdict{{Policy: "quiet", Reason: "it shouts", Where: "policy.go"}}
	}
	return d
}
func (quiet) Judge(_ context.Context, e *deploy.PolicyEvent) (d deploy.Decision) {
	if e.Caller.Name == "" && len(e.View().Creatures) < 2 {
		panic("the last creature")
	}
	return d
}

func TestPolicyInGo(t *testing.T) {
	x := opened(t, terrarium.Options{Policy: quiet{}})
	_, err := x.ApplyFS(t.Context(), fstest.MapFS{"a.hcl": {Data: []byte(`
channel "lines" {}
creature "counts" {
  module = "builtin:tally"
  listen = [channel.lines]
}
policy "send" "louder" {
  mode = "mutate"
  run  = "(e) => e.payload === 'loud' ? patch({payload: 'loud!'}) : undefined"
}
policy "send" "script" {
  run = "(e) => e.payload === 'js' ? deny('not js') : undefined"
}
`)}}, "a.hcl", terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"a": "", "a!": "it shouts", "loud": "it shouts", "js": "not js"} {
		err := send(t, x, "lines", text)
		if want == "" && err != nil || want != "" && (abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q answers %v", text, err)
		}
	}
	if got := count(t, x, "counts"); got != "1" {
		t.Errorf("%s messages have passed", got)
	}
	id, _ := x.FindCreature("", "counts")
	if _, err := x.RemoveCreature(t.Context(), id); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "it panicked") {
		t.Errorf("removing it answers %v", err)
	}
	if failures := x.PolicyFailures(); len(failures) != 1 {
		t.Errorf("the failures are %v", failures)
	}
}

// Sessions of a storage and a host that the caller owns continue, and have every operation
// of those that New makes.
func TestOwnHostAndStorage(t *testing.T) {
	dir := t.TempDir()
	h, err := host.New(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(context.Background()) }()
	for i, o := range []terrarium.Options{{Host: h}, {Host: onlyHost{h}}} {
		storage, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{SearchIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		o.Storage = storage
		x := opened(t, o)
		if i == 0 {
			_, err = x.Apply(t.Context(), "testdata/count.hcl", terrarium.RecipeOptions{})
		} else {
			_, err = x.Resume(t.Context(), terrarium.ResumeOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := send(t, x, "lines", "INFO needle"); err != nil {
			t.Fatal(err)
		}
		if got := count(t, x, "counts"); got != fmt.Sprint(i+1) {
			t.Errorf("it has counted %s", got)
		}
		found, err := x.Search(t.Context(), sqlitestore.SearchQuery{Text: "needle"})
		if err != nil || len(found.Found) == 0 {
			t.Errorf("it finds %v, %v", found, err)
		}
		id, _ := x.FindCreature("", "counts")
		if report, err := x.CheckModule(t.Context(), id, wasm(t, "tally"), terrarium.AllTurns, true); err != nil || !report.Same() || report.Turns != i+2 {
			t.Errorf("its turns are checked with %+v, %v", report, err)
		}
		if err := x.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		closed(t, x)
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir, Storage: brokenStorage{}}); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("two storages answer %v", err)
	}
}

// onlyHost is a host without the methods that abi.Host does not have.
type onlyHost struct{ abi.Host }

type brokenStorage struct{ journal.Storage }

// heldStorage is a storage whose stores wait before they close.
type heldStorage struct {
	journal.Storage
	free chan struct{}
}

func (s heldStorage) Create(ctx context.Context, specs ...journal.StoreSpec) ([]journal.Store, error) {
	stores, err := s.Storage.Create(ctx, specs...)
	for i := range stores {
		stores[i] = heldStore{stores[i], s.free}
	}
	return stores, err
}

type heldStore struct {
	journal.Store
	free chan struct{}
}

func (s heldStore) Close(ctx context.Context) error {
	<-s.free
	return s.Store.Close(ctx)
}

// Close returns at the deadline of its context, says what is left, and a later Close ends
// what it began. Nothing that was acknowledged is lost.
func TestCloseHasAnEnd(t *testing.T) {
	dir := t.TempDir()
	storage, err := sqlitestore.Open(t.Context(), dir, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{})
	x, err := terrarium.New(t.Context(), terrarium.Options{Storage: heldStorage{storage, free}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Apply(t.Context(), "testdata/count.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := send(t, x, "lines", "INFO kept"); err != nil {
		t.Fatal(err)
	}
	// On a busy machine, creatures may still be stopping when the first deadline ends.
	for bound := 50 * time.Millisecond; bound < time.Minute; bound *= 4 {
		soon, cancel := context.WithTimeout(t.Context(), bound)
		err = x.Close(soon)
		cancel()
		if err == nil || strings.Contains(err.Error(), "store of the session") {
			break
		}
	}
	if abi.CodeOf(err) != abi.Deadline || !errors.Is(err, engine.ErrLeftOpen) || !strings.Contains(err.Error(), "store of the session") {
		t.Errorf("it answers %v", err)
	}
	close(free)
	if err := x.Close(context.Background()); err != nil {
		t.Errorf("a later one answers %v", err)
	}
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
	x = opened(t, terrarium.Options{Dir: dir})
	if _, err := x.Resume(t.Context(), terrarium.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, x, "counts"); got != "1" {
		t.Errorf("it has counted %s", got)
	}
}

// Two runs with the same seed and the same movements of the clock give the same events.
func TestManualClock(t *testing.T) {
	h, err := host.New(t.Context(), host.Options{}) // so that the module is compiled once
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(context.Background()) }()
	run := func() (out []string) {
		seed := uint64(7)
		clock := terrarium.NewManualClock(time.Unix(1000, 0))
		x := opened(t, terrarium.Options{Clock: clock, Seed: &seed, Workers: 1, Host: h})
		defer closed(t, x)
		sub := x.Subscribe(terrarium.Filter{}, 0)
		files := fstest.MapFS{
			"a.js": {Data: []byte("export default { message(turn) { turn.setTimer('again', {delayMs: 45000}); }, timer(turn) { turn.send('out', `${turn.now}`); } }")},
			"a.hcl": {Data: []byte(`
channel "lines" {}
channel "out" {}
creature "waits" {
  module = "builtin:js"
  config = { script = file("a.js") }
  listen = [channel.lines]
  send   = [channel.out]
}`)},
		}
		if _, err := x.ApplyFS(t.Context(), files, ".", terrarium.RecipeOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := x.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := send(t, x, "lines", "INFO"); err != nil {
				t.Fatal(err)
			}
			if err := x.Advance(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if got := clock.Now(); !got.Equal(time.Unix(1180, 0)) {
			t.Errorf("it is %v", got)
		}
		sub.Close()
		for seen := range sub.All(t.Context()) {
			out = append(out, fmt.Sprintf("%d %s %s", seen.Event.Time, seen.Event.Kind, seen.Event.Payload))
		}
		return out
	}
	first, second := run(), run()
	if all := strings.Join(first, "\n"); !strings.Contains(all, "1045") || all != strings.Join(second, "\n") {
		t.Errorf("one run gives\n%s\nand another\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
	if err := opened(t, terrarium.Options{}).Advance(t.Context(), time.Second); abi.CodeOf(err) != abi.Unsupported {
		t.Errorf("without such a clock it answers %v", err)
	}
}

// A program of an engine, a host, recipes and shipped creatures links no SQLite and no C.
func TestWithoutSQLite(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./engine", "./host", "./recipes", "./plugins")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := "\n" + string(out)
	if !strings.Contains(deps, "terrarium/engine\n") || strings.Contains(deps, "sqlite") || strings.Contains(deps, "\nruntime/cgo\n") && strings.Contains(deps, "mattn") {
		t.Errorf("it needs\n%s", out)
	}
}

func TestMetrics(t *testing.T) {
	x := opened(t, terrarium.Options{})
	if _, err := x.Apply(t.Context(), "testdata/count.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := send(t, x, "lines", "INFO"); err != nil {
			t.Fatal(err)
		}
	}
	figures, err := x.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range figures {
		if _, twice := got[m.Name]; twice || m.Help == "" || m.Counter != (strings.HasSuffix(m.Name, "_total") || m.Name == "terrarium_failed_policies") {
			t.Errorf("a figure is %+v", m)
		}
		if got[m.Name] = m.Value; m.Labels != nil && (m.Labels["name"] != "counts" || m.Labels["deployment"] != "count") {
			t.Errorf("the labels of %s are %v", m.Name, m.Labels)
		}
	}
	for name, want := range map[string]float64{
		"terrarium_graphs": 1, "terrarium_creatures": 1, "terrarium_turns_total": 4, "terrarium_sent_total": 1, "terrarium_running": 1,
		"terrarium_pending_messages": 0, "terrarium_instance_starts_total": 1, "terrarium_failures_total": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v instead of %v", name, value, want)
		}
	}
	if got["terrarium_fuel_total"] == 0 || got["terrarium_memory_bytes"] == 0 {
		t.Errorf("the figures are %v", got)
	}
	closed(t, x)
	if figures, err := x.Metrics(); err == nil && len(figures) == 0 {
		t.Error("a closed one has no figures and no error")
	}
}

// Policies are isolated when a session is resumed, as when its recipe is applied.
func TestIsolationOfResume(t *testing.T) {
	files := fstest.MapFS{"a.hcl": {Data: []byte(`
creature "echo" { module = "builtin:echo" }
policy "spawn" "any" { run = "(event) => undefined" }
`)}}
	dir := t.TempDir()
	x := opened(t, terrarium.Options{Dir: dir, FS: files})
	if _, err := x.Apply(t.Context(), "fs:/a.hcl", terrarium.RecipeOptions{}); err != nil {
		t.Fatal(err)
	}
	closed(t, x)
	x = opened(t, terrarium.Options{Dir: dir, FS: files})
	all := terrarium.RecipeOptions{Isolation: "all"} // without a process for them
	_, applied := x.Apply(t.Context(), "fs:/a.hcl", all)
	_, resumed := x.Resume(t.Context(), terrarium.ResumeOptions{RecipeOptions: all})
	if applied == nil || resumed == nil || applied.Error() != resumed.Error() {
		t.Errorf("applying answers %v, and resuming %v", applied, resumed)
	}
}
