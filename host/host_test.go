package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host/wasmbin"
)

var update = flag.Bool("update", false, "rewrite golden files and prebuilt modules")

// wat2wasm translates a test module. All features are enabled, because some modules must
// be refused for using one.
func wat2wasm(source, target string) *exec.Cmd {
	args := []string{"--enable-all", "--debug-names", "-o", target, source}
	if strings.HasPrefix(filepath.Base(source), "invalid_") {
		args = append(args, "--no-check")
	}
	return exec.Command("wat2wasm", args...)
}

func TestPrebuiltModulesAreCurrent(t *testing.T) {
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		t.Skip("wat2wasm is not installed (Debian: wabt)")
	}
	var sources []string
	for _, pattern := range []string{"testdata/*.wat", "testdata/refused/*.wat"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	for _, source := range sources {
		prebuilt := strings.TrimSuffix(source, ".wat") + ".wasm"
		target := filepath.Join(t.TempDir(), "module.wasm")
		if *update {
			target = prebuilt
		}
		if out, err := wat2wasm(source, target).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
		want, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(prebuilt)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go test ./host -run Prebuilt -update", prebuilt, err)
		}
	}
}

// withSection appends a custom section to a module.
func withSection(wasm []byte, name, content string) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), content...)
	out := append(slices.Clone(wasm), byte(wasmbin.SectionCustom))
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

type sample struct {
	name string
	wasm []byte
}

// refusals are modules and other files that must be refused.
func refusals(t testing.TB) []sample {
	echo := readModule(t, "echo")
	out := []sample{
		{"empty", nil},
		{"magic only", echo[:4]},
		{"truncated in the preamble", echo[:6]},
		{"truncated in a section", echo[:len(echo)-20]},
		{"truncated in a header", append(slices.Clone(echo), 0, 0x80)},
		{"unknown section", append(slices.Clone(echo), 99, 0)},
		{"section twice", slices.Concat(preamble, []byte{1, 1, 0, 1, 1, 0})},
		{"count too large", slices.Concat(preamble, []byte{1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f})},
		{"number too large", slices.Concat(preamble, []byte{1, 5, 0xff, 0xff, 0xff, 0xff, 0x7f})},
		{"name not UTF-8", slices.Concat(preamble, []byte{0, 2, 1, 0xff})},
		{"section with a rest", slices.Concat(preamble, []byte{5, 4, 1, 0, 1, 9})},
		{"garbage collection", slices.Concat(preamble, []byte{1, 5, 1, 0x5f, 1, 0x7f, 0})},
		{"export of nothing", slices.Concat(preamble, exportOfNothing())},
		{"locals without end", slices.Concat(preamble, []byte{1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 10, 1, 8, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b})},
		{"function body too long", slices.Concat(preamble, []byte{10, 3, 1, 9, 0})},
		{"component", []byte("\x00asm\x0d\x00\x01\x00")},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00")},
		{"WAT", []byte("\n(module\n  (memory 1))\n")},
		{"WAT with a comment", []byte(";; hello\n(module)")},
		{"ELF", []byte("\x7fELF\x02\x01\x01\x00")},
		{"HTML", []byte("<!DOCTYPE html><html>")},
		{"JSON", []byte(`{"name": "x"}`)},
		{"gzip", []byte("\x1f\x8b\x08\x00")},
		{"text", []byte("hello, world")},
		{"too large", bytes.Repeat([]byte{0}, 2<<20)},
		{"manifest not JSON", withSection(echo, abi.ManifestSection, "hello")},
		{"manifest of a later version", withSection(echo, abi.ManifestSection, `{"abi": [2, 3]}`)},
		{"two manifests", withSection(withSection(echo, abi.ManifestSection, `{}`), abi.ManifestSection, `{}`)},
	}
	files, err := filepath.Glob("testdata/refused/*.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sample{strings.TrimSuffix(filepath.Base(file), ".wasm"), wasm})
	}
	return out
}

// exportOfNothing is an export section that names functions and memories which
// do not exist.
func exportOfNothing() []byte {
	var body []byte
	for n, name := range []string{abi.ExportMemory, abi.ExportMarker, abi.ExportHandle} {
		body = append(append(body, byte(len(name))), name...)
		kind := byte(0)
		if n == 0 {
			kind = 2
		}
		body = append(body, kind, 9)
	}
	return slices.Concat([]byte{byte(wasmbin.SectionExport), byte(len(body) + 1), 3}, body)
}

func TestRefusals(t *testing.T) {
	h := newHost(t, Options{MaxModuleBytes: 1 << 20})
	var b strings.Builder
	for _, s := range refusals(t) {
		m, err := h.Compile(t.Context(), s.wasm)
		if err == nil {
			t.Errorf("%s is accepted", s.name)
			m.Close(t.Context())
			continue
		}
		fmt.Fprintf(&b, "# %s\n[%v] %v\n\n", s.name, abi.CodeOf(err), err)
	}
	const golden = "testdata/refusals.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
	if len(h.modules) != 0 {
		t.Errorf("%d refused modules are kept", len(h.modules))
	}
}

