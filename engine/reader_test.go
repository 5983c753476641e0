package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

func (w *world) read(ch journal.ChannelID, o engine.ReaderOptions) *engine.Reader {
	w.t.Helper()
	r, err := w.Read(ch, "out", o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// next reads n messages and acknowledges the last of them, if ack is set.
func (w *world) next(r *engine.Reader, n int, ack bool) []string {
	w.t.Helper()
	var out []string
	var last uint64
	for range n {
		in, err := r.Next(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		out, last = append(out, string(in.Payload)), in.Seq
	}
	if ack {
		r.Ack(last)
	}
	return out
}

func numbers(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func wantStrings(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAReaderGoesOnAfterItsLastAck(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.add("a", "sink")
	in := s.connect(a, a, "in")
	s.send(in, "before")
	r := s.read(in, engine.ReaderOptions{Buffer: 3})
	for i := range 30 {
		s.send(in, fmt.Sprint(i))
	}
	wantStrings(t, s.next(r, 5, false), numbers(0, 5))
	r.Close()

	r = s.read(in, engine.ReaderOptions{Buffer: 3}) // nothing was acknowledged, so it starts over
	wantStrings(t, s.next(r, 10, true), numbers(0, 10))
	wantStrings(t, s.next(r, 3, false), numbers(10, 13))
	r.Close()
	s.reopen()
	r = s.read(in, engine.ReaderOptions{})
	defer func() { r.Close() }()
	wantStrings(t, s.next(r, 5, true), numbers(10, 15))
	// The cursor moves with cuts, and so does the reader.
	other := s.add("other", "sink")
	s.change(topology.SetEdge{Creature: other, Channel: in, Direction: journal.Listen, On: true})
	wantStrings(t, s.next(r, 5, true), numbers(15, 20))
	s.change(topology.SetEdge{Creature: other, Channel: in, Direction: journal.Listen})
	wantStrings(t, s.next(r, 10, false), numbers(20, 30))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.WaitRead(ctx); err == nil {
		t.Error("WaitRead did not wait for the last messages")
	}
	r.Ack(31)
	if err := r.WaitRead(t.Context()); err != nil {
		t.Errorf("WaitRead: %v", err)
	}
	if _, err := s.Read(in, "out", engine.ReaderOptions{}); abi.CodeOf(err) != abi.AlreadyExists {
		t.Errorf("a second reader of that name: %v", err)
	}
	first := s.read2(in, "first", engine.ReaderOptions{FromStart: true})
	defer first.Close()
	wantStrings(t, s.next(first, 2, false), []string{"before", "0"})
}

func (w *world) read2(ch journal.ChannelID, name string, o engine.ReaderOptions) *engine.Reader {
	w.t.Helper()
	r, err := w.Read(ch, name, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// missedOf is the Missed in the error of a reader.
func missedOf(err error) *engine.Missed {
	var m *engine.Missed
	if abi.CodeOf(err) != abi.Unavailable || !errors.As(err, &m) {
		return nil
	}
	return m
}

// wantMissed checks that the next call returns an error with the missed messages.
func (w *world) wantMissed(r *engine.Reader, from, to uint64) {
	w.t.Helper()
	in, err := r.Next(w.t.Context())
	if m := missedOf(err); m == nil || m.From != from || m.To != to || m.Channel == "" {
		w.t.Errorf("Next: %q, %v; want an error that says that %d to %d were missed", in.Payload, err, from, to)
	}
}

// A reader of a graph without a store gets an error for the messages from before it
// existed, once, and continues after them.
func TestAReaderLearnsWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, engine.Options{})
		a := w.add("a", "sink")
		in := w.connect(a, a, "in")
		for i := range 3 {
			w.send(in, fmt.Sprint(i))
		}
		w.wait()
		r := w.read(in, engine.ReaderOptions{FromStart: true})
		w.wantMissed(r, 1, 3)
		r.Close()
		r = w.read(in, engine.ReaderOptions{}) // the reader has not acknowledged the error
		w.wantMissed(r, 1, 3)
		r.Ack(3)
		if err := r.WaitRead(t.Context()); err != nil {
			t.Errorf("WaitRead: %v", err)
		}
		w.send(in, "3")
		wantStrings(t, w.next(r, 1, true), []string{"3"})
		r.Close()
		r = w.read(in, engine.ReaderOptions{FromStart: true})
		w.send(in, "4")
		wantStrings(t, w.next(r, 1, false), []string{"4"})
		r.Close()
		w.send(in, "5")
		r = w.read(in, engine.ReaderOptions{}) // 4 was not acknowledged, and 5 came without a reader
		w.send(in, "6")
		w.wantMissed(r, 5, 6)
		wantStrings(t, w.next(r, 1, false), []string{"6"})
		r.Close()
		late := w.read2(in, "late", engine.ReaderOptions{})
		w.send(in, "7")
		wantStrings(t, w.next(late, 1, true), []string{"7"}) // without FromStart, a reader does not get the earlier messages
		late.Close()
	})
}

func TestAReaderOfARemovedChannelReadsWhatItHad(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a, b := s.add("a", "sink"), s.add("b", "sink")
	in := s.connect(a, b, "in")
	s.connect(a, b, "other")
	r := s.read(in, engine.ReaderOptions{Buffer: 2})
	defer r.Close()
	for i := range 10 {
		s.send(in, fmt.Sprint(i))
	}
	s.change(topology.RemoveChannel{ID: in})
	c := s.add("c", "sink")
	d := s.add("d", "sink")
	e := s.connect(c, d, "more")
	s.change(topology.SetEdge{Creature: s.add("f", "sink"), Channel: e, Direction: journal.Listen, On: true})
	s.connect(c, a, "bridge") // the larger graph absorbs the one that had the channel
	wantStrings(t, s.next(r, 10, true), numbers(0, 10))
	if _, err := r.Next(t.Context()); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("Next: %v, want not_found", err)
	}
}

func TestAReaderLearnsThatItsGraphEnded(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.add("a", "sink")
	in := s.connect(a, a, "in")
	r := s.read(in, engine.ReaderOptions{Buffer: 2})
	defer r.Close()
	for i := range 10 {
		s.send(in, fmt.Sprint(i))
	}
	s.wait()
	s.change(topology.RemoveCreature{ID: a})
	wantStrings(t, s.next(r, 2, false), numbers(0, 2)) // what was in memory
	if _, err := r.Next(t.Context()); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("Next: %v, want not_found", err)
	}
	if n := s.DeadLetterCount(); n != 8 {
		t.Errorf("%d dead letters, want 8", n)
	}
}

func TestASlowReaderHoldsPublishersOfAVolatileGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, engine.Options{})
		a := w.add("a", "sink")
		in := w.connect(a, a, "in")
		r := w.read(in, engine.ReaderOptions{Buffer: 2})
		w.send(in, "0")
		w.send(in, "1")
		sent := make(chan error, 1)
		go func() {
			_, err := w.Send(context.Background(), in, engine.Outgoing{Payload: []byte("2")})
			sent <- err
		}()
		synctest.Wait()
		if len(sent) != 0 {
			t.Error("the publisher did not wait")
		}
		wantStrings(t, w.next(r, 3, true), numbers(0, 3))
		if err := <-sent; err != nil {
			t.Error(err)
		}
		r.Close()
		if _, err := r.Next(t.Context()); abi.CodeOf(err) != abi.Stopped {
			t.Errorf("Next: %v, want stopped", err)
		}
	})
}

func TestAReaderDrainsWhileTheEngineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHost()
		begun, let := h.slow("slow")
		w := newWorld(t, engine.Options{Host: h})
		a, b := w.add("a", "sink"), w.add("b", "slow")
		in := w.connect(a, b, "in")
		r := w.read(in, engine.ReaderOptions{})
		defer r.Close()
		w.send(in, "0")
		<-begun
		w.send(in, "1")
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			w.close()
		}()
		synctest.Wait()
		wantStrings(t, w.next(r, 2, false), numbers(0, 2))
		if _, err := r.Next(t.Context()); abi.CodeOf(err) != abi.Stopped {
			t.Errorf("Next: %v, want stopped", err)
		}
		close(let)
		<-closed
	})
}

func TestAProducerIsNotTakenInTwice(t *testing.T) {
	s := newSaved(t, engine.Options{})
	a := s.add("a", "count")
	in := s.connect(a, a, "in")
	feed := func(offsets ...uint64) (taken int) {
		for _, o := range offsets {
			sent, err := s.Send(t.Context(), in, engine.Outgoing{Producer: "file", Offset: o, Durable: true})
			if err != nil {
				t.Fatal(err)
			}
			if !sent.Duplicate {
				taken++
			}
		}
		return taken
	}
	if n := feed(1, 2, 2, 1, 5); n != 3 {
		t.Errorf("%d messages were accepted, want 3", n)
	}
	other := s.add("other", "sink")
	s.change(topology.SetEdge{Creature: other, Channel: in, Direction: journal.Listen, On: true})
	s.reopen()
	if n := feed(4, 5, 6); n != 1 {
		t.Errorf("%d messages were accepted after the restart, want 1", n)
	}
	s.wait()
	if got := s.state(a, "n"); got != "4" {
		t.Errorf("a counted to %s, want 4", got)
	}
	offsets, err := s.Producers(in)
	if err != nil || offsets["file"] != 6 {
		t.Errorf("producers %v, %v", offsets, err)
	}
	if _, err := s.Send(t.Context(), in, engine.Outgoing{Producer: "file"}); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("a producer without an offset: %v", err)
	}
}
