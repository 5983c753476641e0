package policy

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/selflimit"
)

// Serve runs policies for the process at the other end of the pipes, until in ends. The
// command in [Options] calls it. It bounds the memory of the current process, and ends
// the process when a script exceeds the bound.
func Serve(in io.Reader, out io.Writer) error {
	s := &server{in: json.NewDecoder(in), out: json.NewEncoder(out)}
	var m manifest
	if err := s.in.Decode(&m); err != nil {
		return err
	}
	size := 0
	for _, sc := range m.Policies {
		size = max(size, sc.Index+1)
	}
	s.policies, s.pool = make([]*compiled, size), newPool(size)
	for _, sc := range m.Policies {
		c, fault := compile(sc.Policy, sc.Index)
		if fault != nil {
			return fault
		}
		s.policies[sc.Index] = &c
	}
	ready, err := newIsolate(size) // the slowest step, before the first question
	if err != nil {
		return err
	}
	s.release(ready)
	stop := boundMemory(m.Memory)
	defer stop()
	if err := s.out.Encode(reply{}); err != nil {
		return err
	}
	for {
		var q question
		if err := s.in.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := s.out.Encode(s.answer(&q)); err != nil {
			return err
		}
	}
}

type server struct {
	in       *json.Decoder
	out      *json.Encoder
	policies []*compiled
	*pool
}

func (s *server) answer(q *question) reply {
	p := s.policies[q.Index]
	subject := &subject{send: q.Send, event: q.Event}
	*subject.surroundings() = deploy.Surroundings{View: s.graph, Memory: &remoteMemory{s}}
	i, err := s.acquire()
	if err != nil {
		return replyOf(answer{}, p.fault(1, 1, err.Error(), ""))
	}
	a, fault := i.judge(p, subject)
	i.dropEvent()
	if !i.spoilt {
		s.release(i)
	}
	return replyOf(a, fault)
}

// ask requests data from the other process.
func (s *server) ask(what string) (out supply) {
	if s.out.Encode(reply{Needs: what}) != nil || s.in.Decode(&out) != nil {
		return supply{}
	}
	return out
}

func (s *server) graph() *deploy.GraphView {
	if g := s.ask(needsGraph).Graph; g != nil {
		return g
	}
	return &deploy.GraphView{}
}

// remoteMemory reads the memory that the engine's process keeps. New memory is part of
// the answer.
type remoteMemory struct{ *server }

func (m *remoteMemory) Recall(string) []byte    { return m.ask(needsMemory).Memory }
func (m *remoteMemory) Remember(string, []byte) {}

const (
	needsGraph  = "graph"
	needsMemory = "memory"
)

// watchPause is the interval between checks of the memory. A script fills a few megabytes
// in that time.
const watchPause = 5 * time.Millisecond

// reserve is address space that the runtime reserves and does not use.
const reserve = 512 << 20

// exitMemory is the exit code of a process that exceeded its memory.
const exitMemory = 7

// boundMemory ends the process when its heap grows by more than limit bytes. Where
// possible, the operating system bounds it too.
func boundMemory(limit int64) (stop func()) {
	base := heapBytes()
	debug.SetMemoryLimit(base + limit/2) // collect often before the limit is reached
	selflimit.AddressSpace(2*limit + reserve)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchPause)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if heapBytes() > base+limit {
					os.Exit(exitMemory)
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
