package reconcile_test

import (
	"errors"
	"testing"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/reconcile"
)

// TestAnotherRecipeIsRefused applies recipes of one name from several paths.
func TestAnotherRecipeIsRefused(t *testing.T) {
	from := func(path string) *deploy.Deployment {
		return &deploy.Deployment{Name: "d", Source: deploy.Source{Path: path}}
	}
	for _, paths := range [][2]string{{"a.hcl", "a.hcl"}, {"a.hcl", ""}, {"", "a.hcl"}, {"", ""}} {
		if err := reconcile.CheckSource(from(paths[0]), from(paths[1])); err != nil {
			t.Errorf("%q after %q is refused: %v", paths[0], paths[1], err)
		}
	}
	err := reconcile.CheckSource(from("b.hcl"), from("a.hcl"))
	var typed *abi.Error
	if !errors.As(err, &typed) || typed.Code != abi.AlreadyExists || typed.IDs["path"] != "a.hcl" || typed.IDs["other"] != "b.hcl" {
		t.Errorf("another path gives %v", err)
	}
}

// TestTwinsAreRefused resumes a deployment that has the same address in two stores.
func TestTwinsAreRefused(t *testing.T) {
	row := func(deployment, address string) []journal.CreatureRow {
		return []journal.CreatureRow{{Deployment: deployment, Address: address}}
	}
	one := journal.SavedGraph{Path: "one.db", Creatures: row("d", "creature.a")}
	two := journal.SavedGraph{Path: "two.db", Creatures: row("d", "creature.a")}
	if err := reconcile.CheckTwins("d", []journal.SavedGraph{one, two}); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("twins give %v", err)
	}
	for _, other := range [][]journal.CreatureRow{row("d", "creature.b"), row("e", "creature.a"), row("d", "")} {
		two.Creatures = other
		if err := reconcile.CheckTwins("d", []journal.SavedGraph{one, two}); err != nil {
			t.Errorf("%+v is refused: %v", other, err)
		}
	}
}
