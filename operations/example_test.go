package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/seed47132306/terrarium"
)

// Every operation is also described as data.
func ExampleDo() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	if _, err := Do(ctx, t, "apply", json.RawMessage(`{"recipe": "../testdata/count.hcl"}`)); err != nil {
		log.Fatal(err)
	}
	_, err = Do(ctx, t, "send", json.RawMessage(`{"channel": "lines", "pyaload": "x"}`))
	fmt.Println(err)
	// Output: send: unknown field "pyaload"; the operation's fields are channel, graph, payload, headers, durable, producer, offset
}

// Serve offers the operations on a connection, a JSON object on a line.
func ExampleServe() {
	ctx := context.Background()
	t, err := terrarium.New(ctx, terrarium.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close(ctx)
	requests := strings.NewReader(`
		{"id": 1, "op": "apply", "recipe": "../testdata/count.hcl"}
		{"id": 2, "op": "send", "channel": "line", "payload": "INFO fine"}
		{"id": 3, "op": "wait_idle"}
		{"id": 4, "op": "shutdown"}`)
	answers := &strings.Builder{}
	if err := Serve(ctx, t, requests, answers); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(answers.String()) {
		var answer struct {
			ID    int
			OK    bool
			Error ErrorRecord
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			log.Fatal(err)
		}
		if answer.ID == 2 {
			fmt.Println(answer.OK, answer.Error.Code, "-", answer.Error.Message)
		}
	}
	// Output: false not_found - there is no channel line
}
