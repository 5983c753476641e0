package storemeta

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/engine/journal"
)

// TestMetaIsReadAsItIsWritten proves that joined metadata can be parsed again, with the first
// deployment first. An empty value means that there is none.
func TestMetaIsReadAsItIsWritten(t *testing.T) {
	meta := map[string]string{
		"deployment": "m", "config_path": "m.hcl", "merge": "",
		"deployment/a": "a", "recipe/a": "{}", "deployment/gone": "", "policy p/m": "7",
	}
	m := Parse(meta)
	if !slices.Equal(m.Names, []string{"m", "a"}) {
		t.Fatalf("the metadata has the deployments %q", m.Names)
	}
	written := map[string]string{"deployment": "m", "config_path": "m.hcl", "deployment/a": "a", "recipe/a": "{}"}
	if got := m.Join(); !maps.Equal(got, written) {
		t.Errorf("the metadata is written as %q", got)
	}
	m.Add(Parse(map[string]string{"deployment": "a", "recipe": "another"})) // a is known already
	m.Add(Parse(map[string]string{"deployment": "b"}))
	m.Only(map[string]bool{"a": true, "b": true})
	if got, want := m.Join(), map[string]string{"deployment": "a", "recipe": "{}", "deployment/b": "b"}; !maps.Equal(got, want) {
		t.Errorf("without m and with b, the metadata is written as %q, want %q", got, want)
	}
	if got := Correction(map[string]string{"x": "1", "y": "2"}, map[string]string{"y": "3"}); !maps.Equal(got, map[string]string{"x": "", "y": "3"}) {
		t.Errorf("the correction is %q", got)
	}
}

// TestMemoryIsReadAsItIsWritten proves the same for the memory of policies, even with slashes
// in names.
func TestMemoryIsReadAsItIsWritten(t *testing.T) {
	meta := map[string]string{"deployment": "d", MemoryKey{"d", "gone"}.MetaKey(): ""}
	keys := []MemoryKey{{"d", "p"}, {"d", "p/a%2Fb"}, {"e/f", "p"}}
	for _, k := range keys {
		meta[k.MetaKey()] = `"of ` + k.Policy + `"`
	}
	rest, memory := MemoryOf(meta)
	if len(memory) != len(keys) || !maps.Equal(rest, map[string]string{"deployment": "d"}) {
		t.Errorf("the metadata is %v and the memory %q", memory, rest)
	}
	for _, k := range keys {
		if cell := memory[k]; cell == nil || string(cell.Value) != `"of `+k.Policy+`"` {
			t.Errorf("the memory of %v is %v", k, cell)
		}
	}
}

// TestADeploymentIsReadAsItIsWritten proves that the metadata of a deployment contains its
// source and declarations.
func TestADeploymentIsReadAsItIsWritten(t *testing.T) {
	d := &deploy.Deployment{
		Name: "d", Source: deploy.Source{Path: "d.hcl", Files: map[string]string{"d.hcl": "text"}},
		Declared: []deploy.Declaration{{Address: "creature.a"}},
	}
	d.Session.AllowMerge, d.Session.SyncEvery = true, time.Second
	meta := Of(d)
	source, ok := Source(meta)
	if !ok || source.Path != "d.hcl" || source.Files["d.hcl"] != "text" || source.Variables != nil {
		t.Errorf("the source is %+v, %v", source, ok)
	}
	if got := DeclaredIn([]journal.SavedGraph{{Meta: meta}})["d"]; len(got) != 1 || got[0].Address != "creature.a" {
		t.Errorf("the declarations are %v", got)
	}
	if meta[Merge] != MergeAllowed || meta[journal.MetaSyncEvery] != "1s" {
		t.Errorf("the metadata is %v", meta)
	}
	plain := Of(&deploy.Deployment{Name: "p", Declared: d.Declared})
	if !maps.Equal(plain, map[string]string{Deployment: "p"}) {
		t.Errorf("the metadata of a deployment without a recipe is %v", plain)
	}
}

// TestARenamedRecipeIsRefused applies a saved recipe under another name.
func TestARenamedRecipeIsRefused(t *testing.T) {
	recipe := func(name, path, text string) *deploy.Deployment {
		return &deploy.Deployment{Name: name, Source: deploy.Source{Path: path, Files: map[string]string{path: text}}}
	}
	saved := []journal.SavedGraph{{Graph: "g", Meta: Of(recipe("old", "old.hcl", "text")), Creatures: []journal.CreatureRow{{Deployment: "old"}}}}
	applied := map[string]bool{}
	check := func(d *deploy.Deployment) error {
		return CheckRenamed(d, saved, func(name string) bool { return applied[name] })
	}
	err := check(recipe("new", "new.hcl", "text"))
	var typed *abi.Error
	if !errors.As(err, &typed) || typed.Code != abi.Conflict || typed.IDs["deployment"] != "old" || typed.IDs["path"] != "old.hcl" {
		t.Errorf("for the same text, CheckRenamed returns %v, want conflict", err)
	}
	if err := check(recipe("new", "new.hcl", "other text")); err != nil {
		t.Errorf("for another text, CheckRenamed returns %v", err)
	}
	if err := check(&deploy.Deployment{Name: "new"}); err != nil {
		t.Errorf("for a deployment without a recipe, CheckRenamed returns %v", err)
	}
	applied["old"] = true
	if err := check(recipe("new", "new.hcl", "text")); err != nil {
		t.Errorf("if the old name is applied too, CheckRenamed returns %v", err)
	}
}
