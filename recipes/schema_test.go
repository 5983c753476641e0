package recipes

import (
	"slices"
	"strings"
	"testing"
)

// The description of the language has every block, attribute, function and reference.
func TestDescribeLanguage(t *testing.T) {
	s := DescribeLanguage("1.2.3")
	if s.Schema != SchemaVersion || s.Terrarium != "1.2.3" || len(s.Blocks) != len(language) || len(s.Functions) != len(Functions()) {
		t.Errorf("there are %d blocks and %d functions of version %d", len(s.Blocks), len(s.Functions), s.Schema)
	}
	for i, b := range s.Blocks {
		if b.Name != language[i].Name || len(b.Attributes) != len(language[i].Attributes) || b.Description == "" {
			t.Errorf("block %d is %+v", i, b)
		}
	}
	for _, b := range s.Blocks {
		if strings.Contains(b.Description, "](") && !strings.Contains(b.Description, "](https://") {
			t.Errorf("the description of %s has a relative link: %s", b.Name, b.Description)
		}
	}
	if i := slices.IndexFunc(s.Blocks, func(b SchemaBlock) bool { return b.Name == "policy" }); len(s.Blocks[i].Labels) != 2 || len(s.Blocks[i].Labels[0].Choices) < 10 {
		t.Errorf("the labels of a policy are %+v", s.Blocks[i].Labels)
	}
}

// The first words of references are those that the evaluator knows.
func TestReferencesAreThoseOfTheEvaluator(t *testing.T) {
	for _, r := range references {
		kind := r.Block
		if kind == "locals" {
			kind = "local"
		}
		if kind != kindOf[r.Name] {
			t.Errorf("%s refers to %q, and the evaluator says %q", r.Name, kind, kindOf[r.Name])
		}
	}
	for root := range kindOf {
		if root != "output" && !slices.ContainsFunc(references, func(r Reference) bool { return r.Name == root }) {
			t.Errorf("the reference %s is not described", root)
		}
	}
}
