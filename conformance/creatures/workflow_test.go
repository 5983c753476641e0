package creatures_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The workflow that authors copy is one that GitHub would read: its keys are known, and
// every step runs or uses something. It uses the version of Go that this module needs.
func TestWorkflow(t *testing.T) {
	text, err := os.ReadFile("workflow.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		Name        string
		On          []string
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn  string `yaml:"runs-on"`
			Timeout int    `yaml:"timeout-minutes"`
			Steps   []struct {
				Name, Uses, Run, If string
				With                map[string]string
			}
		}
	}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	if err := dec.Decode(&w); err != nil {
		t.Fatal(err)
	}
	job := w.Jobs["creature"]
	if len(w.On) == 0 || job.RunsOn == "" || job.Timeout == 0 {
		t.Errorf("%+v", w)
	}
	var runs, versions []string
	for _, s := range job.Steps {
		if (s.Uses == "") == (s.Run == "") || s.Uses != "" && !strings.Contains(s.Uses, "@v") {
			t.Errorf("a step runs one command or uses one action of a certain version: %+v", s)
		}
		runs, versions = append(runs, s.Run), append(versions, s.With["go-version"])
	}
	const command = "terrarium conformance creature build/spotter.wasm --junit report.xml --html report.html --badge badge.json"
	if !slices.Contains(runs, command) {
		t.Errorf("no step runs %s: %q", command, runs)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if v := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod); v == nil || !slices.Contains(versions, string(v[1])) {
		t.Errorf("the workflow uses Go %q, and go.mod needs %s", versions, v)
	}
}