func TestInfo(t *testing.T) {
	h := newHost(t, Options{})
	wasm := withSection(readModule(t, "echo"), abi.ManifestSection, `{"name": "echo", "licence": "Apache-2.0"}`)
	want := &abi.ModuleInfo{
		SHA256:    "",
		Size:      int64(len(wasm)),
		Imports:   []abi.Import{{Module: "terrarium_v1", Name: "read"}, {Module: "terrarium_v1", Name: "send"}},
		Exports:   []string{"creature_handle", "terrarium_abi_v1"},
		MemoryMin: abi.PageBytes,
		Manifest:  &abi.Manifest{Name: "echo", ABI: []int{1}, Licence: "Apache-2.0"},
	}
	inspected, err := h.Inspect(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	compiled := compile(t, h, wasm).Info()
	if want := engineOf(t.Context(), Options{}); compiled.Engine != want || inspected.Engine != "" {
		t.Errorf("the engine is %q, want %q; before it is compiled %q", compiled.Engine, want, inspected.Engine)
	}
	inspected.Engine, want.Engine = compiled.Engine, compiled.Engine
	if diff := cmp.Diff(inspected, compiled); diff != "" {
		t.Errorf("Inspect and Compile differ:\n%s", diff)
	}
	if len(compiled.SHA256) != 64 {
		t.Errorf("the hash is %q", compiled.SHA256)
	}
	want.SHA256 = compiled.SHA256
	if diff := cmp.Diff(want, compiled); diff != "" {
		t.Errorf("the description differs (-want +got):\n%s", diff)
	}
	info := compile(t, h, readModule(t, "start_logs")).Info()
	if !info.HasInit || info.HasStop || !info.Initializer {
		t.Errorf("the description is %+v", info)
	}
}

func TestEqualBytesAreCompiledOnce(t *testing.T) {
	h := newHost(t, Options{})
	wasm := readModule(t, "echo")
	modules := make([]abi.Module, 8)
	var wg sync.WaitGroup
	for n := range modules {
		wg.Go(func() {
			m, err := h.Compile(t.Context(), bytes.Clone(wasm))
			if err != nil {
				t.Error(err)
				return
			}
			modules[n] = m
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	first := modules[0].(*Module).compiled
	for _, m := range modules[1:] {
		if m.(*Module).compiled != first {
			t.Error("equal bytes are compiled twice")
		}
	}
	i, err := modules[0].Instantiate(t.Context(), nil, &fakeTurn{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		for range 2 { // closing twice releases one reference
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := modules[0].Instantiate(t.Context(), nil, &fakeTurn{}); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Instantiate of a closed module answers %v", err)
	}
	if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
		t.Errorf("an instance does not outlive its module: %v", err)
	}
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(h.modules) != 0 {
		t.Errorf("%d modules are kept", len(h.modules))
	}
}

func TestClosedHost(t *testing.T) {
	h, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Compile(t.Context(), readModule(t, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Compile(t.Context(), readModule(t, "behave")); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Compile answers %v", err)
	}
	if _, err := m.Instantiate(t.Context(), nil, &fakeTurn{}); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Instantiate answers %v", err)
	}
}

func TestCancelledContext(t *testing.T) {
	h := newHost(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Compile(ctx, readModule(t, "echo")); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Compile answers %v", err)
	}
	if _, err := h.Inspect(ctx, readModule(t, "echo")); abi.CodeOf(err) != abi.Stopped {
		t.Errorf("Inspect answers %v", err)
	}
}

func TestCompilationCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		h := newHost(t, Options{CacheDir: dir})
		i := instantiate(t, compile(t, h, readModule(t, "echo")), nil)
		if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("the cache holds %v (%v)", entries, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{CacheDir: file}); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("New answers %v", err)
	}
}

// TestTheCacheIsRemovedInUse removes the directory of the cache. Modules are compiled
// nevertheless.
func TestTheCacheIsRemovedInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	h := newHost(t, Options{CacheDir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"echo", "behave"} {
		i := instantiate(t, compile(t, h, readModule(t, name)), nil)
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Compile returns for any bytes. A module that it accepts can be instantiated
// or is refused with an error, and behaves the same with and without an image.
func FuzzCompile(f *testing.F) {
	for _, s := range refusals(f) {
		if len(s.wasm) < 1<<16 {
			f.Add(s.wasm)
		}
	}
	for _, name := range []string{"echo", "behave", "script", "script_wasi", "start_logs", "tables"} {
		f.Add(readModule(f, name))
	}
	for _, guest := range []string{"echo", "script", "script_wasi", "behave"} {
		f.Add(withInitializer(f, guest, func(*builder) {}))
	}
	f.Add(busyGuest(f))
	h := imagingHost(f, Options{MaxModuleBytes: 1 << 16})
	limits := &abi.Limits{Memory: 1 << 20, Table: 1000, Deadline: 1_000_000, Calls: 1000}
	steady := &abi.Limits{Memory: 1 << 20, Table: 1000, Deadline: time.Minute, Calls: 1000, Fuel: 200_000}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		info, err := h.Inspect(t.Context(), wasm)
		if err != nil {
			if code := abi.CodeOf(err); code == abi.Internal || code == abi.OK {
				t.Fatalf("Inspect answers %v", err)
			}
			return
		}
		m, err := h.Compile(t.Context(), wasm)
		if err != nil {
			if code := abi.CodeOf(err); code != abi.InvalidArgument && code != abi.Unsupported {
				t.Fatalf("Compile answers %v", err)
			}
			return
		}
		defer m.Close(t.Context())
		info.Engine = m.Info().Engine
		if diff := cmp.Diff(info, m.Info()); diff != "" {
			t.Fatalf("Inspect and Compile differ:\n%s", diff)
		}
		i, err := m.Instantiate(t.Context(), limits, &fakeTurn{})
		if err != nil {
			if abi.CodeOf(err) == abi.Internal {
				t.Fatalf("Instantiate answers %v", err)
			}
			return
		}
		defer i.Close(t.Context())
		if err := i.Handle(t.Context(), &fakeTurn{}, abi.KindMessage, 0); abi.CodeOf(err) == abi.Internal {
			t.Fatalf("Handle answers %v", err)
		}
		compareTwins(t, m, steady, append(messages("hello"), kinds(3, 2, 3)...))
	})
}
