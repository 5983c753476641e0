package operations_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/operations"
)

// A caller for one graph sees and answers its approvals only, one with the scope read sees
// no contents and answers none, and the name of a token takes precedence.
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
