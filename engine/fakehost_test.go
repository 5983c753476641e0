package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed47132306/terrarium/abi"
)

// behaviour is a creature written in Go: what creature_handle does.
type behaviour func(t abi.Turn, kind abi.Kind) error

// contextual is a behaviour that notices when the engine stops waiting.
type contextual func(ctx context.Context, t abi.Turn, kind abi.Kind) error

// fakeHost runs behaviours in place of Wasm. A module's bytes are the name of its
// behaviour.
type fakeHost struct {
	mu         sync.Mutex
	behaviours map[string]behaviour
	contextual map[string]contextual
	inits      map[string]behaviour
	exports    map[string][]string // functions, sorted
	instances  int
	live       int
	modules    int   // open references
	fuel       int64 // fuel that a turn uses, plus one; zero: not counted
	compiled   int
	leaks      map[string]int // bytes by which an instance grows with each turn
	held       atomic.Int64   // bytes held by all instances together
	closed     chan struct{}  // holds a token after an instance was closed
}

func newFakeHost() *fakeHost {
	h := &fakeHost{behaviours: map[string]behaviour{}, contextual: map[string]contextual{}, inits: map[string]behaviour{}, exports: map[string][]string{}, closed: make(chan struct{}, 1)}
	h.on("sink", func(abi.Turn, abi.Kind) error { return nil })
	h.on("relay", func(t abi.Turn, kind abi.Kind) error {
		if kind == abi.KindMessage {
			payload, _ := t.Source(abi.SourcePayload)
			headers, _ := t.Source(abi.SourceHeaders)
			return status(t, t.Send(abi.AllChannels, payload, headers))
		}
		return nil
	})
	h.on("count", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		n := 0
		if old, code := t.StateGet([]byte("n")); code == abi.OK {
			fmt.Sscan(string(old), &n)
		}
		payload, _ := t.Source(abi.SourcePayload)
		if strings.Contains(string(payload), "trap") {
			t.Log(abi.LevelError, []byte("going to trap"))
			t.Send(abi.AllChannels, payload, nil)
			t.StateSet([]byte("n"), []byte("broken"))
			return &abi.Error{Code: abi.Trapped, Message: "unreachable"}
		}
		t.StateSet([]byte("n"), []byte(fmt.Sprint(n+1)))
		t.Output(payload)
		return nil
	})
	// record keeps the messages it receives in its state, in order.
	h.on("record", func(t abi.Turn, kind abi.Kind) error {
		if kind != abi.KindMessage {
			return nil
		}
		payload, _ := t.Source(abi.SourcePayload)
		entry := string(payload)
		channel, _ := t.Source(abi.SourceChannel)
		entry = string(channel) + ":" + entry
		old, _ := t.StateGet([]byte("heard"))
		return codeErr(t, t.StateSet([]byte("heard"), []byte(string(old)+entry+"\n")))
	})
	return h
}

func (h *fakeHost) on(name string, b behaviour) { h.behaviours[name] = b }

func (h *fakeHost) onContext(name string, b contextual) {
	h.contextual[name] = b
	h.on(name, func(t abi.Turn, kind abi.Kind) error { return b(context.Background(), t, kind) })
}

func status(t abi.Turn, s int32) error { return codeErr(t, abi.CodeOfStatus(s)) }

func codeErr(t abi.Turn, c abi.Code) error {
	if c == abi.OK {
		return nil
	}
	return &abi.Error{Code: c, Message: t.LastError()}
}

func (h *fakeHost) Compile(_ context.Context, wasm []byte) (abi.Module, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := string(wasm)
	b := h.behaviours[name]
	if b == nil {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "no behaviour " + name}
	}
	h.modules++
	h.compiled++
	return &fakeModule{h: h, b: b, c: h.contextual[name], init: h.inits[name], leak: h.leaks[name], info: abi.ModuleInfo{SHA256: "sha-of-" + name, Exports: h.exports[name]}}, nil
}

func (h *fakeHost) Close(context.Context) error { return nil }

type fakeModule struct {
	h       *fakeHost
	b, init behaviour
	c       contextual
	info    abi.ModuleInfo
	leak    int
	closed  bool
}

func (m *fakeModule) Info() *abi.ModuleInfo { return &m.info }

func (m *fakeModule) Close(context.Context) error {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	if !m.closed {
		m.closed = true
		m.h.modules--
	}
	return nil
}

func (m *fakeModule) Instantiate(_ context.Context, _ *abi.Limits, init abi.Turn) (abi.Instance, error) {
	if m.init != nil {
		if err := m.init(init, 0); err != nil {
			return nil, err
		}
	}
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.h.instances++
	m.h.live++
	return &fakeInstance{m: m}, nil
}

// open is how many instances are open.
func (h *fakeHost) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live
}

// started is how many instances have been started.
func (h *fakeHost) started() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.instances
}

// openModules is how many modules are open.
func (h *fakeHost) openModules() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.modules
}

type fakeInstance struct {
	m      *fakeModule
	broken bool
	closed bool
	busy   bool
	held   [][]byte
}

func (i *fakeInstance) Handle(ctx context.Context, t abi.Turn, kind abi.Kind, _ int) error {
	if i.broken || i.closed || i.busy {
		return errors.New("misused instance")
	}
	i.busy = true
	if i.m.leak > 0 {
		i.held = append(i.held, make([]byte, i.m.leak))
		i.m.h.held.Add(int64(i.m.leak))
	}
	var err error
	if i.m.c != nil {
		err = i.m.c(ctx, t, kind)
	} else {
		err = i.m.b(t, kind)
	}
	i.busy = false
	i.broken = err != nil
	return err
}

func (i *fakeInstance) Stop(context.Context, abi.Turn) error { return nil }
func (i *fakeInstance) MemoryBytes() int64                   { return 0 }
func (i *fakeInstance) FuelUsed() int64                      { return i.m.h.fuel - 1 }

func (i *fakeInstance) Close(context.Context) error {
	if !i.closed {
		i.closed = true
		i.m.h.mu.Lock()
		i.m.h.live--
		i.m.h.held.Add(-int64(len(i.held) * i.m.leak))
		i.m.h.mu.Unlock()
		select {
		case i.m.h.closed <- struct{}{}:
		default:
		}
	}
	return nil
}
