package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
)

// TestAnswersNameStoresThatWereSetAside damages the only store of a session.
func TestAnswersNameStoresThatWereSetAside(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, terrarium.Options{Dir: dir})
	do(t, tr, "apply", `{"recipe": "../testdata/count.hcl"}`)
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	stores, err := filepath.Glob(filepath.Join(dir, "stores", "*.db"))
	if err != nil || len(stores) != 1 {
		t.Fatalf("stores %v, %v; want one", stores, err)
	}
	if err := os.WriteFile(stores[0], []byte(strings.Repeat("rubble", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tr = open(t, terrarium.Options{Dir: dir})
	for _, op := range []struct{ name, args string }{{"status", `{}`}, {"apply", `{"recipe": "../testdata/count.hcl"}`}, {"status", `{}`}} {
		problems, _ := do(t, tr, op.name, op.args)["problems"].([]any)
		if len(problems) != 1 {
			t.Fatalf("%s answers the problems %v, want one", op.name, problems)
		}
		p := problems[0].(map[string]any)
		has(t, "the problem", p, "code", "message", "remedy", "ids")
		if p["code"] != "storage" || !strings.Contains(p["message"].(string), stores[0]) {
			t.Errorf("%s answers %v, want it to name %s", op.name, p, stores[0])
		}
	}
}
