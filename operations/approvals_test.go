package operations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
)

// A caller with a token for one graph sees and decides only that graph's approvals. One
// with the scope read sees no contents and decides none. The name of a token takes
// precedence over a given name.
func TestRightsOfApprovals(t *testing.T) {
	tr, err := terrarium.New(t.Context(), terrarium.Options{Scratch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close(t.Context())
	for _, name := range []string{"ann", "bob"} {
		recipe := fmt.Sprintf("channel \"in\" {}\nchannel \"out\" {}\ncreature %q {\n  module = \"builtin:relay\"\n  listen = [channel.in]\n  send = [channel.out]\n}\n"+
			"policy \"send\" \"ask\" {\n  channel = channel.out\n  run = \"() => ask('why not')\"\n}\n", name)
		path := filepath.Join(t.TempDir(), name+".hcl")
		if err := os.WriteFile(path, []byte(recipe), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := tr.Apply(t.Context(), path, terrarium.RecipeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Send(t.Context(), a.Channels["channel.in"], terrarium.Outgoing{Payload: []byte("secret"), Headers: map[string]string{"for": "eve"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := func(r operations.Rights) []operations.ApprovalRecord {
		t.Helper()
		out, err := operations.DoAs(t.Context(), tr, r, "approvals", nil)
		if err != nil {
			t.Fatal(err)
		}
		return out.(*operations.ApprovalsResult).Approvals
	}
	policies := func(r operations.Rights) (out []string) {
		t.Helper()
		result, err := operations.DoAs(t.Context(), tr, r, "policies", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range result.(*operations.PoliciesResult).Policies {
			if len(p.Graphs) != 1 || len(p.Hash) != 64 || filepath.Base(p.Recipe) != p.Deployment+".hcl" {
				t.Errorf("a policy is %+v", p)
			}
			out = append(out, fmt.Sprint(p.Name, " ", p.Deployment, " ", p.Where, " ", p.Event, " ", p.Mode, " ", p.Enforce, " ", p.OnError, " ", p.Channels))
		}
		return out
	}
	if got := policies(operations.Rights{Scope: operations.Read}); len(got) != 2 || got[0] != "ask ann ann.hcl:10 send validate deny deny [channel.out]" {
		t.Errorf("the policies are %q", got)
	}
	if got := policies(operations.Rights{Scope: operations.Read, Graphs: []string{"bob"}}); len(got) != 1 || !strings.HasPrefix(got[0], "ask bob ") {
		t.Errorf("a caller for bob sees %q", got)
	}
	all := list(operations.Rights{Scope: operations.Read})
	if len(all) != 2 || all[0].Content != nil || all[0].Headers != nil {
		t.Fatalf("a reader sees %+v", all)
	}
	ann := operations.Rights{Scope: operations.Operate, Graphs: []string{"ann"}, Name: "eve"}
	own := list(ann)
	if len(own) != 1 || own[0].Name != "ann" || string(own[0].Content) != "secret" || own[0].Headers["for"] != "eve" {
		t.Fatalf("a caller for ann sees %+v", own)
	}
	for _, a := range all {
		args := fmt.Appendf(nil, `{"approval": %q, "by": "mallory"}`, a.ID)
		if _, err := operations.DoAs(t.Context(), tr, operations.Rights{Scope: operations.Read}, "approve", args); abi.CodeOf(err) != abi.NotPrivileged {
			t.Errorf("a reader approves: %v", err)
		}
		_, err := operations.DoAs(t.Context(), tr, ann, "approve", args)
		if want := map[string]abi.Code{"ann": abi.OK, "bob": abi.NotFound}[a.Name]; abi.CodeOf(err) != want {
			t.Errorf("a caller for ann approves for %s: %v", a.Name, err)
		}
	}
}

// The whole message that a question is about can be read before the decision, however
// long it is: by callers with the scope operate, even after a restart, and in a fork at
// the question, in which it is open as well.
func TestWholeContentOfAnApproval(t *testing.T) {
	dir := t.TempDir()
	recipe := filepath.Join(dir, "long.hcl")
	const text = `channel "in" {}
channel "out" {}
creature "ann" {
  module = "builtin:relay"
  listen = [channel.in]
  send = [channel.out]
}
policy "send" "ask" {
  channel = channel.out
  run = "() => ask('why not')"
}
`
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(dir string, paused bool) *terrarium.Terrarium {
		tr, err := terrarium.New(t.Context(), terrarium.Options{Dir: dir, Paused: paused})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	tr := open(filepath.Join(dir, "S"), false)
	a, err := tr.Apply(t.Context(), recipe, terrarium.RecipeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("pond \xff"), 50_000)
	headers := map[string]string{"a": "b", "note": strings.Repeat("n", 1000)}
	if _, err := tr.Send(t.Context(), a.Channels["channel.in"], terrarium.Outgoing{Payload: long, Headers: headers}); err != nil {
		t.Fatal(err)
	}
	if err := tr.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(tr *terrarium.Terrarium) operations.ApprovalRecord {
		t.Helper()
		out, err := operations.Do(t.Context(), tr, "approvals", nil)
		if err != nil || len(out.(*operations.ApprovalsResult).Approvals) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		record := out.(*operations.ApprovalsResult).Approvals[0]
		if len(record.Content) >= len(long) || record.ContentHash == "" {
			t.Fatalf("the list has %d bytes", len(record.Content))
		}
		args := fmt.Appendf(nil, `{"approval": %q}`, record.ID)
		whole, err := operations.Do(t.Context(), tr, "approval_content", args)
		if err != nil {
			t.Fatal(err)
		}
		if got := whole.(*operations.ApprovalContentResult); !bytes.Equal(got.Content, long) || !maps.Equal(got.Headers, headers) {
			t.Errorf("%d bytes and %d headers", len(got.Content), len(got.Headers))
		}
		if _, err := operations.DoAs(t.Context(), tr, operations.Rights{Scope: operations.Read}, "approval_content", args); abi.CodeOf(err) != abi.NotPrivileged {
			t.Errorf("a reader reads it: %v", err)
		}
		events, err := operations.DoAs(t.Context(), tr, operations.Rights{Scope: operations.Read}, "history", []byte(`{"kinds": ["approval_asked"]}`))
		if err != nil {
			t.Fatal(err)
		}
		if history, err := json.Marshal(events); err != nil || bytes.Contains(history, []byte("base64")) || bytes.Contains(history, []byte("nnnn")) || !bytes.Contains(history, []byte("why not")) {
			t.Errorf("a reader sees the history %.300s, %v", history, err)
		}
		return record
	}
	record := check(tr)
	sub, err := operations.Subscribe(t.Context(), tr, operations.Rights{Scope: operations.Admin}, []byte(`{"after": "start", "kinds": ["approval_asked"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := sub.Cursor()
	sub.Close()
	fork, err := json.Marshal(operations.ForkArgs{Dir: filepath.Join(dir, "F"), Graph: "ann", At: at})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operations.Do(t.Context(), tr, "fork", fork); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"S", "F"} {
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		tr = open(filepath.Join(dir, at), true) // without the policies, the turn would no longer ask
		if _, _, err := tr.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := check(tr); again.ID != record.ID || again.Hash != record.Hash {
			t.Errorf("in %s, the question is %+v", at, again)
		}
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
