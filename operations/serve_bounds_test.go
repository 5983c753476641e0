package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
)

// TestServeBoundsWhatALineCosts sends lines that would take long, or have long answers,
// if nothing were bounded.
func TestServeBoundsWhatALineCosts(t *testing.T) {
	tr := open(t, terrarium.Options{})
	huge := strings.Repeat("ö", 1<<18)
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, `,"k%d":1`, i)
	}
	for _, c := range []struct{ name, line, want string }{
		{"an operation", `{"id":1,"op":"` + huge + `"}`, "there is no operation"},
		{"a field", `{"id":1,"op":"status","` + huge + `":1}`, "unknown field"},
		{"a channel", `{"id":1,"op":"send","payload":"","channel":"` + huge + `"}`, "there is no channel"},
		{"a builtin module", `{"id":1,"op":"add_creature","name":"a","module":"builtin:` + huge + `"}`, "there is no builtin creature"},
		{"a module", `{"id":1,"op":"add_creature","name":"a","module":"` + huge + `"}`, "cannot be read"},
		{"an event kind", `{"id":1,"op":"subscribe","kinds":["` + huge + `"]}`, "there is no event kind"},
		{"a recipe", `{"id":1,"op":"apply","recipe":"` + huge + `"}`, ""},
		{"many fields", `{"id":1` + many.String() + `}`, "more than 100 fields"},
		{"a field twice", `{"id":1,"op":"status","op":"shutdown"}`, `the field \"op\" is given twice`},
		{"no flag", `{"id":1,"op":"status","async":"yes"}`, `\"async\" is not true or false`},
		{"a subscription later", `{"id":1,"op":"subscribe","async":true}`, "cannot be asynchronous"},
		{"names", `{"id":1,"op":"subscribe","channels":[` + strings.Repeat(`"c",`, maxFiltered) + `"c"]}`, "1001 creatures, graphs and channels"},
	} {
		var out bytes.Buffer
		noError(t, Serve(t.Context(), tr, strings.NewReader(c.line+"\n"+`{"id":2,"op":"status"}`), &out))
		if out.Len() > 64<<10 {
			t.Errorf("%s: the answers have %d bytes", c.name, out.Len())
		}
		answers := parse(t, out.Bytes())
		if len(answers) != 2 || answers[0].OK || string(answers[0].ID) != "1" || !answers[1].OK {
			t.Errorf("%s: answered %.500s", c.name, out.String())
			continue
		}
		if text, err := json.Marshal(answers[0].Error.Message); err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: answered %.200s, want %q", c.name, text, c.want)
		}
	}
}

// TestServeBoundsSubscriptions requests more subscriptions than a connection may have.
func TestServeBoundsSubscriptions(t *testing.T) {
	tr := open(t, terrarium.Options{})
	largest := fmt.Sprintf(`{"op":"subscribe","buffer":%d}`, engine.MaxSubscriptionBuffer)
	answers := serve(t, tr, largest, `{"op":"subscribe"}`, `{"op":"unsubscribe","subscription":"s1"}`, `{"op":"subscribe"}`, largest)
	for i, ok := range []bool{true, false, true, true, false} {
		if answers[i].OK != ok || !ok && answers[i].Error.Code != "limit" {
			t.Errorf("request %d is answered %+v", i, answers[i])
		}
	}
	answers = serve(t, tr, slices.Repeat([]string{`{"op":"subscribe","buffer":1}`}, maxSubscriptions+1)...)
	for i := range answers {
		if ok := i < maxSubscriptions; answers[i].OK != ok || !ok && answers[i].Error.Code != "limit" {
			t.Errorf("subscription %d is answered %+v", i, answers[i])
		}
	}
}

// held adds an operation that ends when release is closed.
func held(t *testing.T, release <-chan struct{}) {
	before := table
	t.Cleanup(func() { table = before })
	table = append(slices.Clone(table), read("hold", "", func(ctx context.Context, _ *client, _ *struct{}) (*Empty, error) {
		select {
		case <-release:
			return &Empty{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}))
}

// TestServeGoesOnBesideAsynchronousRequests proves that a request is answered while an
// asynchronous one is under way.
func TestServeGoesOnBesideAsynchronousRequests(t *testing.T) {
	release := make(chan struct{})
	held(t, release)
	tr := open(t, terrarium.Options{})
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(context.Background(), tr, in, out)
		out.Close()
	}()
	lines := json.NewDecoder(answers)
	next := func(want string) {
		t.Helper()
		var a answer
		if err := lines.Decode(&a); err != nil || !a.OK || string(a.ID) != want {
			t.Fatalf("answered %+v, %v; want the answer to %s", a, err, want)
		}
	}
	ask := func(line string) {
		t.Helper()
		_, err := io.WriteString(requests, line+"\n")
		noError(t, err)
	}
	ask(`{"id":1,"op":"hold","async":true}`)
	ask(`{"id":2,"op":"add_creature","name":"a","module":"builtin:relay"}`)
	next("2")
	ask(`{"id":3,"op":"wait_idle","async":true}`)
	next("3")
	close(release)
	next("1")
	noError(t, requests.Close())
	noError(t, <-done)
}

// TestServeBoundsWhatIsUnderWay makes as many requests at a time as are allowed.
func TestServeBoundsWhatIsUnderWay(t *testing.T) {
	release := make(chan struct{})
	held(t, release)
	tr := open(t, terrarium.Options{})
	requests := append(slices.Repeat([]string{`{"op":"hold","async":true}`}, maxUnderWay), `{"id":1,"op":"wait_idle"}`, `{"id":2,"op":"status"}`)
	in, out := io.MultiReader(strings.NewReader(strings.Join(requests, "\n")+"\n"), onEnd(func() { close(release) })), &bytes.Buffer{}
	noError(t, Serve(t.Context(), tr, in, out))
	answers := parse(t, out.Bytes())
	if len(answers) != len(requests) || string(answers[0].ID) != "1" || answers[0].OK || answers[0].Error.Code != "limit" || string(answers[1].ID) != "2" || !answers[1].OK {
		t.Errorf("the first of %d answers are %+v", len(answers), answers[:2])
	}
}

// onEnd is an input that is empty, and calls a function when it is read.
type onEnd func()

func (f onEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
