// Command mosquitto takes the place of Mosquitto where it is not installed. It is mosquitto,
// mosquitto_pub or mosquitto_sub, by its name, with the flags that pages use.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed47132306/terrarium/connector"
	"github.com/seed47132306/terrarium/connector/connectortest"
	"github.com/seed47132306/terrarium/connector/mqtt"
	"github.com/seed47132306/terrarium/connector/mqtt/mqtttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// flags are those of all three programs.
type flags struct {
	port, topic, message, id string
	qos                      int
}

func run(ctx context.Context) error {
	var f flags
	flag.StringVar(&f.port, "p", "1883", "the port")
	flag.StringVar(&f.topic, "t", "", "the topic")
	flag.StringVar(&f.message, "m", "", "the message")
	flag.StringVar(&f.id, "i", "", "the client id")
	flag.IntVar(&f.qos, "q", 0, "the quality of service")
	flag.Parse()
	switch filepath.Base(os.Args[0]) {
	case "mosquitto_pub":
		return f.publish(ctx)
	case "mosquitto_sub":
		return f.subscribe(ctx)
	}
	broker, err := mqtttest.Start(mqtttest.Options{Address: "127.0.0.1:" + f.port})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return broker.Close()
}

func (f *flags) publish(ctx context.Context) error {
	p := connectortest.NewPort()
	p.Deliver(f.message)
	return f.connect(ctx, mqtt.Sink{}, map[string]any{"topic": f.topic}, p, func(v connectortest.View) bool { return v.Acked == 1 })
}

func (f *flags) subscribe(ctx context.Context) error {
	p, printed := connectortest.NewPort(), 0
	return f.connect(ctx, mqtt.Source{}, map[string]any{"topics": []string{f.topic}}, p, func(v connectortest.View) bool {
		for _, m := range v.Sent[printed:] {
			fmt.Println(strings.TrimSpace(string(m.Payload)))
			printed++
		}
		return false
	})
}

// connect runs a connector until a condition is fulfilled, the connector fails or ctx ends.
func (f *flags) connect(ctx context.Context, k connector.Kind, settings map[string]any, p *connectortest.Port, until func(connectortest.View) bool) error {
	settings["broker"], settings["client_id"], settings["qos"] = "mqtt://127.0.0.1:"+f.port, f.id, f.qos
	data, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	c, err := k.Open(data)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := c.Run(inner, p)
		cancel(err)
		ended <- err
	}()
	_, _ = p.Wait(inner, until) // the connector says why it fails
	cancel(nil)
	return <-ended
}
