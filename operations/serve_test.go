package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/fresh"
)

// open starts a terrarium that is closed with the test.
func open(t testing.TB, o terrarium.Options) *terrarium.Terrarium {
	t.Helper()
	o.FreshInstances = o.FreshInstances || fresh.Instances()
	tr, err := terrarium.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// answer is what Serve writes, as the other side reads it.
type answer struct {
	ID     json.RawMessage
	OK     bool
	Result json.RawMessage
	Error  *ErrorRecord
	Event  *struct{ Kind string }
}

// serve sends lines to Serve and returns what it wrote.
func serve(t testing.TB, tr *terrarium.Terrarium, lines ...string) []answer {
	t.Helper()
	var out bytes.Buffer
	if err := Serve(context.Background(), tr, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	return parse(t, out.Bytes())
}

func parse(t testing.TB, out []byte) []answer {
	t.Helper()
	var answers []answer
	for line := range bytes.Lines(out) {
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatalf("%q is not JSON: %v", line, err)
		}
		answers = append(answers, a)
	}
	return answers
}

// Messages of one connection keep their order, durable or not: a later one of
// the same producer would make an earlier one a duplicate.
func TestServeKeepsOrder(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	lines := []string{
		`{"op":"add_creature","name":"a","module":"builtin:relay"}`,
		`{"op":"add_channel","graph":"a","name":"c"}`,
	}
	const n = 50
	for i := 1; i <= n; i++ {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"op":"send","channel":"c","payload":"%d","producer":"p","offset":%d,"durable":%t}`, i, i, i, i%3 > 0))
	}
	for _, a := range serve(t, tr, lines...)[2:] {
		var sent SendResult
		if err := json.Unmarshal(a.Result, &sent); err != nil || sent.Duplicate || fmt.Sprint(sent.Seq) != string(a.ID) {
			t.Errorf("request %s was answered %+v, %v", a.ID, sent, a.Error)
		}
	}
}

// wait_idle does not delay other requests, and is answered before Serve returns.
func TestServeWaitsAside(t *testing.T) {
	tr := open(t, terrarium.Options{})
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := Serve(context.Background(), tr, in, out)
		out.Close()
		done <- err
	}()
	dec := json.NewDecoder(answers)
	ask := func(line string) (a answer) {
		t.Helper()
		if _, err := io.WriteString(requests, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, line := range []string{
		`{"op":"batch","ops":[{"op":"add_creature","name":"a","module":"builtin:relay"},{"op":"add_creature","name":"b","module":"builtin:relay"},{"op":"connect","from":"a","to":"b","channel":"there"},{"op":"connect","from":"b","to":"a","channel":"back"}]}`,
		`{"op":"send","channel":"there","payload":"round"}`,
	} {
		if a := ask(line); !a.OK {
			t.Fatalf("%s: %+v", line, a.Error)
		}
	}
	// The cycle is never idle, so wait_idle cannot be answered yet.
	if _, err := io.WriteString(requests, `{"id":"wait","op":"wait_idle"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if a := ask(`{"id":"status","op":"status"}`); string(a.ID) != `"status"` || !a.OK {
		t.Fatalf("answered %s, %+v", a.ID, a.Error)
	}
	// Once the cycle is cut, both answers are due, in either order.
	due := map[string]bool{`"cut"`: true, `"wait"`: true}
	for a := ask(`{"id":"cut","op":"disconnect","from":"b","to":"a"}`); ; {
		if !due[string(a.ID)] || !a.OK {
			t.Fatalf("answered %s, %+v", a.ID, a.Error)
		}
		if delete(due, string(a.ID)); len(due) == 0 {
			break
		}
		a = answer{}
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
	}
	requests.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestServeLongLine(t *testing.T) {
	tr := open(t, terrarium.Options{})
	var out bytes.Buffer
	in := io.MultiReader(
		strings.NewReader(`{"id":1,"op":"`), io.LimitReader(endless{}, MaxRequest), strings.NewReader("\"}\n"),
		strings.NewReader(`{"id":2,"op":"status"}`),
	)
	if err := Serve(context.Background(), tr, in, &out); err != nil {
		t.Fatal(err)
	}
	answers := parse(t, out.Bytes())
	if len(answers) != 2 || answers[0].Error.Code != "too_large" || !answers[1].OK {
		t.Errorf("answered %+v", answers)
	}
}

// TestServeLongLastLine ends the input within a line that is too long.
func TestServeLongLastLine(t *testing.T) {
	tr := open(t, terrarium.Options{})
	var out bytes.Buffer
	if err := Serve(context.Background(), tr, io.LimitReader(endless{}, 2*MaxRequest), &out); err != nil {
		t.Fatal(err)
	}
	answers := parse(t, out.Bytes())
	if len(answers) != 1 || answers[0].Error == nil || answers[0].Error.Code != "too_large" {
		t.Errorf("answered %+v", answers)
	}
}

// endless is a file of the letter x.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Serve returns when the other end of the connection is closed, even if requests wait.
func TestServeBrokenOutput(t *testing.T) {
	tr := open(t, terrarium.Options{})
	broken := errors.New("the other end is gone")
	served := 0
	in := io.MultiReader(
		strings.NewReader(`{"op":"subscribe"}`+"\n"+`{"op":"status"}`+"\n"),
		readerFunc(func() error { served++; return io.EOF }),
	)
	err := Serve(context.Background(), tr, in, writerFunc(func([]byte) (int, error) { return 0, broken }))
	if !errors.Is(err, broken) {
		t.Errorf("Serve answered %v", err)
	}
	if served > 0 {
		t.Error("it went on reading")
	}
}

func TestServeBrokenInput(t *testing.T) {
	tr := open(t, terrarium.Options{})
	broken := errors.New("the line is cut")
	var out bytes.Buffer
	in := io.MultiReader(strings.NewReader(`{"op":"status"}`+"\n"+`{"op":"shutdown"}`), readerFunc(func() error { return broken }))
	if err := Serve(context.Background(), tr, in, &out); !errors.Is(err, broken) {
		t.Errorf("Serve answered %v", err)
	}
	if answers := parse(t, out.Bytes()); len(answers) != 1 {
		t.Errorf("half a request was executed: %+v", answers)
	}
}

type readerFunc func() error

func (f readerFunc) Read([]byte) (int, error) { return 0, f() }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestServeNotUTF8(t *testing.T) {
	tr := open(t, terrarium.Options{})
	answers := serve(t, tr, "{\"id\":1,\"op\":\"send\",\"channel\":\"c\",\"payload\":\"\xff\"}", `{"id":2,"op":"status"}`)
	if len(answers) != 2 || string(answers[0].ID) != "1" || !strings.Contains(answers[0].Error.Remedy, "base64") || !answers[1].OK {
		t.Errorf("answered %+v", answers)
	}
}

func TestServeSubscription(t *testing.T) {
	tr := open(t, terrarium.Options{})
	answers := serve(t, tr,
		`{"id":1,"op":"subscribe","kinds":["creature_started"]}`,
		`{"id":2,"op":"add_creature","name":"a","module":"builtin:echo"}`,
		`{"id":3,"op":"unsubscribe","subscription":"s1"}`,
		`{"id":4,"op":"add_creature","name":"b","module":"builtin:echo"}`,
	)
	events := 0
	for _, a := range answers {
		if a.Event != nil {
			events++
			if a.Event.Kind != "creature_started" {
				t.Errorf("an event of the kind %s", a.Event.Kind)
			}
		}
	}
	if events != 1 || len(answers) != 5 {
		t.Errorf("%d events among %+v", events, answers)
	}
}

// Whatever arrives, every line that is not blank is answered once, with its id
// if it has one, and nothing else happens.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "{}", "null", "[]", `{"id":1}`, `{"op":"status"}`, `{"id":{"a":[1]},"op":"status","graph":"x"}`,
		`{"id":1,"op":"connect","from":"a","to":"b"}` + "\n" + `nonsense` + "\n" + `{"id":2,"op":"sessions"}`,
		`{"op":"batch","ops":[{"op":"add_channel","graph":"a","name":"c"},{"op":"set_send","creature":"a","channel":"c","on":true}]}`,
		`{"op":"send","channel":"c","payload":{"base64":"AA=="},"headers":{"a":"b"},"producer":"p","offset":1,"durable":true}`,
		`{"op":"history","graph":"a","limit":-1}`, `{"op":"subscribe","buffer":1}`, "{\"op\":\"\xff\"}", `{"op":"unsubscribe","subscription":"s1"}`,
		`{"op":"wait_idle","timeout":"1ms"}`, `{"op":"set_listen","creature":"a","channel":"c","on":null}`,
	} {
		f.Add([]byte(seed))
	}
	tr := open(f, terrarium.Options{})
	if _, err := tr.AddCreature(context.Background(), deploy.CreatureSpec{Name: "a", Module: "builtin:echo"}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, word := range []string{"add_creature", "apply", "shutdown", "subscribe"} {
			if bytes.Contains(in, []byte(word)) {
				return // these open files, end early, or are answered with events
			}
		}
		want := 0
		for line := range bytes.Lines(in) {
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		var out bytes.Buffer
		if err := Serve(context.Background(), tr, bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		answers := parse(t, out.Bytes())
		if len(answers) != want {
			t.Fatalf("%d answers to %d lines:\n%s", len(answers), want, out.Bytes())
		}
		for _, a := range answers {
			if !a.OK && (a.Error == nil || a.Error.Message == "" || a.Error.Code == abi.Internal.String()) {
				t.Fatalf("a bad answer: %+v", a.Error)
			}
		}
	})
}
