package terrarium_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
)

// A resolver that panics, or is nil, is an error.
func TestResolverPanics(t *testing.T) {
	files := fstest.MapFS{"a.hcl": {Data: []byte("creature \"a\" {\n  module = \"own:frog\"\n}\n")}}
	x := opened(t, terrarium.Options{})
	for name, r := range map[string]terrarium.ModuleResolver{
		"nil": nil, "panics": func(context.Context, string) (terrarium.Module, error) { panic("no such frog") },
	} {
		o := terrarium.RecipeOptions{Modules: map[string]terrarium.ModuleResolver{"own": r}}
		if _, err := x.ApplyFS(t.Context(), files, ".", o); err == nil || !strings.Contains(err.Error(), "own:frog") && !strings.Contains(err.Error(), "panicked") {
			t.Errorf("%s: ApplyFS answers %v", name, err)
		}
		if _, err := o.LoadModule(t.Context(), "own:frog"); r != nil && (abi.CodeOf(err) != abi.Internal || !strings.Contains(err.Error(), "no such frog")) {
			t.Errorf("%s: LoadModule answers %v", name, err)
		}
	}
}
