package mqtt

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"pgregory.net/rapid"
)

// FuzzPacket reads any bytes as a packet, and its content as a message: this must neither
// panic nor keep more memory than a packet may have.
func FuzzPacket(f *testing.F) {
	f.Add([]byte("\x32\x0c\x00\x01a\x00\x01\x05\x03\x00\x02txpq"), true)
	f.Add([]byte("\x30\xff\xff\xff\x7f\x00\x01a"), false)
	f.Fuzz(func(t *testing.T, data []byte, v5 bool) {
		const limit = 100
		p, err := readPacket(bufio.NewReader(bytes.NewReader(data)), limit)
		if err != nil {
			return
		}
		if len(p.body) > max(len(data), headSize) {
			t.Errorf("%d bytes are kept of %d", len(p.body), len(data))
		}
		if m, err := readMessage(&p, v5); err == nil && (!validTopic(m.topic) || len(m.payload) > len(p.body)) {
			t.Errorf("the message is %+v", m)
		}
		c := conn{v5: v5}
		_ = c.disconnected(&link{}, &p)
	})
}

// TestRecent takes messages of a broker that assigns ids in turn, at any time continues
// in another process with what was kept, and asks about messages that may be sent again.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := connectortest.NewPort()
		r, err := newRecent(p)
		if err != nil {
			t.Fatal(err)
		}
		type sent struct {
			id   uint16
			hash uint32
		}
		var all []sent
		id := uint16(rapid.IntRange(1, 1<<16-1).Draw(t, "first id"))
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for range rapid.IntRange(0, 700).Draw(t, "messages") {
				x := sent{id, uint32(id) % 5}
				m := r.mark(x.id, x.hash)
				producer, offset := r.place(m)
				receipt, err := p.Send(t.Context(), connector.Message{Producer: producer, Offset: offset})
				if err != nil || receipt.Duplicate() {
					t.Fatalf("%v, or a new message counts as a repetition", err)
				}
				r.add(m)
				all = append(all, x)
				if id++; id == 0 {
					id = 1
				}
			}
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0:
				r.forget()
				all = nil
			case 1:
				if r, err = newRecent(p); err != nil {
					t.Fatal(err)
				}
			}
			for i, x := range all {
				_, repeated := r.repeated(x.id, x.hash)
				if want := len(all)-i <= slots; repeated != want {
					t.Fatalf("message %d of %d: repeated is %v", i, len(all), repeated)
				}
				if _, repeated := r.repeated(x.id, x.hash+1); repeated {
					t.Fatal("another message counts as a repetition")
				}
			}
		}
	})
}

// TestMatches compares topics with filters.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a/+", "a/b", true},
		{"a/+", "a", false},
		{"a/+", "a/b/c", false},
		{"a/#", "a", true},
		{"a/#", "a/b/c", true},
		{"#", "a/b", true},
		{"#", "$SYS/a", false},
		{"$SYS/#", "$SYS/a", true},
		{"+/+", "/a", true},
		{"$share/group/a/+", "a/b", true},
		{"+", "a/b", false},
		{"a/b", "a", false},
	} {
		if got := matches(c.filter, c.topic); got != c.want || !validFilter(c.filter) {
			t.Errorf("%s matches %s: %v", c.filter, c.topic, got)
		}
	}
}

// BenchmarkIntake measures the work of a source for a message of 100 bytes with QoS 1,
// without the session: reading it, finding out whether it was taken, and acknowledging
// it.
func BenchmarkIntake(b *testing.B) {
	var o, body output
	body.text("sensors/attic/temperature")
	body.uint16(1)
	body.length(0)
	o.packet(typePublish, 2, body.b, bytes.Repeat([]byte("x"), 100))
	r := &recent{prefix: "source.test.it:packet:"}
	r.clear()
	in := bytes.NewReader(o.b)
	reader := bufio.NewReader(in)
	b.ReportAllocs()
	for i := range b.N {
		in.Reset(o.b)
		reader.Reset(in)
		p, err := readPacket(reader, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		m, err := readMessage(&p, true)
		if err != nil {
			b.Fatal(err)
		}
		mark := r.mark(uint16(i), contentHash(&m))
		if name, _ := r.place(mark); name == "" {
			b.Fatal(fmt.Sprint("no producer for ", i))
		}
		r.add(mark)
	}
}
