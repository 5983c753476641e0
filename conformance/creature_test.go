package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed47132306/terrarium/conformance"
	"github.com/seed47132306/terrarium/plugins"
)

var update = flag.Bool("update", false, "write the transcripts again")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cases = "testdata/creatures"

func TestCreatures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(cases, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	covered := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			c := readCase(t, file)
			covered[c.Module] = true
			if *update {
				got, err := conformance.RunCreature(t.Context(), c, false)
				if err != nil {
					t.Fatal(err)
				}
				c.Transcript = got
				writeCase(t, file, c)
			}
			problems, err := conformance.CheckCreature(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Error(p)
			}
		})
	}
	for _, name := range plugins.Names() {
		// The state of an agent has the awareness document, whose ids differ in every run.
		if !covered["builtin:"+name] && name != "agent" {
			t.Errorf("no case is about builtin:%s", name)
		}
	}
}

// TestTheSuiteHasTeeth changes one thing at a time; the suite must detect each
// change.
func TestTheSuiteHasTeeth(t *testing.T) {
	c := readCase(t, filepath.Join(cases, "echo.json"))
	for name, spoil := range map[string]func(c *conformance.Case){
		"a line missing":  func(c *conformance.Case) { c.Transcript = c.Transcript[1:] },
		"a line too many": func(c *conformance.Case) { c.Transcript = append(slices.Clone(c.Transcript), "output \"x\"") },
		"another payload": func(c *conformance.Case) {
			c.Deliveries = slices.Clone(c.Deliveries)
			c.Deliveries[0].Payload = []byte("other")
		},
		"a channel less":     func(c *conformance.Case) { c.Send = c.Send[1:] },
		"another creature":   func(c *conformance.Case) { c.Module = "builtin:tally" },
		"deliveries swapped": func(c *conformance.Case) { c.Deliveries = slices.Clone(c.Deliveries); slices.Reverse(c.Deliveries) },
	} {
		spoilt := *c
		spoil(&spoilt)
		problems, err := conformance.CheckCreature(t.Context(), &spoilt)
		if err == nil && len(problems) == 0 {
			t.Errorf("%s was not noticed", name)
		}
	}
}

func readCase(t *testing.T, file string) *conformance.Case {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c conformance.Case
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return &c
}

func writeCase(t *testing.T, file string, c *conformance.Case) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
