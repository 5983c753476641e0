package engine_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

const mib = 1 << 20

// newWatched starts an engine that measures the heap in every turn. Instances are kept between
// turns, because otherwise they hold nothing that could be found.
func newWatched(t *testing.T, h *fakeHost, log *safeBuffer, limit int64) *world {
	e, err := engine.New(t.Context(), engine.Options{
		Host: h, Clock: &tickingClock{}, Workers: 1, UnaccountedMemory: limit, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{e, t, h}
	t.Cleanup(w.close)
	return w
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) count(s string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), s)
}

func (w *world) starts(c journal.CreatureID) uint64 {
	w.t.Helper()
	graphs, err := w.Status("")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range graphs {
		for _, s := range g.Creatures {
			if s.ID == c {
				return s.InstanceStarts
			}
		}
	}
	w.t.Fatalf("there is no creature %s", c)
	return 0
}

// An instance that makes the process hold memory is replaced, which frees the memory, and the
// log reports it. A neighbour that runs as often loses at most one instance.
func TestAnInstanceThatHoldsTooMuchIsReplaced(t *testing.T) {
	const limit, leak, rounds = 16 * mib, mib, 120
	h := newFakeHost()
	h.leaks = map[string]int{"leaky": leak}
	h.on("leaky", func(abi.Turn, abi.Kind) error { return nil })
	log := &safeBuffer{}
	w := newWatched(t, h, log, limit)
	innocent, guilty := w.add("innocent", "sink"), w.add("guilty", "leaky")
	toInnocent, toGuilty := w.connect(innocent, innocent, "a"), w.connect(guilty, guilty, "b")
	sub := w.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventLog}}, 1000)
	defer sub.Close()
	var most int64
	for range rounds {
		w.send(toInnocent, "x")
		w.send(toGuilty, "x")
		w.wait()
		runtime.GC()
		most = max(most, h.held.Load())
	}
	if n := w.starts(guilty); n < 3 {
		t.Errorf("the instance that leaks was started %d times in %d rounds", n, rounds)
	}
	if n := w.starts(innocent); n > 2 {
		t.Errorf("the instance that does not leak was started %d times", n)
	}
	if most > 4*limit {
		t.Errorf("up to %d bytes were held; the limit is %d", most, int64(limit))
	}
	if w.UnaccountedBytes() <= 0 {
		t.Error("the engine reports no unaccounted memory")
	}
	if log.count("an instance that held unaccounted memory was replaced") == 0 {
		t.Fatal("the log does not report that an instance was replaced")
	}
	ob, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ob.Event.Creature != guilty || !strings.Contains(string(ob.Event.Payload), "beyond what is accounted") {
		t.Errorf("the first log line is %s by %s, want one by %s about memory", ob.Event.Payload, ob.Event.Creature, guilty)
	}
}

// When the process grows for another reason, the instances of running creatures are replaced,
// but not often. The log reports growth that no instance explains.
func TestGrowthThatNoInstanceHoldsIsOnlyTold(t *testing.T) {
	log := &safeBuffer{}
	w := newWatched(t, newFakeHost(), log, 16*mib)
	var cycle, live atomic.Int64
	w.GaugeHeap(engine.HeapGauge{
		LiveNow:    func() (int64, uint64) { return live.Add(mib / 4), uint64(cycle.Add(1)) },
		CollectNow: func() {},
	})
	a, b := w.add("a", "sink"), w.add("b", "sink")
	toA, toB := w.connect(a, a, "a"), w.connect(b, b, "b")
	for range 200 {
		w.send(toA, "x")
		w.send(toB, "x")
		w.wait()
	}
	looks := cycle.Load()
	for _, c := range []journal.CreatureID{a, b} {
		if n := int64(w.starts(c)); n < 2 || n > 2+looks/64 {
			t.Errorf("%s had %d instances in %d measurements", c, n, looks)
		}
	}
	if n := log.count("memory that is not accounted to creatures"); n == 0 {
		t.Error("the log does not report memory that is not accounted")
	}
	if n := log.count("an instance that held unaccounted memory was replaced"); n != 0 {
		t.Errorf("the log says that an instance was replaced %d times, want never", n)
	}
}

// State and mailboxes are accounted, and so is a linear memory that the host reports as
// on the heap.
func TestWhatIsAccountedIsNotCountedAgain(t *testing.T) {
	w := newWatched(t, newFakeHost(), &safeBuffer{}, 16*mib)
	var cycle atomic.Int64
	w.GaugeHeap(engine.HeapGauge{
		LiveNow: func() (int64, uint64) { return 10 * mib, uint64(cycle.Add(1)) }, CollectNow: func() {},
	})
	w.host.on("store", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		return codeErr(t, t.StateSet([]byte("k"), make([]byte, mib)))
	})
	c, stopped := w.add("c", "store"), w.add("stopped", "sink")
	in, waits := w.connect(c, c, "in"), w.connect(stopped, stopped, "waits")
	w.send(in, "x")
	w.send(in, "x")
	w.wait()
	before := w.UnaccountedBytes()
	w.change(topology.SetStopped{ID: stopped, Stopped: true})
	w.send(waits, strings.Repeat("x", mib))
	w.send(in, "x")
	w.wait()
	if after := w.UnaccountedBytes(); before-after < mib || before >= 10*mib-mib {
		t.Errorf("%d bytes are unaccounted, and %d after 1 MiB more waits in a mailbox", before, after)
	}
}
