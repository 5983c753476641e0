package operations

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// TestResumeBringsBackWhatTheDirectoryRemembers applies two recipes, closes everything,
// and resumes without naming the recipes: first as a plan, and then for good.
func TestResumeBringsBackWhatTheDirectoryRemembers(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, terrarium.Options{Dir: dir})
	for _, recipe := range []string{"../testdata/count.hcl", "../testdata/left.hcl"} {
		do(t, tr, "apply", `{"recipe": "`+recipe+`"}`)
	}
	loose := do(t, tr, "add_creature", `{"name": "loose", "module": "builtin:echo"}`)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, _ := do(t, open(t, terrarium.Options{}), "sessions", `{"dir": "`+filepath.ToSlash(dir)+`"}`)["sessions"].([]any); len(list) == 0 {
		t.Error("sessions does not list another directory")
	}
	tr = open(t, terrarium.Options{Dir: dir})
	plan, _ := do(t, tr, "resume", `{"plan_only": true}`)["plan"].(map[string]any)
	if plan["empty"] != true {
		t.Errorf("it would change something: %v", plan)
	}
	if graphs, _ := do(t, tr, "status", `{}`)["graphs"].([]any); len(graphs) > 0 {
		t.Errorf("a plan has brought back %d graphs", len(graphs))
	}
	again := do(t, tr, "resume", `{"topology": "last"}`)
	list, _ := again["deployments"].([]any)
	if len(list) != 2 {
		t.Fatalf("resumed %v, want two deployments", again)
	}
	for _, d := range list {
		has(t, "a deployment", d.(map[string]any), "deployment", "recipe", "copied", "creatures", "resumed", "created", "removed")
		if created := d.(map[string]any)["created"].([]any); len(created) > 0 {
			t.Errorf("%v were created", created)
		}
	}
	if restored, _ := again["restored"].([]any); len(restored) != 1 || restored[0] != loose["graph"] {
		t.Errorf("restored %v, want %v", restored, loose["graph"])
	}
}

// TestResumeTellsWhatReachesOutside resumes a session with a request to a server that had not
// answered. The result lists what a plan lists: what the creature reaches, and that the request
// is sent again.
func TestResumeTellsWhatReachesOutside(t *testing.T) {
	got, release := make(chan string, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Idempotency-Key")
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	tr := open(t, terrarium.Options{Dir: dir})
	do(t, tr, "apply", `{"recipe": "../internal/outsidetest/testdata/courier.hcl", "vars": {"url": "`+server.URL+`"}}`)
	do(t, tr, "send", `{"channel": "tasks", "payload": "x"}`)
	key := <-got
	noError(t, tr.Close(t.Context()))

	tr = open(t, terrarium.Options{Dir: dir})
	planned, _ := do(t, tr, "resume", `{"plan_only": true}`)["plan"].(map[string]any)["outside"].([]any)
	close(release)
	resumed, _ := do(t, tr, "resume", `{}`)["outside"].([]any)
	if len(resumed) != 1 || !reflect.DeepEqual(resumed, planned) {
		t.Fatalf("resume lists %v, and its plan %v", resumed, planned)
	}
	one := resumed[0].(map[string]any)
	requests, _ := one["requests"].([]any)
	if one["capability"] != "http.server" || len(requests) != 1 || requests[0].(map[string]any)["id"] != key || requests[0].(map[string]any)["becomes"] != "sent" {
		t.Errorf("it lists %v; the key is %s", one, key)
	}
	if again := <-got; again != key {
		t.Errorf("the request was sent again with the key %s, not %s", again, key)
	}
	noError(t, tr.WaitIdle(t.Context()))
}

// TestAPlanToApplyAppliesNothing covers plan_only.
func TestAPlanToApplyAppliesNothing(t *testing.T) {
	tr := open(t, terrarium.Options{Scratch: true})
	plan, _ := do(t, tr, "apply", `{"recipe": "../testdata/count.hcl", "plan_only": true}`)["plan"].(map[string]any)
	creatures, _ := plan["creatures"].([]any)
	if len(creatures) != 1 || creatures[0].(map[string]any)["action"] != "create" {
		t.Errorf("the plan is %v", plan)
	}
	if graphs, _ := do(t, tr, "status", `{}`)["graphs"].([]any); len(graphs) > 0 {
		t.Errorf("a plan has made %d graphs", len(graphs))
	}
	do(t, tr, "apply", `{"recipe": "../testdata/count.hcl"}`)
}

// TestASavedPlanIsAppliedOrRefused covers save and saved.
func TestASavedPlanIsAppliedOrRefused(t *testing.T) {
	tr := open(t, terrarium.Options{Dir: t.TempDir()})
	saved, err := json.Marshal(do(t, tr, "apply", `{"recipe": "../testdata/count.hcl", "plan_only": true, "save": true}`)["saved"])
	if err != nil {
		t.Fatal(err)
	}
	apply := func(recipe string, saved []byte) string {
		return fmt.Sprintf(`{"recipe": %q, "saved": %s}`, recipe, saved)
	}
	refusedWith(t, tr, "apply", apply("other.hcl", saved), abi.InvalidArgument, "the saved plan is for")
	refusedWith(t, tr, "apply", apply("../testdata/count.hcl", []byte(`{}`)), abi.InvalidArgument, "not a saved plan")
	refusedWith(t, tr, "apply", `{"recipe": "../testdata/count.hcl", "save": true}`, abi.InvalidArgument, "save is only for plan_only")
	refusedWith(t, tr, "apply", `{"recipe": "../testdata/count.hcl", "plan_only": true, "saved": {}}`, abi.InvalidArgument, "exclude each other")

	if created := do(t, tr, "apply", apply("../testdata/count.hcl", saved))["created"].([]any); len(created) == 0 {
		t.Error("the plan has created nothing")
	}
	refusedWith(t, tr, "apply", apply("../testdata/count.hcl", saved), abi.Conflict, "already been applied")

	// An addition by another caller since the plan would be kept, but a removal would be
	// reverted.
	empty, err := json.Marshal(do(t, tr, "apply", `{"recipe": "../testdata/count.hcl", "plan_only": true, "save": true}`)["saved"])
	if err != nil {
		t.Fatal(err)
	}
	do(t, tr, "add_creature", `{"name": "visitor", "module": "builtin:echo"}`)
	do(t, tr, "apply", apply("../testdata/count.hcl", empty))
	do(t, tr, "remove_creature", `{"creature": "visitor"}`)
	status := do(t, tr, "status", `{}`)["graphs"].([]any)[0].(map[string]any)
	name := status["creatures"].([]any)[0].(map[string]any)["name"].(string)
	do(t, tr, "remove_creature", fmt.Sprintf(`{"creature": %q}`, name))
	refusedWith(t, tr, "apply", apply("../testdata/count.hcl", empty), abi.Conflict, "is stale: ")
}
