package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/serve"
)

// subscribers connects readers of the stream of events. slow ones read nothing. The
// returned function ends them, and returns how often one of the fast readers missed events.
func (w *world) subscribers(fast, slow int) (stop func() (missed int64)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var missed atomic.Int64
	for i := range fast + slow {
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			w.t.Fatal(err)
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", readToken); err != nil {
			w.t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		for { // until the head of the stream has arrived, so that the subscription exists
			line, err := r.ReadString('\n')
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.HasPrefix(line, "retry:") {
				break
			}
		}
		if i < fast {
			all.Go(func() {
				for lines := bufio.NewScanner(r); lines.Scan(); {
					if bytes.HasPrefix(lines.Bytes(), []byte("event: lagged")) {
						missed.Add(1)
					}
				}
			})
		}
	}
	return func() int64 {
		cancel()
		all.Wait()
		return missed.Load()
	}
}

// BenchmarkTurnsWithSubscribers measures turns at a rate of 10,000 events a second, with 50
// subscribers, of whom 10 are slow, and without: how many turns there are in a second, how long
// a message takes from being sent until its turn has ended, and how often one of the fast
// subscribers missed events. The subscribers' side runs in the same process. A subscription
// within the process measures the turns in both cases.
func BenchmarkTurnsWithSubscribers(b *testing.B) {
	for _, c := range []struct{ fast, slow int }{{0, 0}, {40, 10}} {
		b.Run(fmt.Sprintf("%d+%d", c.fast, c.slow), func(b *testing.B) {
			w := start(b, serve.Options{})
			w.populate()
			stop := w.subscribers(c.fast, c.slow)
			defer stop()
			a, err := w.tr.FindChannel("", "lines")
			if err != nil {
				b.Fatal(err)
			}
			sub := w.tr.Subscribe(engine.Filter{Kinds: []journal.EventKind{journal.EventTurnEnded}}, b.N)
			defer sub.Close()
			const each = 3 // events of a turn: the message, the start and the end
			b.ResetTimer()
			begun := time.Now()
			for i := range b.N {
				due := begun.Add(time.Duration(i) * each * time.Second / 10_000)
				time.Sleep(time.Until(due))
				if _, err := w.tr.Send(b.Context(), a, terrarium.Outgoing{Payload: []byte("x")}); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.tr.WaitIdle(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "turns/s")
			took := make([]time.Duration, b.N)
			for i := range took {
				ob, err := sub.Next(b.Context())
				if err != nil || ob.Event.Kind != journal.EventTurnEnded {
					b.Fatal(ob.Event.Kind, err)
				}
				took[i] = ob.Waited + ob.Took
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[b.N/2].Nanoseconds())/1e3, "µs-p50")
			b.ReportMetric(float64(took[b.N*99/100].Nanoseconds())/1e3, "µs-p99")
			b.ReportMetric(float64(stop()), "missed")
		})
	}
}

// A thousand connections that only wait need less than 50 MB.
func TestIdleConnections(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	before := memory()
	stop := w.subscribers(0, 1000)
	defer stop()
	const most = 50 << 20
	if used := memory() - before; used > most {
		t.Errorf("%d bytes", used)
	}
}

// memory returns how much memory the heap and the stacks take.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Neither connections without a request nor requests that arrive slowly keep others out.
func TestSlowConnections(t *testing.T) {
	w := start(t, serve.Options{})
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range 2200 {
		conn, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Skip(err) // the limit of open files
		}
		conns = append(conns, conn)
		if i%2 == 0 {
			if _, err := io.WriteString(conn, "POST /api/v1/status HTTP/1.1\r\nHost: local"); err != nil {
				break // it was closed already
			}
		}
	}
	w.must("status", "{}")
}

// A reader that is cut off again and again, by itself and by the server, gets every event
// once, if it continues after the id of the last one.
func TestCutOffReaders(t *testing.T) {
	w := start(t, serve.Options{})
	w.populate()
	const total = 400
	var failed atomic.Bool
	var sending sync.WaitGroup
	sending.Go(func() {
		for range total {
			if status, _ := w.do(adminToken, "send", `{"channel":"lines","payload":"x","durable":true}`); status != http.StatusOK {
				failed.Store(true)
			}
		}
	})
	defer sending.Wait()
	after, seen := "start", uint64(0)
	for round := 0; seen < total && !failed.Load(); round++ {
		cut := func() {}
		reader := *w
		if round%2 == 1 { // a server that ends in the middle of the stream
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			h := serve.NewHandler(w.tr, serve.Options{Tokens: []serve.Token{{Secret: readToken, Rights: operations.Rights{Scope: operations.Read}}}})
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- h.Serve(ctx, listener, nil) }()
			reader.addr = listener.Addr().String()
			cut = func() {
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}
		}
		n := 0
		after, seen = reader.follow(t, after, seen, func() bool {
			n++
			if n == 5+round%7 {
				if round%2 == 1 {
					cut()
					cut = func() {}
				}
				return false
			}
			return seen < total
		})
		cut()
	}
	if seen != total {
		t.Errorf("%d of %d", seen, total)
	}
}

// A reader that begins in the past, while messages come in many graphs and others read too,
// gets those of each channel once and in order.
func TestReadersOfThePastAmongOthers(t *testing.T) {
	w := start(t, serve.Options{})
	const graphs, each = 4, 300
	var channels [graphs]terrarium.ChannelID
	for i := range channels {
		name := fmt.Sprintf("a%d", i)
		w.must("add_creature", `{"name":"`+name+`","module":"builtin:echo"}`)
		w.must("add_channel", `{"graph":"`+name+`","name":"lines`+name+`"}`)
		var err error
		if channels[i], err = w.tr.FindChannel("", "lines"+name); err != nil {
			t.Fatal(err)
		}
	}
	defer w.subscribers(2, 0)()
	var sending sync.WaitGroup
	defer sending.Wait()
	for _, ch := range channels {
		sending.Go(func() {
			for range each {
				if _, err := w.tr.Send(context.Background(), ch, terrarium.Outgoing{Payload: []byte("x")}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		seen, total := map[terrarium.ChannelID]uint64{}, 0
		w.stream(readToken, "?after=start&kinds=channel_message", func(ev streamed) bool {
			var r operations.EventRecord
			if err := json.Unmarshal([]byte(ev.data), &r); err != nil {
				t.Fatal(err)
			}
			if seen[r.Channel]++; seen[r.Channel] != r.ChannelSeq {
				t.Fatalf("message %d of %s is the %dth", r.ChannelSeq, r.Channel, seen[r.Channel])
			}
			total++
			return total < graphs*each
		})
	}
}

// follow reads the messages after a cursor, which are numbered without a gap.
func (w *world) follow(t *testing.T, after string, seen uint64, more func() bool) (string, uint64) {
	w.stream(readToken, "?kinds=channel_message&after="+after, func(ev streamed) bool {
		number := numberOf(t, ev.data)
		if number != seen+1 {
			t.Fatalf("message %d comes after %d", number, seen)
		}
		after, seen = ev.id, number
		return seen < 400 && more()
	})
	return after, seen
}
