package connector

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// deaf is a connector that ignores the end of its context.
type deaf struct {
	free   chan struct{}
	port   chan Port
	result chan error
}

func (*deaf) Reaches() string { return "nothing" }

func (*deaf) Endless() bool { return true }

func (d *deaf) Run(_ context.Context, p Port) error {
	d.port <- p
	<-d.free
	_, err := p.Send(context.Background(), Message{})
	d.result <- err
	return nil
}

// noChannel counts how often it is closed.
type noChannel struct{ closed chan struct{} }

func (noChannel) Send(context.Context, Message) (Receipt, error) {
	return nil, errors.New("a message is sent")
}
func (noChannel) Producers() (map[string]uint64, error)  { return nil, nil }
func (noChannel) Next(context.Context) (Delivery, error) { return Delivery{}, errors.New("nothing") }
func (noChannel) Ack(uint64)                             {}
func (noChannel) Drained(context.Context) error          { return nil }
func (c noChannel) Close()                               { c.closed <- struct{}{} }

// TestDeafConnectorIsAbandoned uses a connector that does not end: neither a changed
// recipe nor closing waits long for it, and it can no longer send.
func TestDeafConnectorIsAbandoned(t *testing.T) {
	r := NewRunner(NewManual(time.Now), slog.New(slog.DiscardHandler))
	r.grace = 10 * time.Millisecond
	d := &deaf{make(chan struct{}), make(chan Port, 1), make(chan error, 1)}
	closed := make(chan struct{}, 2)
	r.Set("r", []Declared{{Direction: Source, Name: "deaf", Deployment: "r", Opened: Opened{Connector: d}, Open: func() (Channel, error) { return noChannel{closed}, nil }}})
	p := <-d.port
	p.Working()
	r.Set("r", nil)
	<-closed
	if s := r.Status(); len(s) != 1 || s[0].State != Abandoned || s[0].Remedy == "" {
		t.Errorf("the status is %+v", s)
	}
	p.Working() // which changes nothing
	r.Close()
	if s := r.Status(); len(s) != 1 || s[0].State != Abandoned {
		t.Errorf("after closing, the status is %+v", s)
	}
	close(d.free)
	if err := <-d.result; !errors.Is(err, errAbandoned) {
		t.Errorf("an abandoned connector sends with the error %v", err)
	}
	for len(r.Status()) > 0 {
		time.Sleep(time.Millisecond)
	}
}
