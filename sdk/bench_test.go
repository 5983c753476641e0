//go:build unix

package sdk_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/sdk/internal/kits"
)

// BenchmarkKits measures what the language of a creature costs: shout of every kit whose
// toolchain is installed, and the creature in WAT of the first tutorial, which does the
// same without a kit.
//
//   - turn: a message of some forty bytes, on the host alone
//   - first: from the bytes of the module to an instance that can handle messages
//   - cached: the same in a process that finds the compiled code in the cache
//   - another: one more instance of a module that is in memory
//   - memory: private memory of an instance that has handled a message, without what all
//     instances of the module share
//   - size: the module
//
// The times are processor time, which other work on the machine affects least.
func BenchmarkKits(b *testing.B) {
	b.Run("WAT", func(b *testing.B) { measure(b, wat(b)) })
	for _, k := range kits.All {
		b.Run(k.Language, func(b *testing.B) {
			if missing := k.Missing(root); missing != "" {
				b.Skipf("%s is missing", missing)
			}
			dir, err := k.Modules(b.Context(), root)
			must(b, err)
			measure(b, read(b, filepath.Join(dir, "shout.wasm")))
		})
	}
}

func measure(b *testing.B, wasm []byte) {
	b.Run("turn", func(b *testing.B) { measureTurn(b, wasm) })
	b.Run("first", func(b *testing.B) { measureStart(b, wasm, host.Options{}) })
	b.Run("cached", func(b *testing.B) {
		dir := b.TempDir()
		o := host.Options{CacheDir: filepath.Join(dir, "cache"), CacheKey: filepath.Join(dir, "key")}
		must(b, start(b, newHost(b, o), wasm).Close(b.Context()))
		measureStart(b, wasm, o)
	})
	b.Run("another", func(b *testing.B) {
		m := compile(b, newHost(b, host.Options{}), wasm)
		must(b, instantiate(b, m).Close(b.Context())) // what it leaves to all others is there
		since := processorTime(b)
		for b.Loop() {
			must(b, instantiate(b, m).Close(b.Context()))
		}
		report(b, processorTime(b)-since)
	})
	b.Run("memory", func(b *testing.B) { measureMemory(b, wasm) })
	b.Run("size", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(len(wasm)), "B/module")
	})
}

func measureTurn(b *testing.B, wasm []byte) {
	i := start(b, newHost(b, host.Options{}), wasm)
	var turn oneMessage
	since := processorTime(b)
	for b.Loop() {
		must(b, i.Handle(b.Context(), &turn, abi.KindMessage, len(message)))
	}
	report(b, processorTime(b)-since)
	if turn.sent != strings.ToUpper(message) {
		b.Fatalf("sent %q", turn.sent)
	}
	must(b, i.Close(b.Context()))
}

// measureStart starts a module in a new host each time. Making the host, which is there
// before a user adds a creature, does not count.
func measureStart(b *testing.B, wasm []byte, o host.Options) {
	var spent time.Duration
	for b.Loop() {
		h, err := host.New(b.Context(), o)
		must(b, err)
		since := processorTime(b)
		i := start(b, h, wasm)
		spent += processorTime(b) - since
		must(b, i.Close(b.Context()))
		must(b, h.Close(b.Context()))
	}
	report(b, spent)
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func report(b *testing.B, spent time.Duration) {
	b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
}

// measureMemory reads what the process has in private pages, before and after some
// instances have handled a message.
func measureMemory(b *testing.B, wasm []byte) {
	const count = 50
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("the system does not tell what memory is private")
	}
	m := compile(b, newHost(b, host.Options{}), wasm)
	var turn oneMessage
	run := func() abi.Instance {
		i := instantiate(b, m)
		must(b, i.Handle(b.Context(), &turn, abi.KindMessage, len(message)))
		return i
	}
	must(b, run().Close(b.Context()))
	for b.Loop() {
		before := privateKB(b)
		var all [count]abi.Instance
		for n := range all {
			all[n] = run()
		}
		b.ReportMetric(float64(privateKB(b)-before)/count, "KB/instance")
		for _, i := range all {
			must(b, i.Close(b.Context()))
		}
	}
}

// privateKB returns the kilobytes of the process that no file or shared mapping backs.
func privateKB(b *testing.B) (n int) {
	debug.FreeOSMemory()
	_, after, _ := strings.Cut(string(read(b, "/proc/self/status")), "RssAnon:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		b.Fatal("the system does not tell what memory is private: ", err)
	}
	return n
}

// wat returns the creature of the first tutorial.
func wat(b *testing.B) []byte {
	const page = "../docs/tutorial/first-creature.md"
	if _, err := exec.LookPath("wat2wasm"); err != nil {
		b.Skip("wat2wasm is missing")
	}
	text := regexp.MustCompile("(?s)```wat\n(.*?)```").FindSubmatch(read(b, page))
	if text == nil {
		b.Fatalf("%s has no creature", page)
	}
	source, module := filepath.Join(b.TempDir(), "loud.wat"), filepath.Join(b.TempDir(), "loud.wasm")
	must(b, os.WriteFile(source, text[1], 0o600))
	if out, err := exec.Command("wat2wasm", source, "-o", module).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return read(b, module)
}

const message = "a message of some forty bytes, or so, yes"

var payload = []byte(message)

// oneMessage delivers message, and keeps what the creature sends.
type oneMessage struct {
	abi.Turn // a creature that calls anything else fails its turn
	sent     string
}

func (*oneMessage) Source(s abi.Source) ([]byte, abi.Code) {
	if s == abi.SourcePayload {
		return payload, abi.OK
	}
	return nil, abi.NotFound
}
func (*oneMessage) HasFeature(abi.Feature) bool      { return true }
func (*oneMessage) LastError() string                { return "there is none" }
func (*oneMessage) Config([]byte) ([]byte, abi.Code) { return nil, abi.NotFound }
func (*oneMessage) Channel([]byte) int32             { return 0 }
func (*oneMessage) Log(abi.Level, []byte) abi.Code   { return abi.OK }
func (*oneMessage) Now() int64                       { return 1 }
func (*oneMessage) Random(p []byte)                  { clear(p) }
func (o *oneMessage) Send(_ int32, payload, _ []byte) int32 {
	if o.sent != string(payload) {
		o.sent = string(payload)
	}
	return 1
}

func newHost(b *testing.B, o host.Options) *host.Host {
	h, err := host.New(b.Context(), o)
	must(b, err)
	b.Cleanup(func() { must(b, h.Close(context.WithoutCancel(b.Context()))) })
	return h
}

func compile(b *testing.B, h *host.Host, wasm []byte) abi.Module {
	m, err := h.Compile(b.Context(), wasm)
	must(b, err)
	return m
}

func instantiate(b *testing.B, m abi.Module) abi.Instance {
	i, err := m.Instantiate(b.Context(), nil, &oneMessage{})
	must(b, err)
	return i
}

func start(b *testing.B, h *host.Host, wasm []byte) abi.Instance {
	return instantiate(b, compile(b, h, wasm))
}

func read(b *testing.B, path string) []byte {
	content, err := os.ReadFile(path)
	must(b, err)
	return content
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}
