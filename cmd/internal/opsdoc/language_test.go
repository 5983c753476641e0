package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/recipes"
)

func recipesReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, recipesPage))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page has a table for each block that the loader decodes, and no other.
func TestBlocksOfThePage(t *testing.T) {
	known := map[string]bool{}
	for _, b := range recipes.Language() {
		known[b.Name] = true
	}
	described := maps.Clone(elsewhere)
	for _, rest := range strings.Split(recipesReference(t), "<!-- generated: block ")[1:] {
		name, _, _ := strings.Cut(rest, " ")
		if !known[name] {
			t.Errorf("%s has a table of the block %s, which does not exist", recipesPage, name)
		}
		described[name] = true
	}
	for name := range known {
		if !described[name] && name != "locals" {
			t.Errorf("%s has no table of the block %s", recipesPage, name)
		}
	}
}

// The page documents what ctx.graph lists of creatures and channels.
func TestViewsOfPolicies(t *testing.T) {
	page := strings.Join(strings.Fields(recipesReference(t)), " ")
	for _, view := range []reflect.Type{reflect.TypeFor[deploy.CreatureView](), reflect.TypeFor[deploy.ChannelView]()} {
		var names []string
		for _, f := range reflect.VisibleFields(view) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
		if want := "`{" + strings.Join(names, ", ") + "}`"; !strings.Contains(page, want) {
			t.Errorf("%s does not say that a %s is %s", recipesPage, view.Name(), want)
		}
	}
}
