// Package mqtttest runs an MQTT broker in the process of a test.
package mqtttest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Broker is a broker at an address of this machine. Its methods may be called from any
// goroutine.
type Broker struct {
	address string
	secure  *tls.Config
	user    string
	secret  string

	// order is held while a packet is handled: the server locks itself out if a client
	// acknowledges messages while others are published.
	order sync.Mutex

	mu       sync.Mutex // guards the rest
	server   *mochi.Server
	listener net.Listener
	conns    map[net.Conn]chan struct{} // closed when the broker has ended the connection
	tasks    sync.WaitGroup
	served   int
}

// Options of a broker.
type Options struct {
	TLS              *tls.Config // nil: none
	Username, Secret string      // that clients must have; empty: any may connect
	Address          string      // empty: any free port
}

// Start starts a broker. The caller closes it.
func Start(o Options) (*Broker, error) {
	b := &Broker{address: o.Address, secure: o.TLS, user: o.Username, secret: o.Secret, conns: map[net.Conn]chan struct{}{}}
	if b.address == "" {
		b.address = "127.0.0.1:0"
	}
	if err := b.renew(); err != nil {
		return nil, err
	}
	if err := b.Up(); err != nil {
		b.server.Close()
		return nil, err
	}
	return b, nil
}

// renew makes a broker without sessions.
func (b *Broker) renew() error {
	b.server = mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	b.server.Options.Capabilities.MaximumClientWritesPending = 1 << 16
	if b.secret == "" {
		return b.server.AddHook(new(auth.AllowHook), nil)
	}
	return b.server.AddHook(new(auth.Hook), &auth.Options{Ledger: &auth.Ledger{
		Auth: auth.AuthRules{{Username: auth.RString(b.user), Password: auth.RString(b.secret), Allow: true}},
		ACL:  auth.ACLRules{{Filters: auth.Filters{"forbidden/#": auth.Deny}}},
	}})
}

// Address is the host and the port.
func (b *Broker) Address() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.address
}

// Up accepts connections.
func (b *Broker) Up() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	listener, err := net.Listen("tcp", b.address)
	if err != nil {
		return err
	}
	b.listener, b.address = listener, listener.Addr().String()
	server := b.server
	b.tasks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.accepted(server, listener, conn)
		}
	})
	return nil
}

func (b *Broker) accepted(server *mochi.Server, from net.Listener, raw net.Conn) {
	conn := raw
	if b.secure != nil {
		conn = tls.Server(raw, b.secure)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listener != from { // it was closed meanwhile
		raw.Close()
		return
	}
	ended := make(chan struct{})
	b.conns[raw] = ended
	b.served++
	b.tasks.Go(func() {
		in := &ordered{Conn: conn, order: &b.order}
		_ = server.EstablishConnection("tcp", in) // it ends with every connection
		in.leave()
		raw.Close()
		close(ended)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, raw)
	})
}

// ordered is a connection whose packets are handled while nothing else is.
type ordered struct {
	net.Conn
	order *sync.Mutex
	held  bool // used by the goroutine that reads
}

// Read implements [net.Conn].
func (c *ordered) Read(b []byte) (int, error) {
	c.leave()
	n, err := c.Conn.Read(b)
	c.order.Lock()
	c.held = true
	return n, err
}

func (c *ordered) leave() {
	if c.held {
		c.held = false
		c.order.Unlock()
	}
}

// Down ends all connections and takes no more. The sessions stay, as with a broker that keeps
// them on disk.
func (b *Broker) Down() {
	b.mu.Lock()
	if b.listener != nil {
		b.listener.Close()
		b.listener = nil
	}
	b.cut()
	b.mu.Unlock()
	b.tasks.Wait()
}

// Cut ends all connections, and waits until the broker has noticed.
func (b *Broker) Cut() {
	b.mu.Lock()
	list := b.cut()
	b.mu.Unlock()
	for _, ended := range list {
		<-ended
	}
}

func (b *Broker) cut() (list []chan struct{}) {
	for conn, ended := range b.conns {
		conn.Close()
		list = append(list, ended)
	}
	return list
}

// Lose restarts the broker without its sessions.
func (b *Broker) Lose() error {
	b.Down()
	b.mu.Lock()
	b.server.Close()
	err := b.renew()
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.Up()
}

// Served is how many connections were accepted.
func (b *Broker) Served() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

func (b *Broker) current() *mochi.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server
}

// Publish publishes a message.
func (b *Broker) Publish(topic, payload string, qos byte, retain bool) error {
	server := b.current()
	b.order.Lock()
	defer b.order.Unlock()
	return server.Publish(topic, []byte(payload), retain, qos)
}

// Message is a message at the broker.
type Message struct {
	Topic, Payload string
	QoS            byte
	Retain         bool
	Properties     map[string]string // user properties
}

// Subscribe calls a function for the messages of topics.
func (b *Broker) Subscribe(filter string, id int, got func(m Message)) error {
	return b.current().Subscribe(filter, id, func(_ *mochi.Client, _ packets.Subscription, pk packets.Packet) {
		m := Message{Topic: pk.TopicName, Payload: string(pk.Payload), QoS: pk.FixedHeader.Qos, Retain: pk.FixedHeader.Retain, Properties: map[string]string{}}
		for _, u := range pk.Properties.User {
			m.Properties[u.Key] = u.Val
		}
		got(m)
	})
}

// Subscribed reports whether a client is connected and has a subscription.
func (b *Broker) Subscribed(client, filter string) bool {
	c, ok := b.current().Clients.Get(client)
	if !ok || c.Closed() {
		return false
	}
	_, ok = c.State.Subscriptions.Get(filter)
	return ok
}

// Close ends the broker.
func (b *Broker) Close() error {
	b.Down()
	if err := b.current().Close(); err != nil {
		return fmt.Errorf("closing the broker: %w", err)
	}
	return nil
}
