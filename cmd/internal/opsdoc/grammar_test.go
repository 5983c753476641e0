package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"

	"github.com/seed47132306/terrarium/recipes"
)

// The grammar in the repository is the generated one, all its patterns compile, and it has all
// words of the language.
func TestGrammar(t *testing.T) {
	want, err := grammarText()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, grammarFile))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go generate ./cmd/internal/opsdoc (%v)", grammarFile, err)
	}
	patterns := 0
	var check func(name string, r rule)
	check = func(name string, r rule) {
		for _, p := range []string{r.Match, r.Begin, r.End} {
			if strings.Contains(p, `\2`) {
				p = "()()" + p // a group of the pattern that begins the rule
			}
			if _, err := regexp2.Compile(p, regexp2.None); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if p != "" {
				patterns++
			}
		}
		for _, inner := range r.Patterns {
			check(name, inner)
			if ref, ok := strings.CutPrefix(inner.Include, "#"); ok {
				if _, found := grammarRules()[ref]; !found {
					t.Errorf("%s includes %s, which does not exist", name, ref)
				}
			}
		}
		for _, c := range r.Captures {
			check(name, c)
		}
	}
	for name, r := range grammarRules() {
		check(name, r)
	}
	if patterns < 20 {
		t.Errorf("only %d patterns were compiled", patterns)
	}
	words := regexp.MustCompile(`[A-Za-z_0-9]+`).FindAllString(string(got), -1)
	for _, b := range recipes.Language() {
		if !slices.Contains(words, b.Name) {
			t.Errorf("the grammar lacks the block %s", b.Name)
		}
	}
}

// The engine that VS Code uses finds the scopes of the examples' recipes.
func TestTokensOfExamples(t *testing.T) {
	modules, err := filepath.Abs(filepath.Join(root, "bin/toolchains/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{"vscode-textmate", "vscode-oniguruma"} {
		if _, err := os.Stat(filepath.Join(modules, needed)); err != nil {
			t.Skipf("%s is not installed in bin/toolchains", needed)
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*.hcl"))
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(root, "editors/tokens.js")}, files...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	scopes := map[string]map[string]bool{} // of each text
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var token struct{ File, Text, Scopes string }
		if err := dec.Decode(&token); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSpace(token.Text)
		if scopes[text] == nil {
			scopes[text] = map[string]bool{}
		}
		scopes[text][token.Scopes] = true
	}
	for text, scope := range map[string]string{
		"creature": "keyword.other.block", "limits": "keyword.other.block", "module": "variable.other.property", `"send"`: "entity.name.label",
		"event": "variable.language", "length": "support.function", "16": "constant.numeric", "JS": "entity.name.tag.heredoc",
		"(event) => deny(`a task has ${event.size} bytes; 200 are enough`)": "meta.embedded.block.javascript source.js",
	} {
		found := false
		for s := range scopes[text] {
			found = found || strings.Contains(s, scope)
		}
		if !found {
			t.Errorf("%q has the scopes %v, and none is %s", text, scopes[text], scope)
		}
	}
	for text := range scopes {
		for s := range scopes[text] {
			if strings.Contains(s, "source.js") && strings.HasPrefix(text, "policy ") {
				t.Errorf("%q is taken for JavaScript", text)
			}
		}
	}
}
