package engine_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// backlogSize is how many messages a listener is behind. It is usually small;
// TERRARIUM_BACKLOG sets another number.
func backlogSize(t *testing.T) uint64 {
	text := os.Getenv("TERRARIUM_BACKLOG")
	if text == "" {
		return 30_000
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		t.Fatalf("TERRARIUM_BACKLOG is %q, which is not a number", text)
	}
	return n
}

const (
	backlogWindow  = 256 // deliveries of one mailbox
	backlogPayload = 200 // bytes
	// Each delivery in a window costs its payload, the message around it and its place
	// in the ring. A listener may cost twice that, so that the runtime's size classes
	// do not matter.
	backlogPerWindow = 2 * backlogWindow * (backlogPayload + 300)
	// The rest is the store's queue and batches of statements, and maps of the engine
	// that have grown.
	backlogBeside = 4 << 20
)

// follower is a creature that checks that the numbers it receives rise by one. It
// stops at some of them until it is released.
type follower struct {
	heard atomic.Uint64
	wrong atomic.Uint64 // number of messages out of order
	stops map[uint64]chan struct{}
	there map[uint64]chan struct{} // closed when it has stopped there
}

func newFollower(stops ...uint64) *follower {
	f := &follower{stops: map[uint64]chan struct{}{}, there: map[uint64]chan struct{}{}}
	for _, n := range stops {
		f.stops[n], f.there[n] = make(chan struct{}), make(chan struct{})
	}
	return f
}

func (f *follower) handle(t abi.Turn, kind abi.Kind) error {
	if kind != abi.KindMessage {
		return nil
	}
	payload, _ := t.Source(abi.SourcePayload)
	n := binary.LittleEndian.Uint64(payload)
	if stop := f.stops[n]; stop != nil {
		close(f.there[n])
		<-stop
	}
	if n != f.heard.Load()+1 {
		f.wrong.Add(1)
	}
	f.heard.Store(n)
	return nil
}

func (f *follower) check(t *testing.T, name string, n uint64) {
	t.Helper()
	if f.heard.Load() != n || f.wrong.Load() != 0 {
		t.Errorf("%s ended at message %d of %d, with %d out of order", name, f.heard.Load(), n, f.wrong.Load())
	}
}

// TestAListenerFarBehind has on one channel a fast listener, a listener that hangs in
// its first turn, a stopped listener and an outside reader that does not read. The
// fast listener gets everything while the others have not started. The others cost the
// memory of their windows, and read the rest from the store in order.
func TestAListenerFarBehind(t *testing.T) {
	n := backlogSize(t)
	h := newFakeHost()
	fast, slow, stopped := newFollower(n), newFollower(1, n/2), newFollower(n/2)
	for name, f := range map[string]*follower{"fast": fast, "slow": slow, "stopped": stopped} {
		h.on(name, f.handle)
	}
	s := newSaved(t, engine.Options{Host: h, Durability: journal.Normal, Workers: 2})
	var listeners []journal.CreatureID
	for _, name := range []string{"fast", "slow", "stopped"} {
		listeners = append(listeners, s.add(name, name, func(c *deploy.CreatureSpec) { c.Limits.Mailbox = backlogWindow }))
	}
	in := s.connect(listeners[0], listeners[0], "in")
	for _, c := range listeners[1:] {
		s.change(topology.SetEdge{Creature: c, Channel: in, Direction: journal.Listen, On: true})
	}
	s.change(topology.SetEdge{Creature: listeners[0], Channel: in, Direction: journal.Send})
	s.change(topology.SetStopped{ID: listeners[2], Stopped: true})
	reader := s.read(in, engine.ReaderOptions{Buffer: backlogWindow})
	defer reader.Close()
	s.wait()
	before := heapInUse()
	within := func(when string) {
		t.Helper()
		const limit = 4*backlogPerWindow + backlogBeside
		grown := int64(heapInUse()) - int64(before)
		t.Logf("%s, the heap has grown by %d KiB", when, grown>>10)
		if grown > limit {
			t.Errorf("%s, the heap has grown by %d bytes, more than %d", when, grown, limit)
		}
	}

	var last engine.Sent
	payload := make([]byte, backlogPayload)
	for i := range n {
		binary.LittleEndian.PutUint64(payload, i+1)
		last = s.send(in, string(payload))
	}
	<-slow.there[1]
	<-fast.there[n] // without waiting for the slow listener
	if slow.heard.Load() != 0 || stopped.heard.Load() != 0 {
		t.Errorf("the slow listener and the stopped one have heard up to %d and %d, want 0", slow.heard.Load(), stopped.heard.Load())
	}
	close(fast.stops[n])
	if err := last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pending := reader.Pending(); pending != n {
		t.Errorf("%d messages wait for the reader, want %d", pending, n)
	}
	within(fmt.Sprintf("%d messages behind", n))

	s.change(topology.SetStopped{ID: listeners[2]})
	close(slow.stops[1])
	<-slow.there[n/2]
	<-stopped.there[n/2]
	within("half way")
	close(slow.stops[n/2])
	close(stopped.stops[n/2])
	for i := range n {
		m, err := reader.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint64(m.Payload); got != i+1 {
			t.Fatalf("the reader has read %d after %d", got, i)
		}
	}
	if err := s.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]*follower{"the fast one": fast, "the slow one": slow, "the stopped one": stopped} {
		f.check(t, name, n)
	}
	within("at the end")
}

// heapInUse is the live heap, in whole spans.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second collection frees what pools kept
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
