package mqtt_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/mqtt"
	"github.com/seed47132306/terrarium/connector/mqtt/mqtttest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = time.Minute

func start(t *testing.T, o mqtttest.Options) *mqtttest.Broker {
	t.Helper()
	b, err := mqtttest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func settings(t *testing.T, b *mqtttest.Broker, more map[string]any) json.RawMessage {
	t.Helper()
	all := map[string]any{"broker": "mqtt://" + b.Address(), "client_id": "it"}
	for name, value := range more {
		all[name] = value
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t *testing.T, k connector.Kind, data json.RawMessage) connector.Connector {
	t.Helper()
	c, err := k.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reached waits until the connector has reached the broker once more.
func reached(t *testing.T, p *connectortest.Port, before int) {
	t.Helper()
	await(t, p, func(v connectortest.View) bool { return v.Working > before })
}

// rewound is a port that begins after what was acknowledged.
type rewound interface {
	connector.Port
	Seen() connectortest.View
	Rewind(acked uint64)
}

// run runs a connector as terrarium does: it starts it again after each failure, until
// stop is called.
func run(t *testing.T, c connector.Connector, p rewound) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			p.Rewind(p.Seen().Acked)
			if err := c.Run(ctx, p); err == nil && ctx.Err() == nil {
				t.Error("the connector ends")
				return
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return stop
}

func await(t *testing.T, p *connectortest.Port, until func(connectortest.View) bool) connectortest.View {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	v, err := p.Wait(ctx, until)
	if err != nil {
		t.Fatalf("%v; the port has %d messages, %d of them different; %+v", err, len(v.Sent), distinct(v), v.Refused)
	}
	return v
}

func publish(t *testing.T, b *mqtttest.Broker, topic, payload string, qos byte, retain bool) {
	t.Helper()
	if err := b.Publish(topic, payload, qos, retain); err != nil {
		t.Fatal(err)
	}
}

var versions = []string{"5", "3.1.1"}

// TestSource takes messages of all qualities of service, in order and once.
func TestSource(t *testing.T) {
	for _, version := range versions {
		for qos := range byte(3) {
			t.Run(fmt.Sprint(version, " ", qos), func(t *testing.T) {
				b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
				publish(t, b, "a/kept", "retained", qos, true)
				run(t, open(t, mqtt.Source{}, settings(t, b, map[string]any{"version": version, "topics": []string{"a/#"}, "qos": qos, "max_in_flight": 1000})), p)
				v := await(t, p, func(v connectortest.View) bool { return len(v.Sent) == 1 })
				if h := v.Sent[0].Headers; h["topic"] != "a/kept" || h["retained"] != "true" {
					t.Errorf("the headers are %v", h)
				}
				const n = 500
				for i := range n {
					publish(t, b, "a/b", fmt.Sprint(i), qos, false)
				}
				v = await(t, p, func(v connectortest.View) bool { return len(v.Sent) == n+1 })
				for i, payload := range v.Payloads()[1:] {
					if payload != fmt.Sprint(i) {
						t.Fatalf("the message %d is %q", i, payload)
					}
				}
				if v.Working == 0 || v.Repeated != 0 || len(v.Refused) != 0 || v.Sent[1].Headers["retained"] != "" {
					t.Errorf("working %v, repeated %d, refused %v", v.Working, v.Repeated, v.Refused)
				}
			})
		}
	}
}

// TestCuts loses the connection many times while messages are under way, and twice also
// what the source remembers in memory. Each message is taken once. Nothing is published
// while the source connects, and no connection is cut while it is being made, because
// this broker would lose messages.
func TestCuts(t *testing.T) {
	for _, version := range versions {
		for _, qos := range []byte{1, 2} {
			t.Run(fmt.Sprint(version, " ", qos), func(t *testing.T) {
				b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
				data := settings(t, b, map[string]any{"version": version, "topics": []string{"a"}, "qos": qos, "max_in_flight": 1000})
				stop := run(t, open(t, mqtt.Source{}, data), p)
				reached(t, p, 0)
				n, repeated, content := 0, 0, contents("a", qos)
				for round := range 20 {
					for range 40 {
						publish(t, b, "a", content(), qos, false)
						n++
					}
					before := p.Seen().Working
					b.Cut()
					if round%7 == 6 { // another process
						reached(t, p, before)
						stop()
						b.Cut()
						before = p.Seen().Working
						stop = run(t, open(t, mqtt.Source{}, data), p)
					}
					reached(t, p, before)
					v := await(t, p, func(v connectortest.View) bool { return distinct(v) == n })
					if repeated = v.Repeated; len(v.Sent) != n {
						t.Fatalf("in round %d, %d messages came in %d, %d were left out", round, n, len(v.Sent), v.Repeated)
					}
				}
				t.Logf("%d repetitions were left out", repeated)
			})
		}
	}
}

// contents returns a function that returns a different payload at each call. Their hashes differ
// too: of two messages with one id and one hash, a source cannot say which one the broker repeats,
// and this broker uses the lowest ids again after each connection.
func contents(topic string, qos byte) func() string {
	n, seen := 0, map[uint32]bool{}
	return func() string {
		for {
			payload := fmt.Sprint(n)
			n++
			if hash := mqtt.HashOf(topic, payload, qos); !seen[hash] {
				seen[hash] = true
				return payload
			}
		}
	}
}

func distinct(v connectortest.View) int {
	seen := map[string]bool{}
	for _, m := range v.Payloads() {
		seen[m] = true
	}
	return len(seen)
}

// TestBrokerRestarts begins before the broker is there, and continues after it has lost its
// sessions.
func TestBrokerRestarts(t *testing.T) {
	b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
	b.Down()
	c := open(t, mqtt.Source{}, settings(t, b, map[string]any{"topics": []string{"a"}}))
	if err := c.Run(t.Context(), p); abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "cannot reach") {
		t.Errorf("without a broker: %v", err)
	}
	run(t, c, p)
	if err := b.Up(); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for since := time.Now(); !b.Subscribed("it", "a"); time.Sleep(time.Millisecond) {
			if time.Since(since) > deadline {
				t.Fatal("the source does not subscribe")
			}
		}
		publish(t, b, "a", "the same", 1, false)
		await(t, p, func(v connectortest.View) bool { return len(v.Sent) == round+1 })
		if err := b.Lose(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyProperty publishes through a sink, which gives each message an id. The source
// takes each id once, although the sink delivers all messages again.
func TestKeyProperty(t *testing.T) {
	b, from, to := start(t, mqtttest.Options{}), connectortest.NewPort(), connectortest.NewPort()
	source := settings(t, b, map[string]any{"topics": []string{"a"}, "key_property": mqtt.IDProperty, "properties": []string{mqtt.IDProperty}})
	stop := run(t, open(t, mqtt.Source{}, source), to)
	await(t, to, func(v connectortest.View) bool { return v.Working > 0 })
	sink := settings(t, b, map[string]any{"client_id": "sink", "topic": "a"})
	end := run(t, open(t, mqtt.Sink{}, sink), from)
	from.Deliver("one", "two", "two")
	await(t, from, func(v connectortest.View) bool { return v.Acked == 3 })
	v := await(t, to, func(v connectortest.View) bool { return len(v.Sent) == 3 })
	if v.Sent[2].Headers[mqtt.IDProperty] != "origin#3" {
		t.Errorf("the headers are %v", v.Sent[2].Headers)
	}
	stop()
	end()
	b.Cut()
	before := to.Seen().Working
	run(t, open(t, mqtt.Source{}, source), to)
	reached(t, to, before)
	from.Rewind(0)
	run(t, open(t, mqtt.Sink{}, sink), from)
	await(t, to, func(v connectortest.View) bool { return v.Repeated >= 3 })
	from.Deliver("three")
	if v := await(t, to, func(v connectortest.View) bool { return len(v.Sent) > 3 }); len(v.Sent) != 4 {
		t.Errorf("the messages are %q", v.Payloads())
	}
}

// TestTooLarge proves that large messages are left out, and later ones are taken.
func TestTooLarge(t *testing.T) {
	for _, version := range versions {
		b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
		run(t, open(t, mqtt.Source{}, settings(t, b, map[string]any{"version": version, "topics": []string{"a"}, "max_payload": 100})), p)
		await(t, p, func(v connectortest.View) bool { return v.Working > 0 })
		for _, size := range []int{101, 1 << 20, 101, 3 << 20, 101, 100} {
			publish(t, b, "a", strings.Repeat("x", size), 1, false)
		}
		v := await(t, p, func(v connectortest.View) bool { return len(v.Sent) == 1 })
		if len(v.Refused) != 5 || len(v.Sent[0].Payload) != 100 || abi.CodeOf(v.Refused[1]) != abi.TooLarge {
			t.Errorf("refused are %v", v.Refused)
		}
	}
}

// TestDenied proves that messages are acknowledged even if a policy denies them.
func TestDenied(t *testing.T) {
	b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
	p.Refuse = func(m connector.Message) error {
		if string(m.Payload) == "bad" {
			return &abi.Error{Code: abi.Denied, Message: "no"}
		}
		return nil
	}
	run(t, open(t, mqtt.Source{}, settings(t, b, map[string]any{"topics": []string{"a"}})), p)
	await(t, p, func(v connectortest.View) bool { return v.Working > 0 })
	for _, payload := range []string{"bad", "good", "bad", "good"} {
		publish(t, b, "a", payload, 1, false)
	}
	if v := await(t, p, func(v connectortest.View) bool { return len(v.Sent) == 2 }); len(v.Refused) != 2 {
		t.Errorf("refused are %v", v.Refused)
	}
}

// TestSink publishes with all qualities of service, over lost connections, at least once and
// with the id of the event.
func TestSink(t *testing.T) {
	for _, version := range versions {
		for qos := range byte(3) {
			t.Run(fmt.Sprint(version, " ", qos), func(t *testing.T) {
				b, p := start(t, mqtttest.Options{}), connectortest.NewPort()
				var mu sync.Mutex
				got := map[string]mqtttest.Message{}
				if err := b.Subscribe("#", 1, func(m mqtttest.Message) {
					mu.Lock()
					defer mu.Unlock()
					_, again := got[m.Payload]
					got[m.Payload] = m
					if qos > 0 && !again && len(got)%100 == 0 {
						go b.Cut()
					}
				}); err != nil {
					t.Fatal(err)
				}
				run(t, open(t, mqtt.Sink{}, settings(t, b, map[string]any{"version": version, "topic": "out", "qos": qos, "retain": true})), p)
				const n = 1000
				for i := range n {
					p.Deliver(fmt.Sprint(i))
				}
				await(t, p, func(v connectortest.View) bool { return v.Acked == n })
				for since := time.Now(); ; time.Sleep(time.Millisecond) { // with 0, it may be on its way
					mu.Lock()
					done := len(got) == n
					mu.Unlock()
					if done || time.Since(since) > deadline {
						break
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if len(got) != n || got["7"].Topic != "out" || !got["7"].Retain {
					t.Errorf("the broker has %d messages, such as %+v", len(got), got["7"])
				}
				if version == "5" && got["7"].Properties[mqtt.IDProperty] != "origin#8" {
					t.Errorf("the properties are %v", got["7"].Properties)
				}
			})
		}
	}
}

// TestSinkRefused proves that a sink leaves out what no broker accepts, and tries again
// what this broker does not allow.
func TestSinkRefused(t *testing.T) {
	b := start(t, mqtttest.Options{Username: "u", Secret: "s"})
	p := connectortest.NewPort()
	more := map[string]any{"topic": "wrong/+", "username": "u", "password": "s"}
	if _, err := (mqtt.Sink{}).Open(settings(t, b, more)); abi.CodeOf(err) != abi.InvalidArgument {
		t.Errorf("a topic with a wildcard: %v", err)
	}
	delete(more, "topic")
	more["topic_header"] = "to"
	run(t, open(t, mqtt.Sink{}, settings(t, b, more)), p)
	p.Deliver("without a topic")
	if v := await(t, p, func(v connectortest.View) bool { return v.Acked == 1 }); len(v.Refused) != 1 {
		t.Errorf("refused are %v", v.Refused)
	}
	more["topic"], more["client_id"] = "forbidden/a", "another"
	forbidden := connectortest.NewPort()
	forbidden.Deliver("a")
	err := open(t, mqtt.Sink{}, settings(t, b, more)).Run(t.Context(), forbidden)
	if err == nil || !strings.Contains(err.Error(), "not authorized") {
		t.Errorf("a forbidden topic: %v", err)
	}
	more["password"] = "wrong"
	err = open(t, mqtt.Sink{}, settings(t, b, more)).Run(t.Context(), forbidden)
	if err == nil || !strings.Contains(err.Error(), "refuses the connection") || strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("a wrong password: %v", err)
	}
}

// TestSinkKeepsWhatWasTaken has a broker that does not allow the topic of the third message. When
// the sink tries again, it sends neither the first two again, nor the fourth, which the broker has
// taken already.
func TestSinkKeepsWhatWasTaken(t *testing.T) {
	for qos := 1; qos <= 2; qos++ {
		b := start(t, mqtttest.Options{Username: "u", Secret: "s"})
		p := connectortest.NewPort()
		for _, topic := range []string{"a", "b", "forbidden/c", "d"} {
			p.DeliverWith(topic, map[string]string{"to": topic})
		}
		var mu sync.Mutex
		got := map[string]int{}
		if err := b.Subscribe("#", 1, func(m mqtttest.Message) {
			mu.Lock()
			defer mu.Unlock()
			got[m.Payload]++
		}); err != nil {
			t.Fatal(err)
		}
		sink := open(t, mqtt.Sink{}, settings(t, b, map[string]any{"topic_header": "to", "username": "u", "password": "s", "qos": qos}))
		for range 3 {
			p.Rewind(p.Seen().Acked)
			if err := sink.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "not authorized") {
				t.Fatalf("with qos %d, the sink ends with %v", qos, err)
			}
			if v := p.Seen(); v.Acked != 2 {
				t.Errorf("with qos %d, the cursor is after message %d", qos, v.Acked)
			}
		}
		mu.Lock()
		if want := map[string]int{"a": 1, "b": 1, "d": 1}; !maps.Equal(got, want) {
			t.Errorf("with qos %d, the broker has taken %v, want %v", qos, got, want)
		}
		mu.Unlock()
	}
}
