//go:build unix

package outsidetest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
)

// sender is the least that a source of the kind mqtt takes for a broker, with version 3.1.1
// and QoS 1, so that a benchmark does not measure a broker. It sends messages as fast as
// they are acknowledged, and keeps window of them under way.
type sender struct {
	window  int
	payload []byte
}

// serve sends n messages to the first client, and returns when all are acknowledged.
func (s *sender) serve(from net.Listener, n int) error {
	conn, err := from.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	in, out := bufio.NewReaderSize(conn, 1<<16), bufio.NewWriterSize(conn, 1<<16)
	if _, err := readAll(in, 0x10); err != nil { // CONNECT
		return err
	}
	if _, err := conn.Write([]byte{0x20, 2, 0, 0}); err != nil { // CONNACK
		return err
	}
	subscribe, err := readAll(in, 0x82)
	if err != nil || len(subscribe) < 2 {
		return errors.Join(errors.New("there is no SUBSCRIBE"), err)
	}
	if _, err := conn.Write([]byte{0x90, 3, subscribe[0], subscribe[1], 1}); err != nil { // SUBACK
		return err
	}
	room, ended := make(chan struct{}, s.window), make(chan error, 1)
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := s.write(out, room, n); err != nil {
			ended <- err
			conn.Close()
		}
	})
	defer writing.Wait()
	for range n {
		for {
			kind, err := in.ReadByte()
			if err != nil {
				return err
			}
			if kind == 0xC0 { // PINGREQ
				_, err = io.ReadFull(in, make([]byte, 1))
				if err == nil {
					continue // the answer may come late
				}
			}
			if _, err = io.CopyN(io.Discard, in, 3); err != nil || kind != 0x40 {
				return fmt.Errorf("a packet %#x in place of PUBACK, %w", kind, err)
			}
			break
		}
		<-room
	}
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}

func (s *sender) write(out *bufio.Writer, room chan<- struct{}, n int) error {
	const topic = "home/kitchen/temperature"
	body := 2 + len(topic) + 2 + len(s.payload)
	for i := range n {
		select {
		case room <- struct{}{}:
		default:
			if err := out.Flush(); err != nil {
				return err
			}
			room <- struct{}{}
		}
		head := binary.AppendUvarint([]byte{0x32}, uint64(body))
		head = binary.BigEndian.AppendUint16(head, uint16(len(topic)))
		head = append(head, topic...)
		head = binary.BigEndian.AppendUint16(head, uint16(i%65535+1))
		if _, err := out.Write(append(head, s.payload...)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// readAll reads the rest of a packet whose first byte must be kind.
func readAll(in *bufio.Reader, kind byte) ([]byte, error) {
	first, err := in.ReadByte()
	if err != nil || first != kind {
		return nil, fmt.Errorf("a packet %#x, want %#x; %w", first, kind, err)
	}
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	body := make([]byte, size)
	_, err = io.ReadFull(in, body)
	return body, err
}

// BenchmarkMQTT measures messages of 100 bytes that come in by MQTT, each acknowledged once
// it is durable in a session on disk, and a turn of a creature for each.
func BenchmarkMQTT(b *testing.B) {
	from, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	t, err := terrarium.New(b.Context(), terrarium.Options{Dir: b.TempDir(), Durability: terrarium.Normal})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close(context.Background())
	if _, err := t.Apply(b.Context(), "testdata/sensor.hcl", terrarium.RecipeOptions{Vars: map[string]string{"broker": "mqtt://" + from.Addr().String()}}); err != nil {
		b.Fatal(err)
	}
	s := sender{window: 1000, payload: make([]byte, 100)}
	before := processorTime(b)
	b.ResetTimer()
	if err := s.serve(from, b.N); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/message")
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
