package terrarium_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// guestbook is a server that notes what arrives, and the keys.
type guestbook struct {
	mu     sync.Mutex
	bodies []string
	keys   map[string]bool
}

func (b *guestbook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bodies = append(b.bodies, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Checked"), body))
	b.keys[r.Header.Get("Idempotency-Key")] = true
	fmt.Fprintf(w, "re: %s", body)
}

// seen returns what has arrived.
func (b *guestbook) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.bodies)
}

// take returns what has arrived since the last call.
func (b *guestbook) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.bodies = nil }()
	return b.bodies
}

// TestPoliciesOnRequests proves what a real server gets of requests that the policies of a
// recipe allow, deny, change and ask an operator about, over a restart while a question waits.
func TestPoliciesOnRequests(t *testing.T) {
	book := &guestbook{keys: map[string]bool{}}
	server := httptest.NewServer(book)
	defer server.Close()
	dir := t.TempDir()
	var x *terrarium.Terrarium
	var applied *engine.Applied
	open := func() {
		t.Helper()
		x = opened(t, terrarium.Options{Dir: dir})
		var err error
		if applied, err = x.Apply(t.Context(), "testdata/requests.hcl", terrarium.RecipeOptions{Vars: map[string]string{"url": server.URL}}); err != nil {
			t.Fatal(err)
		}
	}
	idle := func() {
		t.Helper()
		if err := x.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send := func(line string) {
		t.Helper()
		if _, err := x.Send(t.Context(), applied.Channels["channel.tasks"], terrarium.Outgoing{Payload: []byte(line), Durable: true}); err != nil {
			t.Fatal(err)
		}
		idle()
	}
	decide := func(approve bool) {
		t.Helper()
		waiting, err := x.Approvals()
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%d questions wait, %v", len(waiting), err)
		}
		if got := string(waiting[0].Content); !strings.Contains(got, "http.server") || !strings.Contains(got, `"careful`) || strings.Contains(got, "s3cr3t") {
			t.Errorf("the operator sees %s", got)
		}
		if _, err := x.Decide(waiting[0].ID, engine.Decision{Approve: approve, By: "ann", Reason: "because"}); err != nil {
			t.Fatal(err)
		}
		idle()
	}
	arrived := func(want ...string) {
		t.Helper()
		if got := book.take(); !slices.Equal(got, want) {
			t.Errorf("%q arrived, want %q", got, want)
		}
	}
	open()
	send("allowed")
	arrived("POST /hook  allowed")
	send("denied")
	arrived()
	send("changed")
	arrived("POST /hook/other yes altered")
	send("astray")
	arrived()
	send("careful once")
	arrived()
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	open()
	idle()
	arrived()
	decide(true)
	arrived("POST /hook  careful once")
	send("careful never")
	decide(false)
	arrived()
	if len(book.keys) != 3 || book.keys[""] {
		t.Errorf("3 requests came with the keys %v", slices.Collect(maps.Keys(book.keys)))
	}
	heard := results(t, x)
	want := []string{
		"ok re: allowed", "denied no", "ok re: altered", "denied a policy changed the request", "ok re: careful once", "denied because",
	}
	if len(heard) != len(want) {
		t.Fatalf("it heard %q", heard)
	}
	for i, w := range want {
		code, text, _ := strings.Cut(w, " ")
		if !strings.HasPrefix(heard[i], code+" ") || !strings.Contains(heard[i], text) {
			t.Errorf("it heard %q, want %s", heard[i], w)
		}
	}
}

// results are the results of requests in the log of the courier, in order.
func results(t *testing.T, x *terrarium.Terrarium) (out []string) {
	t.Helper()
	graph, err := x.FindGraph(t.Context(), "courier")
	if err != nil {
		t.Fatal(err)
	}
	events, err := x.History(t.Context(), string(graph), journal.HistoryQuery{Kinds: []journal.EventKind{journal.EventResult}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		out = append(out, journal.DecodeHeaders(events[i].Headers)["terrarium-code"]+" "+string(events[i].Payload))
	}
	return out
}

// TestPlansMakeNoRequests plans a recipe with a capability for an empty engine, a running one
// and a saved session whose request is open, and none of the plans makes a request.
func TestPlansMakeNoRequests(t *testing.T) {
	book := &guestbook{keys: map[string]bool{}}
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		book.ServeHTTP(httptest.NewRecorder(), r)
		<-held
	}))
	defer server.Close()
	defer close(held)
	dir, o := t.TempDir(), terrarium.RecipeOptions{Vars: map[string]string{"url": server.URL}}
	r, diags := recipes.Load(t.Context(), "testdata/requests.hcl", recipes.Options{Vars: o.Vars})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	plan, err := terrarium.PlanRecipe(t.Context(), r)
	if err != nil || len(plan.Creatures) != 1 {
		t.Fatalf("the plan is %+v, %v", plan, err)
	}
	x := opened(t, terrarium.Options{Dir: dir})
	applied, err := x.Apply(t.Context(), "testdata/requests.hcl", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Send(t.Context(), applied.Channels["channel.tasks"], terrarium.Outgoing{Payload: []byte("slow"), Durable: true}); err != nil {
		t.Fatal(err)
	}
	for len(book.seen()) == 0 {
		time.Sleep(time.Millisecond) // the server has it soon
	}
	if _, err := x.PlanApply(t.Context(), "testdata/requests.hcl", o); err != nil {
		t.Error(err)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := sqlitestore.OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := terrarium.PlanRecipeIn(t.Context(), v, r); err != nil {
		t.Error(err)
	}
	if _, err := terrarium.PlanDirectory(t.Context(), v, nil); err != nil {
		t.Error(err)
	}
	time.Sleep(50 * time.Millisecond) // for a request that should not come
	if n := len(book.seen()); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}
